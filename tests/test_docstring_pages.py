"""Docstrings name pages by their titles: an installed wheel has no folder `docs`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import perframe

PACKAGE = Path(perframe.__file__).parent
TOOLS = {"importers/operators.py", "importers/litert/operators.py"}  # they write pages into a checkout


def test_docstrings_name_no_file_of_a_checkout() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if place not in TOOLS and re.search(r"docs/\S+\.md", ast.get_docstring(node) or ""):
                found.append(f"{place}:{getattr(node, 'name', 'module')}")
    assert not found
