"""A process that runs cases for another one, which sees it die, hang or grow: numbers come in, outcomes go out."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path
from typing import Any


def main(seeds: str, campaign: int, backend: str, memory: int, precision: str) -> None:
    """Serve until there are no more numbers. An outcome is written as soon as perframe's part is known, and again when
    it was compared; the last one counts.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # for output of libraries
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # where it is, for a case that hangs
    warnings.simplefilter("ignore")
    from fuzz import seeds as stored
    from fuzz.outcome import compared, run
    from fuzz.own_files import case_of

    found, ctx = stored.read(Path(seeds)), _context(backend)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    print(json.dumps(["ready"]), file=answers)
    for line in sys.stdin:
        word = line.strip()
        case = case_of(found, campaign, word)
        outcome, runs = run(case, backend, ctx, precision)
        final = outcome.kind != "ran"
        print(json.dumps([outcome.kind, outcome.detail, final]), file=answers)
        if not final:
            outcome = compared(case, runs, precision)
            print(json.dumps([outcome.kind, outcome.detail, True]), file=answers)


def _context(backend: str) -> Any:
    if backend == "cpu":
        return None
    import moderngl

    return moderngl.create_context(standalone=True, backend="egl", require=430 if backend == "gpu_compute" else 330)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
