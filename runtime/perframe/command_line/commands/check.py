"""The command `perframe check`."""

from __future__ import annotations

from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    BACKENDS,
    AsJson,
    Dims,
    GivenInputs,
    ModelName,
    Seed,
    Strict,
    check_backends,
    console,
)


@takes_key
def check(
    model: ModelName,
    given: GivenInputs = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Comma-separated backends: {', '.join(BACKENDS)}.")
    ] = ",".join(BACKENDS),
    strict: Strict = False,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Show whether a model runs here: on which backends, with which fallbacks to the CPU, and in how much memory.

    Exit status 1 if one of the backends cannot run it, or with --strict if a layer falls back.
    """
    from perframe.command_line.check import as_json as to_json
    from perframe.command_line.check import examine, passes, show
    from perframe.command_line.sources import parse_dims

    found = examine(model, check_backends(backend.split(",")), given or (), parse_dims(dims), seed)
    if as_json:
        typer.echo(to_json(found))
    else:
        show(model, found, console())
    if not passes(found, strict):
        raise typer.Exit(1)
