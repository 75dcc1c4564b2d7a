"""The command `perframe cache`."""

from __future__ import annotations

from typing import Annotated

import typer

from perframe.command_line.caches import KINDS
from perframe.command_line.options import AsJson, console


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete the cached files.")] = False,
    kinds: Annotated[
        str, typer.Option("--kinds", metavar="KIND,...", help=f"Comma-separated kinds: {', '.join(KINDS)}.")
    ] = ",".join(KINDS),
    as_json: AsJson = False,
) -> None:
    """Show the cached files of perframe, or delete them: compiled kernels, GPU programs, environments, tuned variants.

    Everything in the cache is made again when it is needed. PERFRAME_CACHE names another cache folder.
    """
    from perframe.command_line.caches import as_json as to_json
    from perframe.command_line.caches import clear as delete
    from perframe.command_line.caches import examine, show

    wanted = kinds.split(",")
    for kind in wanted:
        if kind not in KINDS:
            raise typer.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}", param_hint="--kinds")
    found = delete(wanted) if clear else [one for one in examine() if one.kind in wanted]
    if as_json:
        typer.echo(to_json(found, clear))
    else:
        show(found, console(), clear)
