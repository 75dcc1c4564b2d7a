"""Tuning: measures the variants of the GL kernels that a model uses on this device, and keeps the fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from perframe.backends import AUTO, BackendName, backend_type, gl_choices, gl_variants
from perframe.errors import BackendError, InputError
from perframe.execution.inputs import Given
from perframe.execution.once import by_name
from perframe.execution.worker import Worker
from perframe.graphics import GLContext
from perframe.importers.loading import load
from perframe.ir import Model
from perframe.safety.records import dataclass
from perframe.tensor import BackendType

GAIN = 0.95  # of the time before: a variant that saves less is not worth a file


@dataclass(frozen=True)
class Trial:
    """A kernel whose variants were measured: the seconds of a run with each, and the one that it has now."""

    kernel: str
    seconds: Mapping[str, float]
    before: str
    chosen: str


def tune(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    inputs: Mapping[str, Given] | Given,
    backend: BackendName = BackendType.GPU_COMPUTE,
    ctx: GLContext | None = None,
    repeats: int = 9,
    progress: Callable[[str, float], object] | None = None,
) -> list[Trial]:
    """Measure the variants of the kernels that a model uses with these inputs, and keep the fastest of each.

    The kept variants hold for this driver and all models, from the next plan on and in later processes. A variant is
    kept if it saves 5 % of a run. Each variant runs `repeats` times, alternating with the others; the shortest time of
    each step counts.

    `inputs` maps names to arrays; for a model with one input it may be the array itself.

    `progress` is called with the name of the current measurement and the fraction done. Blocks. Raises InputError, and
    BackendError on the CPU and without timer queries.
    """
    where = backend_type(backend, ctx)
    if where is BackendType.CPU:
        chosen = "backend 'auto' chooses the CPU here, and " if backend == AUTO else ""
        raise BackendError(f"{chosen}there is nothing to tune on the CPU: choose the backend gpu_compute or gpu_pixel")
    if not isinstance(repeats, int) or repeats < 1:
        raise InputError(f"tune(repeats) takes an integer of at least 1, and got {repeats!r}")
    loaded = model if isinstance(model, Model) else load(model)
    inputs = by_name(loaded, inputs, "pf.tune")
    choices = gl_choices(ctx)
    choices.asked.clear()
    with Worker(loaded, where, ctx) as worker:
        _step_times(worker, inputs)  # its plan asks for all the variants that it needs
    asked, found = [kernel for kernel in gl_variants() if kernel in choices.asked], []
    for index, kernel in enumerate(asked):
        before, variants = choices[kernel], gl_variants()[kernel]
        times: dict[str, list[float]] = {}
        with ExitStack() as opened:
            workers = {}
            for variant in variants:
                with choices.trying(kernel, variant):
                    workers[variant] = opened.enter_context(Worker(loaded, where, ctx))
                    times[variant] = _step_times(workers[variant], inputs)
            for turn in range(repeats):  # in turns, because other work may disturb some of them
                if progress:
                    progress(kernel, (index + turn / repeats) / len(asked))
                for variant, worker in workers.items():
                    times[variant] = list(map(min, times[variant], _step_times(worker, inputs)))
        seconds = {variant: math.fsum(steps) for variant, steps in times.items()}
        best = min(variants, key=seconds.__getitem__)
        chosen = best if seconds[best] < GAIN * seconds[before] else before
        if chosen != before:
            choices.keep({kernel: chosen})
        found.append(Trial(kernel, seconds, before, chosen))
    return found


def _step_times(worker: Worker, inputs: Mapping[str, Any]) -> list[float]:
    """The seconds of each of a run's steps on the GPU. Raises BackendError if they cannot be measured."""
    where = worker.backend_type
    steps = [step for step in worker.schedule(dict(inputs)).report(1) if step.backend == where]
    times = [step.seconds for step in steps if step.seconds is not None]
    if not steps or len(times) < len(steps):
        raise BackendError(f"the steps on {where} cannot be timed here, so that its kernels cannot be tuned")
    return times
