"""The command `perframe demo`."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="The demo's name; without it, a list.")] = None,
) -> None:
    """Run a demo: perframe demo painter --help."""
    from perframe.command_line.demo import demos, load_demo

    if name is None:
        typer.echo("\n".join(demos()))
        return
    if name not in demos():
        raise typer.BadParameter(f"there is no demo {name!r}; there are {', '.join(demos())}", param_hint="NAME")
    raise typer.Exit(load_demo(name)(context.args))
