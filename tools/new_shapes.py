"""Measures the cost of a new input shape: `python tools/new_shapes.py MODEL [BACKEND] NAME=N,... NAME=N,...`.

For each set of dims a fresh worker runs the first set until it is warm and then this one: its first run, upload and
readback included, against the median of the runs after it; one run after the other, and one in each frame of 1/60 s.
The middle of several workers counts.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import perframe as pf
from perframe.command_line.sources import input_arrays, named_model, parse_dims

WORKERS, WARM, STEADY = 11, 20, 20
FRAME = 1 / 60


def seconds(worker: pf.Worker, feed: dict[str, Any], pause: float) -> float:
    """A run from upload to readback, after a pause."""
    time.sleep(pause)
    begin = time.perf_counter()
    worker.schedule(feed).peek_output().download_to_array()
    return time.perf_counter() - begin


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


def main() -> None:
    """Print a table."""
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
