"""Histograms that widen, and the ranges that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from passes.graphs import random
from perframe.quantization.numbers import asymmetric, best_symmetric, rounded, symmetric
from perframe.quantization.ranges import BINS, Histogram, joined, range_of
from perframe.tensor import DataType

UINT8 = DataType.UINT8


def of(*parts: object) -> Histogram:
    made = Histogram()
    for part in parts:
        made.add(np.asarray(part, np.float32))
    return made


def test_parts_count_like_the_whole() -> None:
    values = random(4000, seed=1)
    values[3000:] *= 20
    parts, whole = of(values[:100], values[100:3000], values[3000:]), of(values)
    assert (parts.low, parts.high, parts.reach) == (whole.low, whole.high, whole.reach)
    np.testing.assert_array_equal(parts.counts, whole.counts)
    assert whole.counts.sum() == 4000
    together = joined([of(values[:100]), of(values[3000:]), of(values[100:3000])])
    np.testing.assert_array_equal(together.counts, whole.counts)


def test_the_largest_value_has_a_bin() -> None:
    found = of([1.0, -1.0, 0.0])
    assert found.counts[[0, BINS // 2, BINS - 1]].tolist() == [1, 1, 1]


def test_zeros_and_nothing() -> None:
    for found in (of(), of([]), of([0.0, 0.0])):
        for method in ("min-max", "percentile", "mse"):
            assert range_of(found, method, UINT8) == (0, 0)
    assert of([0, 0], [2]).counts.sum() == 1, "zeros before the first other value need no bin"


@pytest.mark.parametrize("sign", [1, -1])
def test_an_outlier_is_clipped(sign: int) -> None:
    values = random(100_000, seed=3) * sign
    values[0] = 1000 * sign
    found = of(values)
    assert range_of(found, "min-max", UINT8)[sign > 0] == 1000 * sign
    assert 3 < abs(range_of(found, "percentile", UINT8)[sign > 0]) < 6
    low, high = range_of(found, "mse", UINT8)
    assert 3 < (high if sign > 0 else -low) <= 1000

    def loss(method: str) -> float:
        scales = asymmetric(*range_of(found, method, UINT8), UINT8)
        assert scales.zero is not None
        back = (rounded(values, scales, UINT8) - scales.zero.astype(np.float32)) * scales.scale
        return float(np.square(back - values).sum())

    assert loss("mse") <= min(loss("min-max"), loss("percentile")) * 1.01


@pytest.mark.parametrize("values", [[0.5, 3.0], [-3.0, -0.5]])
def test_a_range_holds_zero(values: list[float]) -> None:
    low, high = range_of(of(values), "min-max", UINT8)
    assert low <= 0 <= high
    scales = asymmetric(low, high, UINT8)
    assert scales.zero is not None
    back = (
        rounded(np.array([0.0, *values], np.float32), scales, UINT8) - scales.zero.astype(np.float32)
    ) * scales.scale
    np.testing.assert_allclose(back, [0, *values], atol=float(scales.scale) / 2)


def test_few_numbers_lose_less_with_a_smaller_range() -> None:
    blocks = random(200, 32, seed=1)
    best, whole = (
        best_symmetric(blocks, DataType.INT4, 1),
        symmetric(np.abs(blocks).max(1, keepdims=True), DataType.INT4),
    )

    def loss(scale: np.ndarray) -> float:
        return float(np.square(np.clip(np.rint(blocks / scale), -8, 7) * scale - blocks).sum())

    assert loss(best.scale) < 0.95 * loss(whole.scale)
    assert (best.scale <= whole.scale).all()


def test_weights_that_are_all_zero() -> None:
    scales = symmetric(np.zeros(3), DataType.INT8)
    assert scales.scale.tolist() == [1, 1, 1]
