"""The command `perframe doctor`."""

from __future__ import annotations

import typer

from perframe.command_line.options import AsJson, console


def doctor(as_json: AsJson = False) -> None:
    """Show which packages, drivers and backends this machine has, and which are missing."""
    from perframe.command_line.doctor import as_json as to_json
    from perframe.command_line.doctor import examine, healthy, show

    checks = examine()
    if as_json:
        typer.echo(to_json(checks))
    else:
        show(checks, console())
    if not healthy(checks):
        raise typer.Exit(1)
