"""`perframe profile`: the times of frames and layers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import console, progress_bar, say_json

if TYPE_CHECKING:
    from perframe.backends import BackendName
    from perframe.ir import Model
    from perframe.profiling.profile import Profile


@takes_key
def profile(
    model: options.ModelName,
    given: options.GivenInputs = None,
    backend: options.BackendOption = "auto",
    frames: Annotated[int, typer.Option(min=1, metavar="N", help="Number of runs.")] = 60,
    peak: Annotated[
        bool, typer.Option("--peak", help="Measure the device's peak and show each layer's share of it.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT.html", help="Write the timeline as an HTML page.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="OUT.json", help="Write the timeline for ui.perfetto.dev.")
    ] = None,
    layers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of layers to show, slowest first.")] = 20,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
    carry: options.Carry = "",
) -> None:
    """Time each layer of a model: milliseconds, bytes, operations a second, and frame times."""
    from perframe.command_line.sources import loaded_model, model_inputs, parse_carry, parse_dims
    from perframe.profiling.peak import peak_of
    from perframe.profiling.table import Peaks, facts, show
    from perframe.profiling.timeline import write_page, write_trace

    (place,) = options.check_backends([backend])
    loaded = loaded_model(model, seed)
    arrays, _ = model_inputs(loaded, given or (), parse_dims(dims), seed)
    measured = measure(loaded, arrays, place, frames, parse_carry(carry))
    peaks: Peaks | None = {place: peak_of(place)} if peak else None
    if html is not None:
        write_page(html, measured, peaks, f"{loaded.name or model} on {place}")
    if trace is not None:
        write_trace(trace, measured)
    if as_json:
        say_json(facts(measured, peaks))
    else:
        show(measured, console(), peaks, layers)


def measure(
    model: Model, inputs: Mapping[str, Any], backend: BackendName, frames: int, carry: Mapping[str, str]
) -> Profile:
    """Warm up, and profile `frames` runs with these inputs; each is read back before the next begins. States begin with
    theirs.
    """
    from perframe.execution.worker import Worker
    from perframe.profiling.profile import Profile

    profile = Profile()
    states = {name: array for name, array in inputs.items() if name in carry.values()}
    given = {name: array for name, array in inputs.items() if name not in states}
    with progress_bar() as step, Worker(model, backend, carry=carry) as worker:
        step("compiles and warms up", 0.0)
        worker.reset(states)
        worker.warmup(given)
        with profile:
            for frame in range(frames):
                profile.frame()
                step("runs", frame / frames)
                worker.schedule(given)
                for name in model.output_names:
                    output = worker.peek_output(name)
                    if hasattr(output, "readback_request"):
                        output.readback_request().result(wait=True)
            profile.frame()
    return profile
