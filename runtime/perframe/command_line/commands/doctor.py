"""The command `perframe doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from perframe.command_line.options import AsJson, console


def doctor(
    everything: Annotated[
        bool, typer.Option("--all", help="Also run a layer on each backend, open a window, and list all packages.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show whether this machine has what perframe needs, and how to get what is missing.

    Exit status 1 if something that perframe needs is missing.
    """
    from perframe.command_line.doctor import as_json as to_json
    from perframe.command_line.doctor import examine, glance, healthy, show

    checks = examine() if everything else glance()
    if as_json:
        typer.echo(to_json(checks))
    else:
        show(checks, console())
        if not everything:
            typer.echo("perframe doctor --all tests each backend and lists packages and limits.")
    if not healthy(checks):
        raise typer.Exit(1)
