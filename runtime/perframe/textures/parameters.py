"""The numbers of the passes that fill tensors from pictures and draw tensors into pictures."""

from __future__ import annotations

import math
from typing import Any

from perframe.tensor import DataType
from perframe.textures import nearest
from perframe.textures.filters import FILTERS, FilterWeights, weights
from perframe.textures.picture_map import PictureMap
from perframe.textures.transform import CHANNELS, COLOR_CONVERSIONS, WHOLE_RANGES, TextureTransform

Dims = tuple[int, int, int]  # channels, height, width
_DIRECT = {"nearest": 0, "linear": 1, "mipmap": 2}


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
        **(_sampled_pixels(placed) if how.resample == "nearest" else nearest.NOT_NEAREST),
        **_element_params(how, placed.box, dims, dtype),
    }


def _sampled_pixels(placed: PictureMap) -> dict[str, tuple[int, ...]]:
    """The pixels that "nearest" takes, counted from the picture's top left."""
    (x, y, w, h), (_, _, wide, high) = placed.region, placed.box
    return nearest.uniforms(nearest.sampled(x, w, wide), nearest.sampled(y, h, high))


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
        "channels_last": int(how.layout == "NHWC"),
        "color_conversion": COLOR_CONVERSIONS.index(how.color_conversion),
        "lowest": float(WHOLE_RANGES.get(dtype, (0, 0))[0]),
    }


def drawing_params(
    how: TextureTransform, size: tuple[int, int], dims: Dims, dtype: DataType
) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
    """The parameters of the drawing pass, and the pixels that it covers: x, y from the first texel, width, height."""
    channels, height, width = dims
    placed = how.place(size, height, width)
    (x, y, w, h), (left, top, wide, high), (across, down) = placed.region, placed.box, placed.scale
    flipped = how.coord_origin == "bottom_left"
    first = size[1] - y - h if flipped else y
    swizzle = [channels - 1 if how.broadcast else -1] * 4
    for index, name in enumerate(how.swizzle[:channels]):
        swizzle[CHANNELS.index(name)] = index
    if channels == 1 and how.swizzle == "rgba":  # gray
        swizzle[:3] = [0, 0, 0]
    means, deviations = map(how.each, how.normalization())
    params = {
        "origin": (x - left * across, first + h + top * down if flipped else first - top * down),
        "scale": (wide / w, -high / h if flipped else high / h),
        "box": placed.box,
        "swizzle": swizzle,
        "mean": [means[c] if c >= 0 else 0.0 for c in swizzle],
        "factor": [deviations[c] if c >= 0 else 0.0 for c in swizzle],
        "first": 0,
        "channels": channels,
        "height": height,
        "width": width,
        "channels_last": int(how.layout == "NHWC"),
        "smooth_": int(how.resample != "nearest"),
        "color_conversion": -COLOR_CONVERSIONS.index(how.color_conversion) % 3,  # the opposite
        "lowest": float(WHOLE_RANGES.get(dtype, (0, 0))[0]),
        "step_": 1 / 255 if dtype in WHOLE_RANGES else 1.0,
    }
    begin, end = _covered(x, w, size[0])
    low, above = _covered(first, h, size[1])
    elements = nearest.NOT_NEAREST
    if how.resample == "nearest":
        columns = nearest.drawn(x, w, wide, begin, end - begin)
        rows = nearest.drawn(y, h, high, size[1] - 1 - low if flipped else low, above - low, not flipped)
        elements = nearest.uniforms(columns, rows)
    return params | elements, (begin, low, end - begin, above - low)


def _covered(begin: float, length: float, size: int) -> tuple[int, int]:
    """The first pixel whose center lies within the range, and the one after the last."""
    first = min(max(math.ceil(begin - 0.5), 0), size)
    return first, min(max(math.ceil(begin + length - 0.5), first), size)
