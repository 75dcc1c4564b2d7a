"""The memory that layers take for their own work is small beside their data."""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.typing import NDArray

import perframe as pf
from fresh import run_fresh

CHANNELS, SIDE = 8, 64
random = np.random.default_rng(2)


def workspace(model: pf.Model, x: NDArray[np.float32]) -> int:
    """The bytes of the values within a run."""
    with pf.Worker(model) as worker:
        worker.schedule(x).peek_output().numpy()
        (use,) = worker.memory_use
        return use.workspace


def test_a_resampling_takes_memory_for_one_axis_after_the_other() -> None:
    functional, graph = pf.functional, pf.FunctionalGraph()
    x = graph.add_input("float32", (1, CHANNELS, SIDE, SIDE), "x")
    weights = random.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
    wide = functional.interpolate(functional.conv2d(x, weights), scale_factor=2, mode="bilinear")
    model = graph.compile(y=functional.conv2d(wide, weights))
    taken = workspace(model, random.standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32))
    assert taken <= 4 * CHANNELS * (2 * SIDE) ** 2 * 4


def test_tiles_take_memory_for_each_thread_and_not_for_each_image() -> None:
    functional, graph, channels = pf.functional, pf.FunctionalGraph(), 16
    x = graph.add_input("float32", ("batch", channels, 24, 24), "x")
    weights = random.standard_normal((channels, channels, 3, 3)).astype(np.float32)
    between = functional.conv2d(x, weights, padding=1)
    model = graph.compile(y=functional.conv2d(between, weights, padding=1))
    few, many = (
        workspace(model, random.standard_normal((batch, channels, 24, 24)).astype(np.float32)) for batch in (40, 80)
    )
    image = channels * 24 * 24 * 4
    assert many - few <= 3 * 40 * image  # the input, what is between, and the result; the tiles have 36 / 16 as many


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_the_rooms_that_threads_of_its_parent_had_taken() -> None:
    """Else its threads would wait for threads that it does not have."""
    run_fresh(
        """
import os
from perframe.backends.cpu.lowering.winograd import _Rooms
rooms = _Rooms(2)
rooms.words[:] = 1
child = os.fork()
if not child:
    os._exit(int(rooms.words.any()))
assert os.waitpid(child, 0)[1] == 0 and rooms.words.all()
"""
    )
