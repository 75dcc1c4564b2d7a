"""NumPy's convolutions and pools have two ways each, which agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from perframe.backends.cpu.families import conv, pool
from perframe.ir.geometry import window
from perframe.layers.conv import Convolution
from perframe.layers.pool import Pooling

# size, kernel, strides, dilations, pads; a negative pad cuts, and a window may lie in the padding only
WINDOWS = [
    ((9, 7), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((9, 7), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((9, 7), (2, 3), (2, 3), (2, 1), (0, 3, 2, 1)),
    ((9, 7), (3, 2), (1, 2), (1, 2), (-2, 0, 1, -1)),
    ((11,), (4,), (3,), (2,), (3, 5)),
    ((5, 4, 6), (2, 3, 2), (1, 1, 2), (1, 1, 2), (0, 1, 1, 1, 1, 0)),
    ((4, 4), (2, 2), (2, 2), (1, 1), (4, 3, 4, 3)),
]
Ints = Sequence[int]


def _output(size: Ints, kernel: Ints, strides: Ints, dilations: Ints, pads: Ints) -> tuple[int, ...]:
    rank = len(size)
    return tuple(
        (size[i] + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)
    )


@pytest.mark.parametrize("given", WINDOWS, ids=str)
@pytest.mark.parametrize("most", [1, 1 << 20])
def test_convolutions_by_pixels_and_by_channels(
    given: tuple[Ints, Ints, Ints, Ints, Ints], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conv, "MOST_SEEN", most)  # a row at a time, or all of them
    generator, size, output = np.random.default_rng(0), given[0], _output(*given)
    seen = window(*given, "NOTSET")
    assert seen is not None
    form = Convolution(seen, 1, 2, 3, 5, tuple(size), output)
    x = np.moveaxis(generator.random((2, *size, 3), np.float32), -1, 1)
    weights = generator.random((5, 3, *given[1]), np.float32)
    made, expected = conv._by_pixels(form, x, weights), conv._by_channels(form, x, weights)
    assert made.shape == expected.shape == (2, 5, *output)
    np.testing.assert_allclose(made, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("given", [one for one in WINDOWS if min(one[4]) >= 0], ids=str)
def test_the_largest_elements_with_and_without_their_indices(
    given: tuple[Ints, Ints, Ints, Ints, Ints], dtype: str
) -> None:
    generator, size, output = np.random.default_rng(0), given[0], _output(*given)
    seen = window(*given, "NOTSET")
    assert seen is not None
    form = Pooling("largest", seen, 3, tuple(size), output)
    x = (generator.standard_normal((3, *size)) * 40).astype(dtype)
    if dtype == "float32":
        x.flat[:3] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(pool._pool(form, x), pool._largest(form, x)[0])
