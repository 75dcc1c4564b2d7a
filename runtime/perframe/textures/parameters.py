"""The numbers of the passes that fill tensors from pictures and draw tensors into pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.tensor import DataType
from perframe.textures.filters import FILTERS, FilterWeights, weights
from perframe.textures.layout import BATCH, CHANNELS, HEIGHT, WIDTH, Dims, steps_of
from perframe.textures.regions import Matrix
from perframe.textures.transform import COLOR_CONVERSIONS, WHOLE_RANGES, PictureMap, TextureTransform

_DIRECT = {"nearest": 0, "linear": 1, "mipmap": 2}
_GRID = 1 << 16  # parts of a pixel: finer places of a region are rounded
_MOST = 1 << 31  # shaders compute with 32 bits
KEPT = 256  # rows: most frames ask for those of the frame before


def sampling_params(
    how: TextureTransform, size: tuple[int, int], levels: int, dims: Dims, dtype: DataType
) -> dict[str, Any]:
    """The parameters of the pass that reads pixels one by one. `levels` is the number of the mipmap's levels."""
    placed = how.place(size, *dims[1:])
    (x, y, _, _), (left, top, _, _), (across, down) = placed.region, placed.box, placed.scale
    x, y = x - left * across, y - top * down
    flipped = how.coord_origin == "bottom_left"
    level = min(max(math.log2(max(across, down)), 0.0), levels - 1.0) if how.resample == "mipmap" else 0.0
    return {
        "texture_size": size,
        "origin": (x, size[1] - y) if flipped else (x, y),
        "scale": (across, -down if flipped else down),
        "resample": _DIRECT[how.resample],
        "level": level,
        "flipped": int(flipped),
        **_warp_params(placed, flipped, size),
        **(_sampled_pixels(placed) if how.resample == "nearest" and placed.warp is None else NOT_NEAREST),
        **_element_params(how, placed.box, dims, dtype),
    }


def _warp_params(placed: PictureMap, flipped: bool, size: tuple[int, int], back: bool = False) -> dict[str, Any]:
    """The matrix from elements to texels, or back, row by row, for a region that is not upright."""
    matrix: Matrix = np.eye(3)
    if placed.warp is not None:
        upward = np.array([[1, 0, 0], [0, -1, size[1]], [0, 0, 1]]) if flipped else np.eye(3)  # it is its own inverse
        matrix = upward @ placed.warp.of_box(placed.box)
    rows = np.linalg.inv(matrix) if back else matrix
    names = ("warp_across", "warp_down", "warp_behind")
    return {
        "warped": int(placed.warp is not None),
        **{name: (*map(float, row), 0.0) for name, row in zip(names, rows, strict=True)},
    }


def _sampled_pixels(placed: PictureMap) -> dict[str, tuple[int, ...]]:
    """The pixels that "nearest" takes, counted from the picture's top left."""
    (x, y, w, h), (_, _, wide, high) = placed.region, placed.box
    return nearest_uniforms(nearest_sampled(x, w, wide), nearest_sampled(y, h, high))


def crop_params(
    how: TextureTransform, size: tuple[int, int], dims: Dims, dtype: DataType, items: int, numbers: int
) -> dict[str, Any]:
    """The parameters of the pass that crops regions, each of which has some `numbers`."""
    return {
        "texture_size": size,
        "resample": _DIRECT[how.resample],
        "flipped": int(how.coord_origin == "bottom_left"),
        "numbers": numbers,
        **_element_params(how, (0, 0, dims[2], dims[1]), dims, dtype),
        "items": items,
        "steps": _steps(how, dims, items),
    }


def filter_weights(how: TextureTransform, size: tuple[int, int], dims: Dims) -> tuple[FilterWeights, FilterWeights]:
    """The weights of a filter across and down, counted from the picture's top left."""
    placed = how.place(size, *dims[1:])
    x, y, w, h = placed.region
    _, _, wide, high = placed.box
    return weights(how.resample, x, w, wide, size[0]), weights(how.resample, y, h, high, size[1])


def filter_params(how: TextureTransform, size: tuple[int, int], dims: Dims, dtype: DataType) -> dict[str, Any]:
    """The parameters of the passes of a filter, without those that depend on its weights."""
    return _element_params(how, how.place(size, *dims[1:]).box, dims, dtype)


def is_filtered(how: TextureTransform) -> bool:
    """Whether an element reads all pixels under it."""
    return how.resample in FILTERS


def _element_params(how: TextureTransform, box: tuple[int, ...], dims: Dims, dtype: DataType) -> dict[str, Any]:
    """The conversion of a color, and the fill of the letterbox."""
    channels, height, width = dims
    mean, std = how.normalization()
    return {
        "box": box,
        "padding": (*(how.letterbox or (0.0, 0.0, 0.0)), 1.0),
        "swizzle": how.channels_of(4),
        "mean": how.each(mean),
        "factor": [1.0 / s for s in how.each(std)],
        "channels": channels,
        "height": height,
        "width": width,
        "items": 1,
        "steps": _steps(how, dims),
        "color_conversion": COLOR_CONVERSIONS.index(how.color_conversion),
        "lowest": float(WHOLE_RANGES.get(dtype, (0, 0))[0]),
    }


def _steps(how: TextureTransform, dims: Dims, batch: int = 1) -> tuple[int, ...]:
    """The elements from one column, row, channel and picture to the next."""
    steps = steps_of(how.layout, dims, batch)
    return tuple(steps[axis] for axis in (WIDTH, HEIGHT, CHANNELS, BATCH))


