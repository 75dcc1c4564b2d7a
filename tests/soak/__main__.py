"""`python -m soak SCENARIO BACKEND [ROUNDS]`: runs a scenario, which fails if a count grows too much."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from soak import host_scenarios as host_scenarios  # it adds its own
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
    running = scenario.run(backend, ctx)
    report = watch(running, count)
    print(f"{name} on {backend}: {count} rounds in {time.monotonic() - began:.0f} s")
    print(json.dumps({"held": report.samples[-1], "grown": report.grown()}))
    if too_much := report.too_much():
        sys.exit("\n".join(too_much))
    running.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
