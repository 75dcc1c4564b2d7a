"""Writes what follows from the functions of `pf.functional`: `python tools/write_functional.py`.

These are the stubs, by which editors and mypy see functions and methods, and the table in docs/functional.md. With
--check nothing is written, and outdated text exits with 1.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perframe.functional import FAMILIES, FUNCTIONS, METHOD_OF
from perframe.functional.operators import OPERATORS
from perframe.functional.sentis import SENTIS
from perframe.tensor import DataType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runtime" / "perframe" / "functional"
PAGE = ROOT / "docs" / "functional.md"
BLOCK = re.compile(r"(?<=<!-- functions -->\n).*?(?=<!-- end of functions -->)", re.DOTALL)
SHADOWED = re.compile(r"\b(int|float|bool|type)\b(?!\()")  # functions have these names too

IMPORTS = """
import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from perframe.functional.calls import FUNCTIONS as FUNCTIONS
from perframe.functional.calls import METHOD_OF as METHOD_OF
from perframe.functional.drawing import Seed
from perframe.functional.reductions import Dims, DType, ValuesAndIndices
from perframe.functional.sizes import Size, Sizes
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent
from perframe.model import Model
from perframe.tensor import DataType
"""


def family_of(called: Callable[..., Any]) -> str:
    """The family in whose file a function is."""
    return inspect.unwrap(called).__module__.rpartition(".")[2]


def parameters(called: Callable[..., Any], method: bool) -> Iterator[str]:
    """The parameters of a function as a stub has them."""
    starred = False
    for index, one in enumerate(inspect.signature(called).parameters.values()):
        if method and index == 0:
            yield "self"
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        said = SHADOWED.sub(r"builtins.\1", one.annotation)
        default = "" if one.default is one.empty else f" = {shown(one.default)}"
        yield f"{stars}{one.name}: {said}{default}"
        if one.kind is one.POSITIONAL_ONLY:
            yield "/"  # only one of these is first anywhere


def shown(default: Any) -> str:
    """A default as a stub has it."""
    return f"DataType.{default.name}" if isinstance(default, DataType) else repr(default)


def stub(name: str, called: Callable[..., Any], method: bool = False) -> str:
    """The stub of a function."""
    result = SHADOWED.sub(r"builtins.\1", inspect.signature(called).return_annotation)
    comment = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    head = f"def {name}({', '.join(parameters(called, method))}) -> {result}:"
    doc = inspect.getdoc(called)
    said = "\n\n".join(textwrap.fill(" ".join(part.split()), 106) for part in (doc or "").split("\n\n"))
    body = textwrap.indent(f'"""{said}{chr(10) if chr(10) in said else ""}"""', "    ").lstrip()
    return f"{head}{comment}\n    {body}\n" if doc else f"{head} ...{comment}\n"


def imports(text: str, always: Sequence[str] = ()) -> str:
    """The imports that a stub needs, and those of some modules."""
    lines = []
    for line in IMPORTS.splitlines():
        head, word, names = line.rpartition(" import ")
        used = [name for name in names.split(", ") if re.search(rf"\b{name}\b", text)]
        if used or not word or any(f".{module} " in f"{head} " for module in always):
            lines.append(f"{head}{word}{', '.join(used or [names])}" if word else line)
    return "\n".join(lines)


def module_stub() -> str:
    """The text of functional/__init__.pyi."""
    body = "\n".join(stub(name, FUNCTIONS[name]) for name in sorted(FUNCTIONS))
    head = '"""Functions on functional tensors. tools/write_functional.py makes this file from the functions."""\n'
    return f"{head}{imports(body, always=('calls',))}\nFAMILIES: tuple[str, ...]\n\n{body}"


def methods_stub() -> str:
    """The text of functional/methods.pyi."""
    every = {**FUNCTIONS, **OPERATORS}
    names = [name for name in every if next(iter(every[name].__annotations__), "") == METHOD_OF]
    body = "\n".join(stub(name, every[name], method=True) for name in sorted(names)).replace("\n", "\n    ")
    head = '"""The methods of functional tensors. tools/write_functional.py makes this file from the functions."""\n'
    return (
        f'{head}{imports(body)}\n\nclass Methods:\n    """The functions of `pf.functional` as methods."""\n\n    {body}'
    )


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
            arguments = ", ".join(re.sub(r": .*?(?= = |$)", "", one) for one in parameters(called, False))
            sentence = " ".join((inspect.getdoc(called) or "").split()).replace("|", "\\|")
            lines.append(f"| `{name}({arguments.replace(' = ', '=')})` | {sentence} |")
        lines.append("")
    lines += ["### From Sentis", "", "| Sentis | here |", "|---|---|"]
    lines += [f"| {old} | {', '.join(f'`{one}`' for one in new.split())} |" for old, new in sorted(SENTIS.items())]
    return "\n".join([*lines, ""])


def formatted(text: str, name: str) -> str:
    """A stub as ruff formats it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", name, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def main() -> int:
    """Write all texts, or compare them."""
    texts = {
        PACKAGE / "__init__.pyi": formatted(module_stub(), "__init__.pyi"),
        PACKAGE / "methods.pyi": formatted(methods_stub(), "methods.pyi"),
    }
    if PAGE.exists():
        texts[PAGE] = BLOCK.sub(lambda _: table(), PAGE.read_text(encoding="utf-8"))
    outdated = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" not in sys.argv:
        for path in outdated:
            path.write_text(texts[path], encoding="utf-8")
    elif outdated:
        print(f"{', '.join(path.name for path in outdated)}: run python tools/write_functional.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
