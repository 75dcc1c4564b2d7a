"""The command `perframe optimize`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import AsJson, Dims, ModelName, Seed, console, say


@takes_key
def optimize(
    model: ModelName,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result to m.perframe or m.onnx.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each pass changed, refused, and where layers came from.")
    ] = False,
    stop_after: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Stop after N passes, to find a faulty one.")
    ] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Make a model smaller and faster without changing its results, and show how."""
    import perframe as pf
    from perframe.command_line.optimize import explained, report_of, show
    from perframe.command_line.sources import loaded_model, parse_dims
    from perframe.exporters.saving import check_name

    if out is not None:
        check_name(out.name)
    wants_origins = explain or as_json
    loaded = loaded_model(model, seed, not wants_origins, parse_dims(dims), None if wants_origins else stop_after)
    report = explained(loaded, stop_after) if wants_origins else report_of(loaded)
    if out is not None:
        pf.save(loaded, out)
    if as_json:
        typer.echo(json.dumps(report.as_json(), indent=2))
    else:
        show(loaded, report, console(), explain)
        if out is not None:
            say(f"{out}: {out.stat().st_size:,} bytes")
