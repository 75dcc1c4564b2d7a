"""The command `perframe demo`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def demo(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Demo to run. Default: choose from a gallery.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the demos and exit.")] = False,
) -> None:
    """Run a demo: perframe demo painter --help."""
    from perframe.command_line.demo import choose_demo, demos, load_demo, summary

    if name is None and not list_ and sys.stdin.isatty() and sys.stdout.isatty():
        name = choose_demo(typer.getchar)
        if name is None:
            return
    if name is None:
        width = max(map(len, demos()))
        typer.echo("\n".join(f"{name:<{width}}  {summary(path)}".rstrip() for name, path in demos().items()))
        return
    if name not in demos():
        raise typer.BadParameter(f"there is no demo {name!r}; there are {', '.join(demos())}", param_hint="NAME")
    raise typer.Exit(load_demo(name)(context.args))
