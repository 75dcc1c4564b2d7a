"""Measures the cost of a new input shape: `python tools/new_shapes.py MODEL [BACKEND] NAME=N,... NAME=N,...`.

For each set of dims a fresh worker runs the first set until it is warm and then this one: its first run, upload and
readback included, against the median of the runs after it; one run after the other, and one in each frame of 1/60 s.
The middle of several workers counts.

`python tools/new_shapes.py --lengths BACKEND MODEL...` measures the CPU time of models that leave a length open: one
worker runs some lengths until its templates are made, and then others, each for the first time and again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import perframe as pf
from perframe.command_line.sources import input_arrays, named_model, parse_dims

WORKERS, WARM, STEADY = 11, 20, 20
FRAME = 1 / 60
KNOWN = [24, 33, 40, 20, 29, 26, 31, 48, 35, 22, 37, 44]  # of each remainder by 4: a texel holds four numbers
NEW = [28, 39, 30, 25, 38, 27, 34, 36, 23, 32, 21, 43, 46, 41, 45, 47]
SETTLE = 0.2  # seconds


def seconds(
    worker: pf.Worker, feed: dict[str, Any], pause: float = 0.0, clock: Callable[[], float] = time.perf_counter
) -> float:
    """A run from upload to readback, after a pause."""
    time.sleep(pause)
    begin = clock()
    worker.schedule(feed).peek_output().download_to_array()
    return clock() - begin


def measured(
    model: pf.Model, backend: str, usual: dict[str, Any], new: dict[str, Any], pause: float
) -> tuple[float, float]:
    """The first run with a new shape, and the median of those after it."""
    firsts, steadies = [], []
    for _ in range(WORKERS):
        with pf.Worker(model, pf.BackendType(backend)) as worker:
            for _ in range(WARM):
                seconds(worker, usual, pause)
            firsts.append(seconds(worker, new, pause))
            steadies.append(median(seconds(worker, new, pause) for _ in range(STEADY)))
    return median(firsts), median(steadies)


def of_lengths(name: str, backend: str) -> tuple[float, float, float]:
    """The first runs of new lengths by steady ones, in CPU time of the process: the median, their sums' ratio, and the
    seconds of a steady run. Open dims that are called a batch are 1, and all others have the length.
    """
    model = pf.load(named_model(name))
    dims = {str(dim) for value in model.inputs for dim in value.shape or () if not isinstance(dim, int)}

    def feed(length: int) -> dict[str, Any]:
        return input_arrays(model.inputs, (), {dim: 1 if "batch" in dim else length for dim in dims})

    def cpu_seconds(given: dict[str, Any]) -> float:
        return seconds(worker, given, clock=time.process_time)

    firsts, steadies = [], []
    with pf.Worker(model, pf.BackendType(backend)) as worker:
        for length in KNOWN * 2:
            for _ in range(2):
                cpu_seconds(feed(length))
            time.sleep(SETTLE)  # jobs make templates
        for length in NEW:
            given = feed(length)
            firsts.append(cpu_seconds(given))
            steadies.append(median(cpu_seconds(given) for _ in range(7)))
    ratios = [first / steady for first, steady in zip(firsts, steadies, strict=True)]
    return median(ratios), sum(firsts) / sum(steadies), median(steadies)


def main() -> None:
    """Print a table."""
    if sys.argv[1] == "--lengths":
        _, _, backend, *names = sys.argv
        print("| model | median | sum | steady |\n|---|---|---|---|")
        for name in names:
            middle, ratio, steady = of_lengths(name, backend)
            print(f"| {Path(name).stem} | {middle:.3f} | {ratio:.3f} | {steady * 1e3:.1f} ms |", flush=True)
        return
    name, *sets = sys.argv[1:]
    backend = "cpu" if "=" in sets[0] else sets.pop(0)
    model = pf.load(named_model(name))
    usual, *feeds = [input_arrays(model.inputs, (), parse_dims(text)) for text in sets]
    print("| dims | first run | steady | ratio | first in frames | steady in frames | ratio |")
    print("|---|---|---|---|---|---|---|")
    for text, new in zip(sets[1:], feeds, strict=True):
        cells = []
        for pause in (0.0, FRAME):
            first, steady = measured(model, backend, usual, new, pause)
            cells += [f"{first * 1e3:.2f} ms", f"{steady * 1e3:.2f} ms", f"{first / steady:.2f}"]
        print(f"| {text} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
