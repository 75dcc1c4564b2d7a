"""The command `perframe tune`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    AsJson,
    BackendOption,
    Dims,
    GivenInputs,
    ModelName,
    Seed,
    check_backends,
    console,
    say,
)


@takes_key
def tune(
    model: ModelName,
    given: GivenInputs = None,
    backend: BackendOption = "gpu_compute",
    repeats: Annotated[int, typer.Option(min=1, help="Runs per variant; the shortest counts.")] = 9,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Find the fastest variants of a model's GPU kernels and remember them for this driver."""
    from perframe.backends import gl_choices
    from perframe.command_line.progress import progress_bar
    from perframe.command_line.sources import loaded_model, model_inputs, parse_dims
    from perframe.command_line.tune import show
    from perframe.execution import tuning

    (place,) = check_backends([backend])
    loaded = loaded_model(model, seed)
    with progress_bar() as step:
        arrays, _ = model_inputs(loaded, given or (), parse_dims(dims), seed)
        found = tuning.tune(loaded, arrays, place, repeats=repeats, progress=step)
    path = gl_choices().path
    if as_json:
        typer.echo(json.dumps({"file": str(path), "kernels": [asdict(trial) for trial in found]}, indent=2))
    else:
        show(found, console())
        say(f"variants are kept in {path}" if path.is_file() else "the defaults are the fastest here")
