"""Writes the tables that make a load import little: `python tools/index_operators.py`.

Two tell the file of each operator. One holds the schemas of the standard, for which the onnx package would be imported.
With --check nothing is written, and an outdated table exits with 1.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import onnx

from perframe.importers import adapters
from perframe.importers.onnx_schema import TABLE, row_of
from perframe.ir.declaration import LAYERS, registry

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runtime" / "perframe"
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


def of_schemas() -> str:
    """Return the schemas of the onnx package as the table of `importers/onnx_schema.py`: an operator a line."""
    types: dict[tuple[str, ...], int] = {}
    rows: dict[str, list[Any]] = {}
    opsets = {"": onnx.defs.onnx_opset_version()}
    schemas = onnx.defs.get_all_schemas_with_history()
    for schema in sorted(schemas, key=lambda one: (one.domain, one.name, one.since_version)):
        row = row_of(schema)
        for formal in row[3]:
            formal[2] = types.setdefault(tuple(formal[2]), len(types))
        rows.setdefault(f"{schema.domain}::{schema.name}" if schema.domain else schema.name, []).append(row)
        if schema.domain:
            opsets[schema.domain] = max(opsets.get(schema.domain, 0), schema.since_version)
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}" for name, row in rows.items())
    head = f'"opsets":{json.dumps(opsets)},\n"types":{json.dumps(list(types), separators=(",", ":"))}'
    return f'{{{head},\n"operators":{{\n{lines}\n}}}}\n'


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
    """Write the tables, or compare them."""
    outdated = False
    files = {PACKAGE / "ir" / "index.py": of_layers, PACKAGE / "importers" / "adapter_index.py": of_adapters}
    for path, made in {**files, ROOT.joinpath(*TABLE): of_schemas}.items():
        text = made()
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            outdated = True
            print(f"{path} is outdated: run python tools/index_operators.py")
    return int(outdated)


if __name__ == "__main__":
    sys.exit(main())
