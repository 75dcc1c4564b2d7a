"""`perframe tune`: the time of each variant of the GL kernels of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import Console, console, progress_bar, say, say_json, seconds_text, table

if TYPE_CHECKING:
    from perframe.execution.tuning import Trial


@takes_key
def tune(
    model: options.ModelName,
    given: options.GivenInputs = None,
    backend: options.BackendOption = "gpu_compute",
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Runs per variant; the shortest counts.")] = 9,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
) -> None:
    """Find the fastest variants of a model's GPU kernels and remember them for this driver."""
    from perframe.backends import gl_choices
    from perframe.command_line.sources import loaded_model, model_inputs, parse_dims
    from perframe.execution import tuning

    (place,) = options.check_backends([backend])
    loaded = loaded_model(model, seed)
    with progress_bar() as step:
        arrays, _ = model_inputs(loaded, given or (), parse_dims(dims), seed)
        found = tuning.tune(loaded, arrays, place, repeats=repeats, progress=step)
    path = gl_choices().path
    if as_json:
        say_json({"file": str(path), "kernels": [asdict(trial) for trial in found]})
    else:
        show(found, console())
        say(f"variants are kept in {path}" if path.is_file() else "the defaults are the fastest here")


def show(found: Sequence[Trial], console: Console) -> None:
    """Print a table: the time of a run with each variant of each kernel, and which one was chosen."""
    kernels = table("kernel", "chosen", "before", "a run with each variant")
    for trial in found:
        times = ", ".join(f"{variant} {seconds_text(time)}" for variant, time in sorted(trial.seconds.items()))
        kernels.add_row(trial.kernel, trial.chosen, trial.before, times)
    console.print(kernels)
