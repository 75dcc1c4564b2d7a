"""What a new input shape costs on the CPU: `python tools/new_shapes.py MODEL NAME=N,... NAME=N,...`.

For each set of dims a fresh worker runs the first set until it is warm and then this one: its first run, upload and
readback included, against the median of the runs after it. The middle of several workers counts.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import perframe as pf
from perframe.sources import input_arrays, named_model, parse_dims

WORKERS, WARM, STEADY = 5, 20, 20


def seconds(worker: pf.Worker, feed: dict[str, Any]) -> float:
    """A run from upload to readback."""
    begin = time.perf_counter()
    worker.schedule(feed).peek_output().download_to_array()
    return time.perf_counter() - begin


def main() -> None:
    """Print a table."""
    name, *sets = sys.argv[1:]
    model = pf.load(named_model(name))
    feeds = [input_arrays(model.inputs, (), parse_dims(text)) for text in sets]
    print("| dims | first run | steady | ratio |\n|---|---|---|---|")
    for text, feed in zip(sets[1:], feeds[1:], strict=True):
        firsts, steadies = [], []
        for _ in range(WORKERS):
            with pf.Worker(model) as worker:
                for _ in range(WARM):
                    seconds(worker, feeds[0])
                firsts.append(seconds(worker, feed))
                steadies.append(median(seconds(worker, feed) for _ in range(STEADY)))
        first, steady = median(firsts), median(steadies)
        print(f"| {text} | {first * 1e3:.2f} ms | {steady * 1e3:.2f} ms | {first / steady:.2f} |")


if __name__ == "__main__":
    main()
