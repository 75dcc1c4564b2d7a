"""The host's time for the launches of a model's plan, on both GL backends: launches of no work, so that nothing else is
timed.

`python tools/launch_cost.py MODEL [NAME=N,...]`, the numbers for the model's open dims. It counts the time of all
threads of the process, which other processes hardly change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time_ns
from typing import Any

import moderngl

import perframe as pf
from perframe.backends.gl.context.devices import device_for
from perframe.command_line.sources import input_arrays, named_model, parse_dims

REPEATS = 300
WORK = {"glDispatchCompute": 1, "glDrawArraysInstanced": 4}  # the word of a call that says how much work it launches


def microseconds(run: Callable[[], object]) -> float:
    """The median time of a call."""
    times = []
    for _ in range(REPEATS):
        begin = process_time_ns()
        run()
        times.append(process_time_ns() - begin)
    return median(times) / 1e3


def without_work(commands: Any, addresses: dict[str, int]) -> int:
    """Let all launches of a command list have no work. Return their number."""
    count = 0
    for name, word in WORK.items():
        rows = commands._words[:, 0] == addresses[name]
        commands._words[rows, word] = 0
        count += int(rows.sum())
    return count


def report(worker: pf.Worker, fed: dict[str, Any], device: Any) -> str:
    """The times of a worker's plan."""
    tensors = {name: worker.empty_input(name, array.shape) for name, array in fed.items()}
    worker.schedule(tensors).peek_output().download_to_array()
    (part,) = worker.parts.planned_parts()
    plan: Any = part.latest_plan
    (commands,) = plan.program._lists.values()
    launches = without_work(commands, device.gl.addresses)
    with device.using():
        empty, run = (microseconds(partial(plan.program.run, 0, end)) for end in (0, len(plan.program)))
    whole = microseconds(partial(worker.schedule, tensors))
    calls, each = len(commands) / launches, (run - empty) / launches
    return f"{launches} launches of {calls:.1f} GL calls, {each:.2f} µs each; a schedule takes {whole:.0f} µs"


def main() -> None:
    """Print the times of a model on both backends."""
    name, dims = [*sys.argv[1:], ""][:2]
    model = pf.load(named_model(name))
    fed = input_arrays(model.inputs, (), parse_dims(dims), 0)
    ctx = moderngl.create_context(standalone=True, backend="egl")
    for backend in ("gpu_compute", "gpu_pixel"):
        with pf.Worker(model, backend, ctx, strict=True) as worker:
            print(f"{backend}: {report(worker, fed, device_for(ctx))}")


if __name__ == "__main__":
    main()
