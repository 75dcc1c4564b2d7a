"""The command `perframe warmup`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    Activations,
    AsJson,
    BackendOption,
    Dims,
    Seed,
    Weights,
    check_backends,
    console,
    say,
)


@takes_key
def warmup(
    models: Annotated[list[str], typer.Argument(help="Model files, or names of known models.")],
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
    backend: BackendOption = "auto",
    weights: Weights = "float32",
    activations: Activations = "float32",
) -> None:
    """Compile the kernels that models need ahead, so their first frame does not wait."""
    from perframe.backends.precision import Precision
    from perframe.command_line.sources import parse_dims
    from perframe.command_line.warmup import as_json_value, folder, show, warm_up

    (place,) = check_backends([backend])
    found, precision = [], Precision(weights, activations)
    for model in models:
        found.append(warm_up(model, parse_dims(dims), seed, place, precision))
        if not as_json:
            show(found[-1], console())
    say(json.dumps(as_json_value(found), indent=2) if as_json else f"kernels are kept in {folder()}")