def drawing_params(
    how: TextureTransform, size: tuple[int, int], dims: Dims, dtype: DataType, batch: int = 1, index: int = 0
) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
    """The parameters of the pass that draws one picture of a batch, by its index, and the pixels that it covers: x, y
    from the first texel, width, height.
    """
    channels, height, width = dims
    placed = how.place(size, height, width)
    (x, y, w, h), (left, top, wide, high), (across, down) = placed.region, placed.box, placed.scale
    flipped = how.coord_origin == "bottom_left"
    first = size[1] - y - h if flipped else y
    swizzle = [channels - 1 if how.broadcast else -1] * 4
    for channel, name in enumerate(how.swizzle[:channels]):
        swizzle["rgba".index(name)] = channel
    if channels == 1 and how.swizzle == "rgba":  # gray
        swizzle[:3] = [0, 0, 0]
    blank, steps = [0.0, 0.0, 0.0, 1.0], _steps(how, dims, batch)
    if how.masked_color is not None:
        masked = [channel for channel, name in enumerate("rgba") if name not in how.write_mask]
        for channel in masked:
            swizzle[channel], blank[channel] = -1, how.masked_color[channel]
    means, deviations = map(how.each, how.normalization())
    origin = (x - left * across, first + h + top * down if flipped else first - top * down)
    params = {
        **_warp_params(placed, flipped, size, back=True),
        "origin": origin if placed.warp is None else (0.0, 0.0),
        "scale": (wide / w, -high / h if flipped else high / h),
        "box": placed.box,
        "swizzle": swizzle,
        "mean": [means[c] if c >= 0 else 0.0 for c in swizzle],
        "factor": [deviations[c] if c >= 0 else 0.0 for c in swizzle],
        "blank": blank,
        "first": index * steps[3],
        "channels": channels,
        "steps": steps,
        "smooth_": int(how.resample != "nearest"),
        "color_conversion": -COLOR_CONVERSIONS.index(how.color_conversion) % 3,  # the opposite
        "lowest": float(WHOLE_RANGES.get(dtype, (0, 0))[0]),
        "step_": 1 / 255 if dtype in WHOLE_RANGES else 1.0,
    }
    begin, end = _covered(x, w, size[0])
    low, above = _covered(first, h, size[1])
    elements = NOT_NEAREST
    if how.resample == "nearest" and placed.warp is None:
        columns = nearest_drawn(x, w, wide, begin, end - begin)
        rows = nearest_drawn(y, h, high, size[1] - 1 - low if flipped else low, above - low, not flipped)
        elements = nearest_uniforms(columns, rows)
    return params | elements, (begin, low, end - begin, above - low)


def _covered(begin: float, length: float, size: int) -> tuple[int, int]:
    """The first pixel whose center lies within the range, and the one after the last."""
    first = min(max(math.ceil(begin - 0.5), 0), size)
    return first, min(max(math.ceil(begin + length - 0.5), first), size)


@dataclass(frozen=True)
class Row:
    """Indices that continue in equal steps: number i is `first + i * whole + (rest + i * part) // parts`."""

    first: int
    whole: int
    rest: int
    part: int
    parts: int

    @classmethod
    def of(cls, begin: Fraction, step: Fraction, count: int) -> Row:
        """The greatest integers up to `begin + i * step`, for i below `count`."""
        parts = math.lcm(begin.denominator, step.denominator)
        first, rest = divmod(begin.numerator * (parts // begin.denominator), parts)
        whole, part = divmod(step.numerator * (parts // step.denominator), parts)
        while parts * (count + 1) >= _MOST:  # only for large and odd sizes
            rest, part, parts = rest >> 1, part >> 1, max(parts >> 1, 1)
        most = _MOST // 4  # beyond any picture
        return cls(_within(first, most), _within(whole, most // max(count, 1)), rest, part, parts)

    def indices(self, count: int) -> NDArray[Any]:
        """The first `count` indices."""
        numbers = np.arange(count, dtype=np.int64)
        result: NDArray[Any] = self.first + numbers * self.whole + (self.rest + numbers * self.part) // self.parts
        return result


def _within(number: int, most: int) -> int:
    return min(max(number, -most), most)


def _rounded(number: float) -> Fraction:
    return Fraction(round(Fraction(number) * _GRID), _GRID)


@lru_cache(KEPT)
def nearest_sampled(begin: float, length: float, count: int) -> Row:
    """The pixels under the centers of `count` elements that fill a region."""
    step = max(_rounded(length), Fraction(1, _GRID)) / count
    return Row.of(_rounded(begin) + step / 2, step, count)


@lru_cache(KEPT)
def nearest_drawn(begin: float, length: float, elements: int, pixel: int, count: int, down: bool = True) -> Row:
    """The elements under the centers of `count` pixels, where `elements` fill a region of the pixels. `pixel` is the
    first of them; if not `down`, the next ones lie before it.
    """
    step = elements / max(_rounded(length), Fraction(1, _GRID))
    return Row.of((pixel + Fraction(1, 2) - _rounded(begin)) * step, step if down else -step, count)


def nearest_uniforms(across: Row, down: Row) -> dict[str, tuple[int, ...]]:
    """Both axes as parameters of a shader."""
    numbers = {"near_across": astuple(across)[:4], "near_down": astuple(down)[:4]}
    return {**numbers, "near_parts": (across.parts, down.parts)}


NOT_NEAREST = nearest_uniforms(Row(0, 0, 0, 0, 1), Row(0, 0, 0, 0, 1))
"""The parameters for modes that do not read them."""


def rows_of(params: Mapping[str, Any]) -> tuple[Row, Row]:
    """The axes of such parameters: across, and down."""
    (a, b, c, d), (e, f, g, h), (across, down) = params["near_across"], params["near_down"], params["near_parts"]
    return Row(a, b, c, d, across), Row(e, f, g, h, down)
