"""Measures frames while a worker's model is swapped: `python tools/swap_times.py [LIGHT_MODEL] [BACKEND...]`.

An app of 60 frames a second works some milliseconds in each frame, runs a model within a budget, and swaps it for one
of the same shape with other weights. Each frame counts with the CPU time of its thread, and by the clock, against the
median of all frames. `--other LIGHT_MODEL` swaps for another architecture, and `--file` for a file, which is loaded.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import perframe as pf
from perframe.host import App
from perframe.host.surface import BlankSurface
from perframe.importers.light import light_model

FRAME = 1 / 60
BESIDE, SECONDS = 90, 60.0  # frames before and after the swap; the longest wait for its end
ALLOWED = 1.2  # times the median


class Cost(NamedTuple):
    """Milliseconds of one frame, and the stage of the swap: empty before it and after it."""

    cpu: float
    wall: float
    stage: str


class Swapping(pf.Script):
    """Works, runs a model within a budget, and swaps it."""

    def __init__(self, worker: pf.Worker, x: Any, work_ms: float, budget_ms: float) -> None:
        self.worker, self.x, self.work_ms, self.budget_ms = worker, x, work_ms, budget_ms

    def update(self, frame: pf.Frame) -> None:
        """Work in Python for some milliseconds of CPU time."""
        end = time.thread_time() + self.work_ms / 1000
        while time.thread_time() < end:
            pass
        self.app.schedule(self.worker, self.x, budget_ms=self.budget_ms)


def measured(worker: pf.Worker, x: Any, other: Any, work_ms: float, budget_ms: float) -> tuple[list[Cost], float]:
    """The cost of each frame, and the seconds of the swap."""
    costs, swap, began, seconds, after = list[Cost](), None, 0.0, 0.0, 0
    with App(surface=BlankSurface((64, 36)), stop_on_error=True) as app:
        app.add(Swapping(worker, x, work_ms, budget_ms))
        for _ in range(20):
            app.loop_once()
        due = time.perf_counter()
        while after < BESIDE and seconds < SECONDS:
            if len(costs) == BESIDE:
                swap, began = worker.swap(other), time.perf_counter()
            stage = "" if swap is None or swap._state != "pending" else swap.doing
            wall, cpu = time.perf_counter(), time.thread_time()
            app.loop_once()
            costs.append(Cost((time.thread_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3, stage))
            if swap is not None and swap._state != "pending":
                after += 1
            elif swap is not None:
                seconds = time.perf_counter() - began
            due = max(due + FRAME, time.perf_counter())
            time.sleep(due - time.perf_counter() if due > time.perf_counter() else 0)
    if swap is None or swap._state == "pending":
        raise SystemExit(f"after {seconds:.0f} s and {len(costs)} frames: {swap!r}")
    swap.result()
    return costs, seconds


def told(costs: list[Cost], what: str) -> str:
    """The median and the largest cost, and the number of frames beyond the allowed one."""
    values = [getattr(cost, what) for cost in costs]
    middle, most = median(values), max(values)
    over = sum(value > ALLOWED * middle for value in values)
    return f"{middle:.2f} | {most:.2f} | {most / middle:.2f} | {over} of {len(values)}"


def main() -> None:
    """Print a table for each backend."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="light_resnet50")
    parser.add_argument("backends", nargs="*", default=["cpu", "gpu_compute", "gpu_pixel"])
    parser.add_argument("--other")
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--work", type=float, default=8.0, help="milliseconds of CPU time that each frame works")
    parser.add_argument("--budget", type=float, default=4.0, help="milliseconds of the run in each frame")
    parser.add_argument("--stages", action="store_true", help="the frames over and the largest cost in each stage, too")
    given = parser.parse_args()
    model, data = pf.load(light_model(given.model)), light_model(given.other or given.model, seed=1)
    shape = [dim if isinstance(dim, int) else 1 for dim in model.inputs[0].shape or ()]
    x = np.random.default_rng(0).random(shape, np.float32)
    print(
        "| backend | measured | median ms | most ms | ratio | frames over 1.2 | swap s |\n|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "other.onnx")
        path.write_bytes(data)
        for backend in given.backends:
            with pf.Worker(model, backend) as worker:
                worker.warmup(x)
                costs, seconds = measured(worker, x, path if given.file else pf.load(path), given.work, given.budget)
            for what in ("cpu", "wall"):
                print(f"| {backend} | {what} | {told(costs, what)} | {seconds:.1f} |", flush=True)
            for stage in dict.fromkeys(cost.stage for cost in costs) if given.stages else ():
                some = [cost for cost in costs if cost.stage == stage]
                most = [max(getattr(cost, what) for cost in some) for what in ("cpu", "wall")]
                over = sum(cost.cpu > ALLOWED * median(each.cpu for each in costs) for cost in some)
                figures = f"{over} of {len(some)} frames over, cpu {most[0]:.2f}, wall {most[1]:.2f}"
                print(f"    {stage or 'none'}: {figures}")


if __name__ == "__main__":
    main()
