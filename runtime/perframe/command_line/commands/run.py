"""The command `perframe run`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import (
    Activations,
    AsJson,
    BackendOption,
    Dims,
    GivenInputs,
    Mean,
    ModelName,
    Scale,
    Seed,
    Std,
    Strict,
    Weights,
    check_backends,
    console,
)


@takes_key
def run(
    model: ModelName,
    given: GivenInputs = None,
    backend: BackendOption = "auto",
    strict: Strict = False,
    mean: Mean = "0",
    std: Std = "1",
    scale: Scale = 1.0,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npz", help="Write the outputs as arrays.")] = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
    weights: Weights = "float32",
    activations: Activations = "float32",
) -> None:
    """Run a model once and show its outputs."""
    import perframe as pf
    from perframe.command_line.pictures import Normalization, parse_numbers
    from perframe.command_line.run_report import save_outputs, show, summary
    from perframe.command_line.sources import loaded_model, model_inputs, parse_dims

    if save is not None and save.suffix.lower() not in ("", ".npz"):
        raise typer.BadParameter(f"{save.name!r} is not an .npz; perframe process writes pictures", param_hint="--save")
    (place,) = check_backends([backend])
    start = time.perf_counter()
    loaded = loaded_model(model, seed)
    normalization = Normalization(scale, parse_numbers(mean, "--mean"), parse_numbers(std, "--std"))
    arrays, _ = model_inputs(loaded, given or (), parse_dims(dims), seed, normalization)
    begin = time.perf_counter()
    outputs = pf.run(loaded, arrays, backend=place, strict=strict, weights=weights, activations=activations)
    report = summary(outputs, place, load=begin - start, run=time.perf_counter() - begin)
    if save:
        save_outputs(save, outputs)
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        show(report, console())
