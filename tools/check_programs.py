"""Checks the types of all example programs: `python tools/check_programs.py`, with mypy --strict and pyright.

These are the Python blocks of README.md and docs, and the demos. A block may use names that an earlier block of its
page defines, and those of GIVEN. A block below a line such as "`mine/layers.py`:" is a file of a package, which need
not annotate its functions. Errors name the page and the line. It exits with 1 if there are any.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import shutil
import subprocess
import symtable
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "output" / f"programs-{os.getpid()}"  # the blocks as modules of a package named `pages`, and files
BLOCK = re.compile(r"(?:^`([\w/]+\.py)`:\n\n)?^```python\n(.*?)^```$", re.S | re.M)
UNTYPED = "# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls"

# What a block may use without a definition: its page says in words where it comes from.
GIVEN = {
    "np": "import numpy as np",
    "pf": "import perframe as pf",
    "Image": "from PIL import Image",
    "moderngl": "import moderngl",
}
_ARRAY = "np.ndarray[tuple[int, ...], np.dtype[np.{}]]"
_TYPES = {
    "app": "pf.App",
    "array": _ARRAY.format("float32"),
    "converter": "pf.TextureConverter",
    "ctx": "moderngl.Context",
    "frame": "pf.Frame",
    "model": "pf.Model",
    "picture": _ARRAY.format("uint8"),
    "pictures": f"list[{_ARRAY.format('uint8')}]",
    "tensor": "pf.Tensor",
    "texture": "moderngl.Texture",
    "worker": "pf.Worker",
    "x": "pf.Tensor",
}
_IMPORTS = "from typing import cast; import moderngl; import numpy as np; import perframe as pf"
GIVEN |= {name: f"{_IMPORTS}; {name} = cast({kind}, None)" for name, kind in _TYPES.items()}


@dataclass
class Program:
    """A block of a page. `line` is the line of its fence, and `path` that of its module or its file."""

    page: Path
    line: int
    text: str
    path: Path
    defined: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        try:
            table = symtable.symtable(self.text, str(self.page), "exec")
        except SyntaxError:
            return  # the type checkers say so
        top = table.get_symbols()
        self.defined = {one.get_name() for one in top if one.is_assigned() or one.is_imported() or one.is_namespace()}
        used = {name for one in _tables(table) for name in _globals(one)}
        self.free = used - self.defined - set(dir(builtins)) - {"__name__", "__file__"}

    def module(self, before: Sequence[Program]) -> str:
        """The text of the module, each line at its number in the page. Names of `before` stand in the first line."""
        if self.path.parts[0] != "pages":
            return UNTYPED + "\n" * self.line + self.text
        heads = []
        for name in sorted(self.free):
            home = next((one for one in reversed(before) if name in one.defined), None)
            if home is not None:
                heads.append(f"from pages.{home.path.stem} import {name}")
            elif name in GIVEN:
                heads.append(GIVEN[name])
        return "; ".join(heads) + "\n" * self.line + self.text


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for one in table.get_children():
        yield from _tables(one)


def _globals(table: symtable.SymbolTable) -> Iterator[str]:
    """The names that a scope takes from the module."""
    for one in table.get_symbols():
        of_module = table.get_type() == "module" or one.is_global()
        if of_module and one.is_referenced():
            yield one.get_name()


def shown(path: Path) -> Path:
    """A path as errors show it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(path.name)


def programs_of(page: Path) -> list[Program]:
    """The Python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    stem = re.sub(r"\W", "_", str(shown(page).with_suffix("")))
    return [
        Program(
            page,
            text.count("\n", 0, found.start(2)),
            found.group(2),
            Path(found.group(1) or f"pages/{stem}_{index}.py"),
        )
        for index, found in enumerate(BLOCK.finditer(text), 1)
    ]


def write(pages: Sequence[Path]) -> dict[str, Program]:
    """Write the blocks of pages as modules, and return them by the paths of their files."""
    (FOLDER / "pages").mkdir(parents=True)
    (FOLDER / "pages" / "__init__.py").touch()
    written = {}
    for page in pages:
        found = programs_of(page)
        for index, program in enumerate(found):
            path = FOLDER / program.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(program.module(found[:index]), encoding="utf-8")
            written[str(path)] = program
    return written


def scripts() -> list[Path]:
    """The programs that are files."""
    guests = [
        path for path in (ROOT / "demos" / "guests").glob("in_*.py") if path.stem != "in_qt" or find_spec("PySide6")
    ]
    demos = [path for path in (ROOT / "demos").rglob("*.py") if path.parent.name != "guests"]
    return sorted([*demos, *guests])


def mypy(files: Sequence[Path]) -> Iterator[str]:
    """The errors of mypy, which pyproject.toml makes strict."""
    paths = [ROOT / "runtime", FOLDER, ROOT / "demos" / "guests"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", "mypy", "--explicit-package-bases", "--hide-error-context", "--no-error-summary"]
    done = subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    for line in done.stdout.splitlines():
        yield f"{line}  (mypy)" if ": error: " in line else line


def pyright(files: Sequence[Path]) -> Iterator[str]:
    """The errors of pyright, as basedpyright ships it: pyright's own package downloads itself when it first runs."""
    settings = {
        "include": [str(path) for path in files],
        "typeCheckingMode": "standard",  # that of pyright
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "runtime"), str(FOLDER), str(ROOT), str(ROOT / "demos" / "guests")],
        "reportMissingModuleSource": "none",
        "reportMissingImports": "none",  # mypy reports them, but for optional packages
    }
    (FOLDER / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    tool = Path(sysconfig.get_path("scripts")) / "basedpyright"
    command = [tool, "--outputjson", "--pythonpath", sys.executable, "-p", FOLDER / "pyrightconfig.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(done.stdout + done.stderr)
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            line, message = one["range"]["start"]["line"] + 1, " ".join(one["message"].split())
            yield f"{one['file']}:{line}: error: {message}  [{one.get('rule', '')}]  (pyright)"


def named(line: str, programs: dict[str, Program]) -> str:
    """A line of a checker's output with the page in place of its module."""
    path, _, rest = line.partition(":")
    program = programs.get(str(ROOT / path))
    return f"{shown(program.page)}:{rest}" if program else line.removeprefix(f"{ROOT}{os.sep}")


def main() -> int:
    """Check the pages and scripts that are given, or all."""
    given = [Path(one).resolve() for one in sys.argv[1:]]
    pages = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "demos").rglob("*.md")])
    try:
        programs = write([one for one in given if one.suffix == ".md"] if given else pages)
        files = [Path(name) for name in programs]
        files += [one for one in given if one.suffix == ".py"] if given else scripts()
        errors = [named(line, programs) for checker in (mypy, pyright) for line in checker(files)]
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    print("\n".join([*errors, f"{len(files)} programs, {sum(': error: ' in one for one in errors)} errors"]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
