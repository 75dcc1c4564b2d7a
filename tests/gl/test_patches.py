"""The patches of depthwise convolutions on gpu_compute: they fit, and the data between them is loaded twice seldom."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from perframe.backends.gl.compile.variants import Choices
from perframe.backends.gl.families.block_conv import Patch, _patch, _shape_of, _texels
from perframe.ir.geometry import SlidingWindow

GPU = Choices(("a vendor", "a GPU without choices of its own", "1"))
MOST_SHARED = 2048  # texels: 32 KiB, as much shared memory as GL promises
SIZES = [(56, 56), (112, 112), (28, 28), (17, 17), (60, 80), (1, 300), (300, 1), (1080, 1920), (5, 2000)]


def window(taps: int, stride: int) -> SlidingWindow:
    half = taps // 2
    return SlidingWindow((taps, taps), (stride, stride), (1, 1), (half, half), (half, half))


def patch_of(taps: int, stride: int, map_size: int) -> Patch:
    found = _patch(window(taps, stride), map_size, GPU)
    assert found is not None
    return found


def loads(size: int, extent: int, count: int, taps: int, stride: int) -> Iterator[int]:
    """What the patches along an axis load of so many texels, where each computes `count` pixels of `extent`."""
    for pixel in range(0, extent, count):
        first = pixel * stride - taps // 2
        yield min(first + (count - 1) * stride + taps, size) - max(first, 0)


def bytes_each(patch: Patch, taps: int, stride: int, size: tuple[int, int]) -> float:
    """The bytes that are loaded for a multiply-add of the whole result."""
    output = [-(-extent // stride) for extent in size]
    shape = _shape_of(patch, window(taps, stride), size, tuple(output))
    each = [sum(loads(*axis, taps, stride)) / axis[1] for axis in zip(size, output, shape, strict=True)]
    return math.prod(each) * 16 / (4 * taps**2)


@pytest.mark.parametrize(("taps", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2)])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_patch_fits(taps: int, stride: int, size: tuple[int, int], is_fixed: bool) -> None:
    output = tuple(-(-extent // stride) for extent in size)
    patch = patch_of(taps, stride, math.prod(output) if is_fixed else 0)
    rows, columns = _shape_of(patch, window(taps, stride), size, output)
    assert rows % patch.pixels == 0 and rows // patch.pixels * columns <= patch.lanes
    assert _texels(rows, columns, taps, stride) <= patch.texels <= MOST_SHARED


@pytest.mark.parametrize(
    "size", [(56, 56), (112, 112), (28, 28), (80, 60), (150, 150), (512, 512), (1080, 1920)], ids=str
)
def test_what_patches_load(size: tuple[int, int]) -> None:
    assert bytes_each(patch_of(3, 1, 0), 3, 1, size) <= 0.5  # 0.44, if no value were loaded twice
    assert bytes_each(patch_of(3, 2, 0), 3, 2, size) <= 1.96  # 1.78


def test_a_map_of_fixed_size_takes_a_group_that_it_fills() -> None:
    for size, lanes, pixels in ((7, 64, 1), (14, 256, 1), (28, 320, 4)):
        patch = patch_of(3, 1, size**2)
        assert (patch.lanes, patch.pixels) == (lanes, pixels)
        assert _shape_of(patch, window(3, 1), (size, size), (size, size))[1] == size  # one group for the whole map
        assert bytes_each(patch, 3, 1, (size, size)) == pytest.approx(4 / 9)
