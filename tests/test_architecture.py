"""The pages show the packages as they are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "runtime" / "perframe"
MOST = 5  # files at the top of the package
CIRCULAR = {"functional"}  # a functional tensor has the functions as methods, and they return functional tensors
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
NAMED = re.compile(r"`([a-z_][\w/]*\.(?:py|glsl))`(?!:\n\n```)")  # but for a file whose text follows


def test_the_drawing_shows_the_imports() -> None:
    done = subprocess.run(
        [sys.executable, "tools/draw_packages.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_little_lies_at_the_top() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.suffix == ".py" and path.stem != "__main__"]) <= MOST


@pytest.mark.quick(cases=0)
def test_each_class_has_a_name_of_its_own() -> None:
    """So that a name means one thing wherever it is read; classes within functions count, too."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py"))  # one at a time
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert len(names) > 400 and not [name for name, count in names.items() if count > 1]


def test_files_named_in_pages_exist() -> None:
    """From the root, the package, its tests, or (in tables of kernels) the CPU backend."""
    homes = (ROOT, PACKAGE, PACKAGE / "backends" / "cpu")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {(page.name, name) for page in pages for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 50
    assert not sorted(one for one in named if not any((home / one[1]).exists() for home in homes))


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in CIRCULAR])
def test_modules_of_a_package_import_each_other_without_circles(package: str) -> None:
    """Late imports and those for type checkers count, too."""
    modules = {_module(path): path for path in (PACKAGE / package).rglob("*.py")}
    graph = {name: set(_imported(path)) & modules.keys() - {name} for name, path in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" <- ".join(error.args[1])) from None


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path) -> Iterator[str]:
    """Yield the module of each import, and the name of what is imported from it, which may be a module, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names
            if not all((PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").exists() for name in names):
                yield node.module
