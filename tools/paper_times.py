"""The times that a model demands of a GPU on paper: for arithmetic, for memory, and for launches.

`python tools/paper_times.py light_resnet50 --gpu navi21` plans the model on the driver of a GPU that is not here
(drivers.py), and computes the times from the plan's steps. Arithmetic runs at the GPU's peak, on the lanes that have
work: a launch of few work groups leaves units idle, and its last round may. Memory gives its whole bandwidth, and holds
each value once. Nothing overlaps but arithmetic and memory. Real GPUs are slower; none is faster, except that caches
may serve what one step writes and the next one reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from driver_environments import driver_environment

from perframe.errors import BackendError

LAUNCH = 4e-6  # seconds from the end of a dispatch to the begin of one that reads what it wrote


@dataclass(frozen=True)
class Gpu:
    """A GPU's data sheet: operations a second in float32, bytes a second, compute units."""

    name: str
    peak: float
    bandwidth: float
    units: int


GPUS = {
    "navi21": Gpu("RX 6800", 16.17e12, 512e9, 60),
    "renoir": Gpu("Vega 8 of a laptop", 1.79e12, 51.2e9, 8),
}


@dataclass(frozen=True)
class Demand:
    """What a layer demands: operations, bytes, and the share of the GPU's lanes that have work."""

    layer: str
    operator: str
    output: tuple[int, ...]
    operations: int
    bytes: int
    busy: float

    def times(self, gpu: Gpu) -> tuple[float, float, float]:
        """The seconds of arithmetic, of memory, and of the launch."""
        return self.operations / (gpu.peak * self.busy), self.bytes / gpu.bandwidth, LAUNCH


def collect(model: str, gpu: str) -> list[dict[str, Any]]:
    """The demands of each layer of a model on the current driver, as JSON values."""
    import perframe as pf
    from perframe.backends.gl.compute import ComputeBackend, ComputeStep
    from perframe.command_line.sources import likely_arrays, likely_dims, loaded_model

    bind, busy = ComputeBackend.bind, dict[str, float]()

    def noted(backend: ComputeBackend, binding: Any) -> ComputeStep:
        step, units = bind(backend, binding), GPUS[gpu].units
        groups = step.groups
        used = binding.grid[0] * binding.grid[1] * binding.grid[2] or binding.output.shape.size // 4
        busy[binding.layer] = min(1.0, used / step.invocations / (-(-groups // units) * units))
        return step

    ComputeBackend.bind = noted  # type: ignore[method-assign]
    loaded = loaded_model(model)
    with pf.Worker(loaded, "gpu_compute") as worker:
        worker.schedule(likely_arrays(loaded, likely_dims(loaded.inputs)))
        steps = [step for step in worker.report() if step.operator and step.backend == "gpu_compute"]
    return [
        {
            "layer": step.layer,
            "operator": step.operator,
            "output": [*(step.outputs[0] or ())],
            "operations": step.operations or 0,
            "bytes": step.bytes,
            "busy": busy.get(step.layer, 1.0),
        }
        for step in steps
    ]


def table(demands: Sequence[Demand], gpu: Gpu) -> Iterator[str]:
    """Markdown: a row for layers of the same demand, in the order in which the first of them runs, and one for all."""
    yield "| layers | result | GFLOP | MB | busy lanes | arithmetic | memory | launches | share of peak |"
    yield "|---" * 9 + "|"
    alike: dict[tuple[Any, ...], list[Demand]] = {}
    for demand in demands:
        key = (demand.operator, demand.output, demand.operations, demand.bytes, demand.busy)
        alike.setdefault(key, []).append(demand)
    total = 0.0
    for some in alike.values():
        one, count = some[0], len(some)
        arithmetic, memory, launch = one.times(gpu)
        time = max(arithmetic, memory) + launch
        total += count * time
        yield (
            f"| {count} {one.operator} | {'×'.join(map(str, one.output))} | {count * one.operations / 1e9:.2f} | "
            f"{count * one.bytes / 1e6:.1f} | {one.busy:.0%} | {count * arithmetic * 1e6:.0f} µs | "
            f"{count * memory * 1e6:.0f} µs | {count * launch * 1e6:.0f} µs | "
            f"{one.operations / time / gpu.peak:.0%} |"
        )
    sums = [sum(times) for times in zip(*(demand.times(gpu) for demand in demands), strict=True)]
    operations, size = (sum(demand.operations for demand in demands), sum(demand.bytes for demand in demands))
    yield (
        f"| all: {total * 1e3:.2f} ms | | {operations / 1e9:.2f} | {size / 1e6:.1f} | | "
        + " | ".join(f"{time * 1e6:.0f} µs" for time in sums)
        + f" | {operations / total / gpu.peak:.0%} |"
    )


def main(
    model: str,
    gpu: Annotated[str, typer.Option(help=", ".join(GPUS))] = "navi21",
    as_json: Annotated[bool, typer.Option("--json", help="Print the demands, on the current driver.")] = False,
) -> None:
    """Print the times that a model demands on paper."""
    if gpu not in GPUS:
        raise typer.BadParameter(f"{gpu!r} is none of {', '.join(GPUS)}", param_hint="--gpu")
    if as_json:
        print(json.dumps(collect(model, gpu)))
        return
    command = [sys.executable, str(Path(__file__)), model, "--gpu", gpu, "--json"]
    done = subprocess.run(command, env={**os.environ, **driver_environment(gpu)}, capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"{model} cannot be planned on {gpu}: {done.stderr[-2000:]}")
    demands = [Demand(**(found | {"output": tuple(found["output"])})) for found in json.loads(done.stdout)]
    print("\n".join(table(demands, GPUS[gpu])))


if __name__ == "__main__":
    typer.run(main)
