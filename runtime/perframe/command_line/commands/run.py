"""`perframe run`: the report on a model's outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import Console, console, say_json, seconds_text, table
from perframe.safety.names import shown

Outputs = Mapping[str, Any]  # an array; a list of them for a sequence; None for an absent optional


@takes_key
def run(
    model: options.ModelName,
    given: options.GivenInputs = None,
    backend: options.BackendOption = "auto",
    strict: options.Strict = False,
    mean: options.Mean = "0",
    std: options.Std = "1",
    scale: options.Scale = 1.0,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npz", help="Write the outputs as arrays.")] = None,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
    weights: options.Weights = "float32",
    activations: options.Activations = "float32",
    signature: options.Signature = None,
) -> None:
    """Run a model once and show its outputs."""
    import perframe as pf
    from perframe.command_line.sources import (
        Normalization,
        loaded_model,
        model_inputs,
        parse_dims,
        parse_numbers,
        random_inputs,
    )

    if save is not None and save.suffix.lower() not in ("", ".npz"):
        raise typer.BadParameter(f"{save.name!r} is not an .npz; perframe process writes pictures", param_hint="--save")
    (place,) = options.check_backends([backend])
    start = time.perf_counter()
    loaded = loaded_model(model, seed, signature=signature)
    normalization = Normalization(scale, parse_numbers(mean, "--mean"), parse_numbers(std, "--std"))
    arrays, _ = model_inputs(loaded, given or (), parse_dims(dims), seed, normalization)
    if names := random_inputs(loaded.inputs, given or ()):
        typer.echo(shown(f"random inputs: {', '.join(names)} (set them with --input {names[0]}=FILE)"), err=True)
    begin = time.perf_counter()
    outputs = pf.run(loaded, arrays, backend=place, strict=strict, weights=weights, activations=activations)
    report = summary(outputs, place, load=begin - start, run=time.perf_counter() - begin)
    if save:
        save_outputs(save, outputs)
    if as_json:
        say_json(report)
    else:
        show(report, console())


def summary(outputs: Outputs, backend: str, load: float, run: float) -> dict[str, Any]:
    """The outputs' shapes, dtypes and ranges, and the times in seconds."""
    return {
        "backend": backend,
        "seconds": {"load": load, "run": run},
        "outputs": {name: _facts(value) for name, value in outputs.items()},
    }


def save_outputs(path: Path, outputs: Outputs) -> None:
    """Write the outputs to an .npz file, a sequence as NAME.0, NAME.1, ..."""
    from perframe.media.picture import write_whole
    from perframe.safety.archives import write_npz

    arrays = {}
    for name, value in outputs.items():
        if isinstance(value, list):
            arrays.update({f"{name}.{index}": item for index, item in enumerate(value)})
        elif value is not None:
            arrays[name] = value

    def save(beside: Path) -> None:
        with beside.open("wb") as file:
            write_npz(file, arrays)

    write_whole(path, save)


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print the summary for a person."""
    from rich.text import Text

    outputs = table("output", "dtype", "shape", right=("min", "max", "mean"))
    for name, facts in report["outputs"].items():
        shape = f"({', '.join(map(str, facts['shape']))})" if "shape" in facts else facts["kind"]
        figures = [f"{facts[key]:.6g}" if facts.get(key) is not None else "" for key in ("min", "max", "mean")]
        outputs.add_row(Text(name), facts.get("dtype", ""), shape, *figures)
    console.print(outputs)
    times = report["seconds"]
    console.print(f"\n{report['backend']}: {seconds_text(times['run'])}, after {seconds_text(times['load'])} to load")


def _facts(value: Any) -> dict[str, Any]:
    import numpy as np

    if value is None:
        return {"kind": "absent"}
    if isinstance(value, list):
        return {"kind": f"sequence of {len(value)}", "items": [_facts(item) for item in value]}
    facts: dict[str, Any] = {"kind": "tensor", "dtype": str(value.dtype), "shape": list(value.shape)}
    if value.size and value.dtype.kind in "biuf":
        numbers = value.astype(np.float64)
        facts |= {"min": float(numbers.min()), "max": float(numbers.max()), "mean": float(numbers.mean())}
    return facts
