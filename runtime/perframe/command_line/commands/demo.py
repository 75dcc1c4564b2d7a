"""`perframe demo`: finds the shipped demos, loads one by its path, and lets the user choose."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from perframe.errors import PerframeError
from perframe.resources import resource
from perframe.safety.wording import did_you_mean

Main = Callable[[list[str]], int]
PACKAGE = "perframe_demos"  # whose modules the demos are, so that they share code: `from ..common import ...`
_HELP = "arrows or a number, then Enter; q ends"
_UP, _DOWN = ("\x1b[A", "\xe0H", "\x00H", "k"), ("\x1b[B", "\xe0P", "\x00P", "j")


def demo(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Demo to run. Default: choose from a gallery.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the demos and exit.")] = False,
) -> None:
    """Run a demo: perframe demo painter --help."""
    if name is None and not list_ and sys.stdin.isatty() and sys.stdout.isatty():
        name = choose_demo(typer.getchar)
        if name is None:
            return
    if name is None:
        width = max(map(len, demos()))
        typer.echo("\n".join(f"{name:<{width}}  {summary(path)}".rstrip() for name, path in demos().items()))
        return
    if name not in demos():
        close = did_you_mean(name, demos())
        raise typer.BadParameter(f"there is no demo {name!r}; {close}there are {', '.join(demos())}", param_hint="NAME")
    raise typer.Exit(load_demo(name)(context.args))


def demos() -> dict[str, Path]:
    """The demos by name: `demos/NAME.py`, or `demos/NAME/__main__.py`."""
    folder = resource("demos")
    files = {path.stem: path for path in folder.glob("*.py") if not path.stem.startswith("_")}
    packages = {path.parent.name: path for path in folder.glob("*/__main__.py")}
    return dict(sorted({**files, **packages}.items()))


def summary(path: Path) -> str:
    """A demo's sentence about itself: the first of its docstring, after its name."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition(". ")[0].partition("\n")[0].rstrip(".").rpartition(": ")[2]


def load_demo(name: str) -> Main:
    """Return a demo's `main(argv)`, which returns an exit status. Raises PerframeError if it has none."""
    path = demos()[name]
    folder = str(resource("demos"))
    package = sys.modules.get(PACKAGE)
    if package is None or package.__path__ != [folder]:
        for known in [module for module in sys.modules if module.partition(".")[0] == PACKAGE]:
            del sys.modules[known]
        package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
        package.__path__ = [folder]
    importlib.invalidate_caches()
    module = importlib.import_module(f"{PACKAGE}.{name}" + (".__main__" if path.name == "__main__.py" else ""))
    main: Main | None = getattr(module, "main", None)
    if main is None:
        raise PerframeError(f"the demo {name} ({path}) has no main(argv)")
    return main


def choose_demo(read_key: Callable[[], str]) -> str | None:
    """Let the user choose in a terminal, by the arrows and Enter or by a number. None if Escape or q is pressed.

    `read_key` waits for a key and returns its characters.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    names = list(demos())
    summaries = [summary(path) for path in demos().values()]

    def gallery(at: int) -> Table:
        table = Table(box=None, show_header=False, caption=_HELP, caption_justify="left")
        for index, (name, line) in enumerate(zip(names, summaries, strict=True)):
            style = "bold reverse" if index == at else ""
            table.add_row(str(index + 1), name, line, style=style)
        return table

    at = 0
    with Live(gallery(at), console=Console(), auto_refresh=False) as live:
        while True:
            key = read_key()
            if key in ("\r", "\n"):
                return names[at]
            if key in ("q", "\x1b", "\x03", "\x04", ""):
                return None
            if key.isdecimal() and 1 <= int(key) <= len(names):
                at = int(key) - 1
            at = (at + (key in _DOWN) - (key in _UP)) % len(names)
            live.update(gallery(at), refresh=True)
