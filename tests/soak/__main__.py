"""`python -m soak SCENARIO BACKEND [ROUNDS]`: runs a scenario, which fails if a count grows too much."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from soak import host_scenarios as host_scenarios  # it adds its own
from soak import state_scenarios as state_scenarios
from soak.scenarios import SCENARIOS
from soak.watch import watch


def main(name: str, backend: str, rounds: str = "") -> None:
    """Run one scenario. Print its last sample, and the counts that grew."""
    scenario, began = SCENARIOS[name], time.monotonic()
    count = int(rounds or scenario.full)
    ctx: Any = None
    if backend != "cpu":
        import moderngl

        ctx = moderngl.create_context(standalone=True, backend="egl")
    running, milliseconds = scenario.run(backend, ctx), np.zeros(count)
    report = watch(timed(running, milliseconds), count)
    middle, slow = np.percentile(milliseconds[count // 2 :], (50, 99))
    print(f"{name} on {backend}: {count} rounds in {time.monotonic() - began:.0f} s")
    print(f"a round of the second half: p50 {middle:.2f} ms, p99 {slow:.2f} ms, ratio {slow / middle:.2f}")
    print(json.dumps({"held": report.samples[-1], "grown": report.grown()}))
    if too_much := report.too_much():
        sys.exit("\n".join(too_much))
    running.close()


def timed(rounds: Iterator[None], milliseconds: NDArray[np.float64]) -> Iterator[None]:
    """Go through the rounds, and note what each takes. The array is as long as the run: nothing grows by the way."""
    for index in range(len(milliseconds)):
        begin = time.perf_counter()
        next(rounds)
        milliseconds[index] = (time.perf_counter() - begin) * 1e3
        yield


if __name__ == "__main__":
    main(*sys.argv[1:])
