"""Models for the tests of swaps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import perframe as pf

WIDTH = 160  # a weight of 100 KB: it goes up in pieces
F = pf.functional


def model(seed: int, dims: tuple[Any, ...] = (2, WIDTH), name: str = "x", dtype: str = "float32") -> pf.Model:
    """A model whose weights, and so its results, depend on the seed."""
    random = np.random.default_rng(seed)
    graph = pf.FunctionalGraph(f"m{seed}")
    x = graph.add_input(dtype, dims, name)  # type: ignore[arg-type]
    for _ in range(3):
        x = F.softmax(F.matmul(x, random.normal(size=(WIDTH, WIDTH)).astype(np.float32)), -1) * WIDTH
    return graph.compile(y=x)


X = np.random.default_rng(9).normal(size=(2, WIDTH)).astype(np.float32)


def output(worker: pf.Worker) -> Any:
    return worker.schedule(X).peek_output().download_to_array()


def finished(swap: Any, seconds: float = 60) -> None:
    """Poll until the end of a swap."""
    until = time.monotonic() + seconds
    while not swap.done and time.monotonic() < until:
        time.sleep(0.0005)
    assert swap.done, swap


def settled(worker: pf.Worker) -> None:
    """Run until nothing of earlier models is left."""
    until = time.monotonic() + 60
    while not worker._swaps.is_idle and time.monotonic() < until:
        output(worker)
        time.sleep(0.002)
    assert worker._swaps.is_idle
