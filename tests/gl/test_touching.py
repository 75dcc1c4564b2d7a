"""Memory that is used before the driver asks for it."""

from __future__ import annotations

import sys

import pytest

from fresh import run_fresh
from perframe.backends.gl.storage.touching import LEAST, MOST, touched

FAULTS = """
import resource, sys
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.texels import SHEETS
from perframe.backends.gl.storage.touching import touched

def faults(make):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept.append(make())
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

kept, size = [], 9 << 20
device = device_for(None)
with device.using():
    make = {
        "gpu_compute": lambda: device.buffer(size),
        "gpu_pixel": lambda: device.texture((64, size // (64 * 16 * SHEETS)), "float"),
    }[sys.argv[1]]
    make()
    fresh = faults(make)
    steps = 0
    for _ in touched(size):
        steps += 1
    after = faults(make)
assert not device._is_llvmpipe or fresh > 2000, fresh
assert after < 50 and steps > 30, (after, steps)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")
def test_a_driver_gets_pages_that_were_used(where: str) -> None:
    run_fresh(FAULTS, where)


@pytest.mark.parametrize("size", [0, LEAST - 1, MOST + 1])
def test_small_and_huge_blocks_are_left_to_the_driver(size: int) -> None:
    assert not list(touched(size))


def test_a_step_that_is_not_taken_frees_the_block() -> None:
    steps = touched(MOST)
    next(steps)
    steps.close()
    assert next(steps, 0) == 0
