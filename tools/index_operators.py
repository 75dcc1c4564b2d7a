"""Writes the indexes that tell the file of each operator, so that a model imports only the files that it needs.

`python tools/index_operators.py` writes them. With --check nothing is written, and an outdated index exits with 1.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from perframe.importers import adapters
from perframe.ir.declaration import LAYERS, registry

PACKAGE = Path(__file__).resolve().parents[1] / "runtime" / "perframe"
HEAD = '"""{} Written by tools/index_operators.py."""\n\n'
FILE_OF = "FILE_OF = {operator: stem for stem, operators in LAYERS.items() for operator in operators.split()}\n"


def of_layers() -> str:
    """Return the file with the operators of each file of `layers/`, and the families."""
    files: dict[str, list[str]] = {}
    for name, entry in registry().items():
        if entry.origin.startswith(f"{LAYERS}."):
            files.setdefault(entry.origin.split(".")[2], []).append(name)
    others = sorted({entry.family for entry in registry().values()} - files.keys())
    families = ", ".join(["*LAYERS", *(f'"{name}"' for name in others)])
    head = HEAD.format("The file of `layers/` that declares each operator, and all families.")
    return head + _table("LAYERS", files) + f"FAMILIES = frozenset({{{families}}})\n" + FILE_OF


def of_adapters() -> str:
    """Return the file with the operators of each file of `importers/adapters/`, in the order of the files."""
    for module in iter_modules(adapters.__path__):
        import_module(f"{adapters.__name__}.{module.name}")
    files: dict[str, list[str]] = {}
    for name, declared in adapters._ADAPTERS.items():
        for stem in {each.args[0].__module__.rpartition(".")[2] for each in declared}:
            files.setdefault(stem, []).append(name)
    head = HEAD.format("The operators that each file of `importers/adapters/` adapts.")
    return head + _table("ADAPTERS", files)


def _table(name: str, files: Mapping[str, list[str]]) -> str:
    rows: list[str] = []
    for stem, names in sorted(files.items()):
        row = f'    "{stem}": "{" ".join(sorted(names))}",\n'
        rows.append(row if len(row) <= 121 else _long_row(stem, sorted(names)))
    return f"{name} = {{\n{''.join(rows)}}}\n"


def _long_row(stem: str, names: list[str]) -> str:
    *lines, last = textwrap.wrap(" ".join(names), 108)
    inner = "".join(f'        "{line}"\n' for line in [*(f"{line} " for line in lines), last])
    return f'    "{stem}": (\n{inner}    ),\n'


def main() -> int:
    """Write the indexes, or compare them."""
    outdated = False
    for name, text in (("ir/index.py", of_layers()), ("importers/adapter_index.py", of_adapters())):
        path = PACKAGE / name
        outdated |= path.read_text(encoding="utf-8") != text
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif outdated:
            print(f"{name} is outdated: run python tools/index_operators.py")
    return int(outdated and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
