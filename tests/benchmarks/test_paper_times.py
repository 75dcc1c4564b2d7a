"""The times on paper: the slower of arithmetic and memory, and a launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from paper_times import LAUNCH, Demand, Gpu, table

GPU = Gpu("small", 1e12, 1e11, 4)
CONVOLUTION = Demand("a", "Conv", (1, 8, 8, 8, 4), 10**9, 10**7, 0.5)


def test_idle_lanes_make_arithmetic_slower() -> None:
    assert CONVOLUTION.times(GPU) == pytest.approx((2e-3, 1e-4, LAUNCH))
    assert replace(CONVOLUTION, busy=1.0).times(GPU) == pytest.approx((1e-3, 1e-4, LAUNCH))


def test_equal_layers_share_a_row_and_the_sum_takes_the_slower_time() -> None:
    copy = Demand("c", "Relu", (1, 8), 0, 10**9, 1.0)
    *_, convolutions, relu, total = table([CONVOLUTION, replace(CONVOLUTION, layer="b"), copy], GPU)
    assert convolutions.startswith("| 2 Conv | 1×8×8×8×4 | 2.00 | 20.0 | 50% | 4000 µs | 200 µs |")
    assert "10000 µs" in relu and relu.endswith("| 0% |")
    assert total.startswith("| all: 14.01 ms |") and total.endswith("| 14% |")
