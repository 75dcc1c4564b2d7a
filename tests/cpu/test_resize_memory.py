"""A resampling with the channels last takes memory for one axis after the other, and not for both at once."""

from __future__ import annotations

import numpy as np

import perframe as pf

CHANNELS, SIDE = 8, 64


def test_lines_are_resampled_in_little_memory() -> None:
    random, functional, graph = np.random.default_rng(2), pf.functional, pf.FunctionalGraph()
    x = graph.add_input("float32", (1, CHANNELS, SIDE, SIDE), "x")
    weights = random.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
    wide = functional.interpolate(functional.conv2d(x, weights), scale_factor=2, mode="bilinear")
    model = graph.compile(y=functional.conv2d(wide, weights))
    with pf.Worker(model) as worker:
        worker.schedule(random.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32))
        worker.peek_output().numpy()
        (use,) = worker.memory_use
    assert use.workspace <= 4 * CHANNELS * (2 * SIDE) ** 2 * 4
