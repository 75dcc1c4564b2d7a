"""The relation between a texture's pixels and a tensor's elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.tensor import DataType, Tensor

CHANNELS = "rgba"


@dataclass(frozen=True)
class TextureTransform:
    """The relation between a texture's pixels and a tensor's elements. Each setter returns a changed copy.

    A tensor's first row is always the picture's top. Pixels are 0..1 for the usual texture formats.
    """

    region: tuple[float, float, float, float] | None = None
    resample: str = "linear"
    swizzle: str = "rgba"
    coord_origin: str = "top_left"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "NCHW"

    def set_region(self, x: float, y: float, width: float, height: float) -> TextureTransform:
        """Use only this part of the texture, in pixels from the picture's top left. It may reach over the edge."""
        left, top, wide, high = (_number("a region's", number) for number in (x, y, width, height))
        if wide <= 0 or high <= 0:
            raise InputError(f"a region must have a size, not {width} x {height}")
        return replace(self, region=(left, top, wide, high))

    def set_resample(self, mode: str) -> TextureTransform:
        """Resample by "linear" (the default) or "nearest" where sizes differ."""
        return replace(self, resample=_one_of("resample", mode, ("linear", "nearest")))

    def set_swizzle(self, channels: str) -> TextureTransform:
        """Name the texture's channel for each channel of the tensor: "rgba" (the default), "bgr", "a", ..."""
        if not isinstance(channels, str) or not 1 <= len(channels) <= 4 or set(channels) - set(CHANNELS):
            raise InputError(f"a swizzle names one to four of r, g, b and a, not {channels!r}")
        return replace(self, swizzle=channels)

    def set_coord_origin(self, origin: str) -> TextureTransform:
        """Say where in the picture the texture's first row of texels lies.

        "top_left" (the default): at the top, as in an uploaded array. "bottom_left": at the bottom, as GL draws.
        """
        return replace(self, coord_origin=_one_of("coord_origin", origin, ("top_left", "bottom_left")))

    def set_normalization(self, mean: float | Sequence[float], std: float | Sequence[float]) -> TextureTransform:
        """Compute element = (pixel - mean) / std, with one number for all channels or one for each. Drawing a tensor
        undoes it.
        """
        means, deviations = _floats("mean", mean), _floats("std", std)
        if 0.0 in deviations:
            raise InputError("std must not be 0")
        return replace(self, mean=means, std=deviations)

    def set_tensor_layout(self, layout: str) -> TextureTransform:
        """Lay the tensor out as "NCHW" (the default) or "NHWC"."""
        return replace(self, layout=_one_of("layout", layout, ("NCHW", "NHWC")))

    def dims(self, tensor: Tensor) -> tuple[int, int, int]:
        """A tensor's channels, height and width. Raises InputError if it is not a picture."""
        if not isinstance(tensor, Tensor):
            raise InputError(f"a texture is converted to or from a perframe.Tensor, not {type(tensor).__name__}")
        shape = tuple(tensor.shape)
        if len(shape) == 4 and shape[0] == 1:
            shape = shape[1:]
        if len(shape) != 3 or tensor.dtype is not DataType.FLOAT32:
            raise InputError(
                "a picture is a float32 tensor of rank 3, or of rank 4 with a batch of 1; "
                f"{tensor.name!r} is {tensor.dtype} {tensor.shape}"
            )
        channels, height, width = shape if self.layout == "NCHW" else (shape[2], shape[0], shape[1])
        if not 1 <= channels <= 4 or not height or not width:
            raise InputError(
                f"a picture has one to four channels, and pixels; {tensor.shape} as {self.layout} is no picture"
            )
        if channels > len(self.swizzle):
            raise InputError(
                f"the swizzle {self.swizzle!r} says nothing of channel {len(self.swizzle)} of {tensor.shape}: name one "
                "texture channel for each channel of the tensor"
            )
        for name, values in (("mean", self.mean), ("std", self.std)):
            if 1 < len(values) < channels:
                raise InputError(f"{name} has {len(values)} numbers for the {channels} channels of {tensor.shape}")
        return channels, height, width

    def each(self, values: tuple[float, ...]) -> list[float]:
        """Four numbers, one a channel."""
        return [*values, *values[-1:] * (4 - len(values))]


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InputError(f"{what} is one of {', '.join(allowed)}, not {value!r}")
    return value


def _number(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what} numbers must be finite, not {value!r}")
    return number


def _floats(what: str, value: float | Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(_number(f"{what}'s", v) for v in np.ravel(np.asarray(value, object)))
    if not 1 <= len(numbers) <= 4:
        raise InputError(f"{what} has one number, or one for each of up to four channels, not {len(numbers)}")
    return numbers
