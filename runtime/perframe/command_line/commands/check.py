"""`perframe check`: whether a model runs here, where, what falls back to the CPU, and what memory it takes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import Console, console, progress_bar, say_json, seconds_text, table
from perframe.errors import BackendError, InferenceError, InputError, PerframeError
from perframe.safety.wording import bytes_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perframe.backends import BackendName
    from perframe.ir import Model
    from perframe.plan.plan import Fallback


@takes_key
def check(
    model: options.ModelName,
    given: options.GivenInputs = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Comma-separated backends: {', '.join(options.BACKENDS)}.")
    ] = ",".join(options.BACKENDS),
    strict: options.Strict = False,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
    signature: options.Signature = None,
) -> None:
    """Show whether a model runs here: on which backends, with which fallbacks to the CPU, and in how much memory.

    Exit status 1 if one of the backends cannot run it, or with --strict if a layer falls back.
    """
    from perframe.command_line.sources import parse_dims

    found = examine(model, options.check_backends(backend.split(",")), given or (), parse_dims(dims), seed, signature)
    if as_json:
        say_json([asdict(one) for one in found])
    else:
        show(model, found, console())
    if not passes(found, strict):
        raise typer.Exit(1)


@dataclass(frozen=True)
class BackendCheck:
    """A run of a model on one backend with random inputs.

    `error` is None if it ran. `weights` are the bytes of its constants, and `workspace` those of all values within a
    run. `layers` counts the layers that ran, by where they ran. `first` is the time of the first run in seconds.
    `guess` has the sizes that were chosen for open dims if the shapes do not fit with them: then nothing is known.
    """

    backend: str
    error: str | None = None
    fallbacks: Sequence[Fallback] = ()
    layers: Mapping[str, int] = field(default_factory=dict)
    weights: int = 0
    workspace: int = 0
    first: float | None = None
    finite: bool = True
    guess: str = ""


def examine(
    name: str,
    backends: Sequence[BackendName],
    given: Sequence[str],
    dims: Mapping[str, int],
    seed: int = 0,
    signature: str | None = None,
) -> list[BackendCheck]:
    """Load a model and run it once on each backend. `given` has items NAME=VALUE as `run` takes them; the other inputs
    are random, and open dims that `dims` does not name get a likely size.

    Raises ModelError if it cannot be loaded, and InputError for a wrong item of `given`.
    """
    from perframe.command_line.sources import loaded_model, model_inputs

    model = loaded_model(name, seed, signature=signature)
    arrays, chosen = model_inputs(model, given, dims, seed, likely=True)
    found = []
    with progress_bar() as step:
        for index, backend in enumerate(backends):
            step(f"runs on {backend}", index / len(backends))
            found.append(_check(model, backend, arrays, str(chosen)))
    return found


def _check(model: Model, backend: BackendName, arrays: Mapping[str, NDArray[Any]], guess: str) -> BackendCheck:
    import numpy as np

    from perframe.backends import waiting_for_kernels
    from perframe.execution.worker import Worker

    try:
        with waiting_for_kernels(), Worker(model, backend) as worker:
            begin = time.perf_counter()
            worker.schedule(dict(arrays))
            outputs = [worker.peek_output(name) for name in model.output_names]
            values = [output.download_to_array() for output in outputs if hasattr(output, "download_to_array")]
            first = time.perf_counter() - begin
            uses, steps = [part.memory_use for part in worker.parts.planned_parts()], worker.report()
            ran = {(step.layer, str(step.backend)) for step in steps if step.operator}
            return BackendCheck(
                backend,
                None,
                tuple(worker.fallbacks),
                dict(Counter(where for _, where in ran)),
                _weights(model),
                max((use.workspace for use in uses), default=0),
                first,
                all(bool(np.isfinite(value).all()) for value in values if value.dtype.kind == "f"),
            )
    except PerframeError as error:
        of_shapes = isinstance(error, (InferenceError, InputError)) and not isinstance(error, BackendError)
        return BackendCheck(backend, str(error), guess=guess if of_shapes else "")


def _weights(model: Model) -> int:
    """The bytes of a model's constants, those of its bodies too."""
    bodies = [body for layer in model.layers for body in layer.inner_models.values()]
    return sum(value.nbytes for value in model.constants.values()) + sum(map(_weights, bodies))


def passes(found: Sequence[BackendCheck], strict: bool) -> bool:
    """Whether the model ran on all backends; with `strict` also whether no layer fell back."""
    return all(one.error is None and not (strict and one.fallbacks) for one in found)


def show(name: str, found: Sequence[BackendCheck], console: Console) -> None:
    """Print the report for a person."""
    from rich.text import Text

    backends = table("backend", "runs", "layers", "weights", "workspace", "first run")
    for one in found:
        if one.error is not None:
            backends.add_row(one.backend, Text("?", "yellow") if one.guess else Text("no", "red"))
            continue
        where = ", ".join(f"{count} on {place}" for place, count in sorted(one.layers.items()))
        sizes = (bytes_text(one.weights), bytes_text(one.workspace), seconds_text(one.first))
        backends.add_row(one.backend, "yes" if one.finite else Text("yes, to NaN or infinity", "yellow"), where, *sizes)
    console.print(Text(name, "bold"), backends, sep="\n")
    if len({sum(one.layers.values()) for one in found if one.error is None}) > 1:
        console.print("each backend joins layers in its own way")
    verdicts: dict[str, list[str]] = {}  # and the backends with each
    for one in found:
        if one.error is not None:
            verdict = "cannot run it"
            if one.guess:
                verdict = f"cannot be judged without sizes. These do not fit: {one.guess}. Set the right ones"
            verdicts.setdefault(f"{verdict}: {one.error}", []).append(one.backend)
    for verdict, names in verdicts.items():
        console.print(Text(f"{', '.join(names)} {verdict}"))
    for one in found:
        for fallback in one.fallbacks:
            text = f"{one.backend}: {fallback.layer} ({fallback.operator}) runs on the CPU: {fallback.reason}"
            console.print(Text(f"{text}; {fallback.elements:,} elements cross over"))
