"""A recurrent model for tests of states."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf
from perframe import functional as F

RNG = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape, np.float32)


def recurrent(shape: tuple[Any, ...], joined: bool = False) -> pf.Model:
    """y = next = tanh(x + state / 2), or that joined with itself along the last axis."""
    graph = pf.FunctionalGraph()
    x, state = graph.add_input("float32", shape, "x"), graph.add_input("float32", shape, "state")
    after = F.tanh(x + state * 0.5)
    if joined:
        half = F.split(after, shape[-1] // 2, -1)
        after = F.concat([half[1], F.relu(half[0])], -1)
    return graph.compile(y=after * 2, next=after)


def step(x: Any, state: Any, joined: bool = False) -> Any:
    after = np.tanh(x + state * np.float32(0.5))
    if joined:
        first, second = np.split(after, 2, -1)
        after = np.concatenate([second, np.maximum(first, 0)], -1)
    return after
