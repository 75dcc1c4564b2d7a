"""`perframe warmup`: fills the cache of compiled kernels and GL programs ahead of time, so that no frame waits for a
compiler.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import Console, console, say, say_json, seconds_text
from perframe.safety.wording import counted

if TYPE_CHECKING:
    from perframe.backends import BackendName
    from perframe.backends.precision import Precision


@takes_key
def warmup(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="Model files, or names of known models.")],
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
    backend: options.BackendOption = "auto",
    weights: options.Weights = "float32",
    activations: options.Activations = "float32",
) -> None:
    """Compile the kernels that models need ahead, so their first frame does not wait."""
    from perframe.backends.precision import Precision
    from perframe.command_line.sources import parse_dims

    (place,) = options.check_backends([backend])
    found, precision = [], Precision(weights, activations)
    for model in models:
        found.append(warm_up(model, parse_dims(dims), seed, place, precision))
        if not as_json:
            show(found[-1], console())
    if as_json:
        say_json({"folder": str(folder()), "models": [asdict(warmth) for warmth in found]})
    elif os.access(folder(), os.W_OK):  # otherwise the log has named the folder
        say(f"kernels are kept in {folder()}")


@dataclass(frozen=True)
class Warmth:
    """The kernels that were compiled for one model, and the time it took."""

    model: str
    backend: BackendName
    seconds: float
    compiled: list[str]  # kernels that were not in the cache, by file and function


def warm_up(model: str, dims: Mapping[str, int], seed: int, backend: BackendName, precision: Precision) -> Warmth:
    """Run a model once with random inputs, so that all its kernels are compiled and stored in the cache: the CPU's
    kernels, or programs of GL where the driver gives them away.

    A kernel does not depend on shapes, but the choice of kernels may. Raises ModelError, InputError, BackendError.
    """
    from perframe.backends import compiled_kernels
    from perframe.command_line.sources import loaded_model, model_inputs
    from perframe.execution.worker import Worker

    _, compiled = compiled_kernels()
    before, start = len(compiled), time.perf_counter()
    loaded = loaded_model(model, seed)
    with Worker(loaded, backend, **asdict(precision)) as worker:
        worker.warmup(model_inputs(loaded, (), dims, seed)[0])
    return Warmth(model, backend, time.perf_counter() - start, [text.split()[0] for text in compiled[before:]])


def folder() -> Path:
    """The folder of the compiled kernels."""
    from perframe.backends import compiled_kernels

    return compiled_kernels()[0]


def show(warmth: Warmth, console: Console) -> None:
    """Print the report for a person."""
    if warmth.backend != "cpu":
        console.print(f"{warmth.model}: the programs of {warmth.backend} are ready, in {seconds_text(warmth.seconds)}")
        return
    names = sorted(set(warmth.compiled))
    listed = (
        ", ".join(f"{name} ×{warmth.compiled.count(name)}" for name in names)
        or "all came with perframe or were in the cache"
    )
    kernels = counted(len(warmth.compiled), "kernel")
    console.print(f"{warmth.model}: {kernels} compiled in {seconds_text(warmth.seconds)}: {listed}")
