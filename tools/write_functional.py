"""Writes the tables of functions in docs/functional.md: `python tools/write_functional.py`.

With --check nothing is written, and an outdated page exits with 1.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perframe import functional
from perframe.functional.sentis import SENTIS
from perframe.tensor import DataType

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "functional.md"
BLOCK = re.compile(r"(?<=<!-- functions -->\n).*?(?=<!-- end of functions -->)", re.DOTALL)
FAMILIES = (
    "elementwise",
    "trigonometry",
    "logic",
    "activations",
    "reductions",
    "moving",
    "pieces",
    "gathering",
    "making",
    "drawing",
    "products",
    "convolutions",
    "pools",
    "normalization",
    "pictures",
    "spectra",
    "detection",
    "models",
)
FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(functional, name) for name in functional.__all__}


def family_of(called: Callable[..., Any]) -> str:
    """The family in whose file a function is."""
    return inspect.unwrap(called).__module__.rpartition(".")[2]


def parameters(called: Callable[..., Any]) -> str:
    """The parameters of a function with their defaults, without annotations."""
    signature = inspect.signature(called)
    plain = [
        one.replace(annotation=one.empty, default=Shown(one.default) if one.default is not one.empty else one.empty)
        for one in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class Shown:
    """A default as the page shows it."""

    def __init__(self, default: Any) -> None:
        self.default = default

    def __repr__(self) -> str:
        return f"DataType.{self.default.name}" if isinstance(self.default, DataType) else repr(self.default)


def table() -> str:
    """The tables of docs/functional.md."""
    lines = []
    for family in FAMILIES:
        own = {name: called for name, called in sorted(FUNCTIONS.items()) if family_of(called) == family}
        lines += [f"### {family.capitalize()}", "", "| function | |", "|---|---|"]
        for name, called in own.items():
            if called.__name__ != name:
                lines.append(f"| `{name}` | is `{called.__name__}` |")
                continue
            sentence = " ".join((inspect.getdoc(called) or "").split()).replace("|", "\\|")
            lines.append(f"| `{name}{parameters(called)}` | {sentence} |")
        lines.append("")
    lines += ["### From Sentis", "", "| Sentis | here |", "|---|---|"]
    lines += [f"| {old} | {', '.join(f'`{one}`' for one in new.split())} |" for old, new in sorted(SENTIS.items())]
    return "\n".join([*lines, ""])


def main() -> int:
    """Write the tables, or compare them."""
    written = PAGE.read_text(encoding="utf-8")
    text = BLOCK.sub(lambda _: table(), written)
    if text == written:
        return 0
    if "--check" in sys.argv:
        print(f"{PAGE.name}: run python tools/write_functional.py")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
