"""A process that judges random graphs for another one, which sees it die or hang: numbers come in, verdicts go out."""

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


def main(campaign: int, backend: str, memory: int, save: str) -> None:
    """Serve until there are no more numbers. What fails is made smaller, and saved."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    warnings.simplefilter("ignore")
    import logging

    logging.disable(logging.WARNING)
    from fuzz.random_graphs.graph import random_graph
    from fuzz.random_graphs.judge import judged
    from fuzz.random_graphs.plain import prepared_like, without_kernels
    from fuzz.random_graphs.saving import reduced_and_saved

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    target, _, like = backend.partition(":")
    if target == "numpy":
        without_kernels()
        prepared_like(like or "cpu")
        target = "cpu"
    ctx = context(target)
    print(json.dumps(["ready"]), file=answers)
    for line in sys.stdin:
        graph = random_graph(campaign, int(line), few=backend == "cpu")
        if save:
            Path(save).mkdir(parents=True, exist_ok=True)
        verdict = judged(graph.model, graph.feeds, target, ctx)
        detail = f"{verdict.where} {verdict.what}"
        if verdict.kind != "ok" and save:
            print(json.dumps([verdict.kind, detail, False]), file=answers)
            detail = reduced_and_saved(graph, verdict, target, ctx, Path(save), backend)
        print(json.dumps([verdict.kind, detail, True]), file=answers)


def context(backend: str) -> Any:
    """A GL context for a backend that wants one."""
    if backend == "cpu":
        return None
    import moderngl

    return moderngl.create_context(standalone=True, backend="egl", require=430 if backend == "gpu_compute" else 330)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
