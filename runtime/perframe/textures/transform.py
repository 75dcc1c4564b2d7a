"""The relation between a texture's pixels and a tensor's elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.tensor import DataType, Tensor
from perframe.textures.filters import FILTERS
from perframe.textures.picture_map import PictureMap

CHANNELS = "rgba"
RESAMPLING = ("linear", "nearest", "mipmap", *FILTERS)
COLOR_CONVERSIONS = ("none", "srgb_to_linear", "linear_to_srgb")
ALIGNMENTS = ("center", "top_left")
# A tensor of these holds whole numbers: 255 times a value, from the lowest to the highest.
WHOLE_RANGES = {DataType.UINT8: (0, 255), DataType.INT8: (-128, 127)}


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
    letterbox: tuple[float, float, float] | None = None
    letterbox_align: str = "center"
    color_conversion: str = "none"
    broadcast: bool = False
    write_mask: str = "rgba"

    def set_region(self, x: float, y: float, width: float, height: float) -> TextureTransform:
        """Use only this part of the texture, in pixels from the picture's top left. It may reach over the edge."""
        left, top, wide, high = (_number("a region's", number) for number in (x, y, width, height))
        if wide <= 0 or high <= 0:
            raise InputError(f"a region must have a size, not {width} x {height}")
        return replace(self, region=(left, top, wide, high))

    def set_resample(self, mode: str) -> TextureTransform:
        """Choose how pixels become elements where sizes differ.

        - "linear" (the default) mixes the four nearest pixels, "nearest" takes one. Both skip pixels when they shrink.
        - "area", "antialias" and "bicubic" read all pixels under an element. They are Pillow's BOX, BILINEAR and
          BICUBIC: the plain average; the smooth one that torchvision's `antialias=True` makes; and a sharper one.
        - "mipmap" mixes two levels of the texture's mipmap, which the caller has built. It reads eight pixels an
          element however much it shrinks, and is rougher than the filters.

        Drawing a tensor is "nearest", or else "linear".
        """
        return replace(self, resample=_one_of("resample", mode, RESAMPLING))

    def set_letterbox(self, color: float | Sequence[float] = 0.0, align: str = "center") -> TextureTransform:
        """Keep the picture's proportions: fit it into the tensor, and fill the rest with a colour (grey, or r, g, b).

        The colour is a pixel, 0..1: it is normalised with the others. `align` is "center" or "top_left". `mapping`
        brings what a network found back to the picture. Drawing a tensor leaves out the filled rest.
        """
        numbers = tuple(_number("a colour's", v) for v in np.ravel(np.asarray(color, object)))
        if len(numbers) not in (1, 3):
            raise InputError(f"a letterbox has one number for grey, or three for r, g and b, not {color!r}")
        align = _one_of("a letterbox's align", align, ALIGNMENTS)
        red, green, blue = numbers if len(numbers) == 3 else numbers * 3
        return replace(self, letterbox=(red, green, blue), letterbox_align=align)

    def set_color_conversion(self, conversion: str) -> TextureTransform:
        """Convert colours, but not alpha: "srgb_to_linear", "linear_to_srgb", or "none" (the default).

        A tensor's elements are converted after resampling and before normalisation. Drawing undoes it.
        """
        return replace(self, color_conversion=_one_of("color_conversion", conversion, COLOR_CONVERSIONS))

    def set_broadcast(self, on: bool = True) -> TextureTransform:
        """Repeat the last channel where one side has more: a swizzle "r" fills three channels of a tensor, and a
        tensor of one channel is drawn into all four channels of a texture.
        """
        return replace(self, broadcast=bool(on))

    def set_write_mask(self, channels: str) -> TextureTransform:
        """Name the texture's channels that drawing may change: "rgba" (the default), "rgb", "a", ..."""
        if not isinstance(channels, str) or not channels or set(channels) - set(CHANNELS):
            raise InputError(f"a write mask names some of r, g, b and a, not {channels!r}")
        return replace(self, write_mask=channels)

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

    def set_range(self, low: float, high: float) -> TextureTransform:
        """Bring pixels of 0..1 to low..high: (0, 255) or (-1, 1), for instance. It replaces the normalization."""
        bottom, top = _number("a range's", low), _number("a range's", high)
        if bottom == top:
            raise InputError(f"a range needs two different numbers, not {low} twice")
        return self.set_normalization(-bottom / (top - bottom), 1 / (top - bottom))

    def set_tensor_layout(self, layout: str) -> TextureTransform:
        """Lay the tensor out as "NCHW" (the default) or "NHWC"."""
        return replace(self, layout=_one_of("layout", layout, ("NCHW", "NHWC")))

    def dims(self, tensor: Tensor, batch: int | None = None) -> tuple[int, int, int]:
        """The channels, height and width of a tensor, or of each picture in its batch. Raises InputError."""
        if not isinstance(tensor, Tensor):
            raise InputError(f"a texture is converted to or from a perframe.Tensor, not {type(tensor).__name__}")
        shape = tuple(tensor.shape)
        if len(shape) == 4 and shape[0] == (batch or 1):
            shape = shape[1:]
        elif batch is not None:
            raise InputError(
                f"{batch} pictures fill a tensor of rank 4 with a batch of {batch}; this is {tensor.shape}"
            )
        if len(shape) != 3 or tensor.dtype not in (DataType.FLOAT32, *WHOLE_RANGES):
            raise InputError(
                "a picture is a float32 tensor, or one of uint8 or int8, of rank 3, or of rank 4 with a batch of 1; "
                f"{tensor.name!r} is {tensor.dtype} {tensor.shape}"
            )
        channels, height, width = shape if self.layout == "NCHW" else (shape[2], shape[0], shape[1])
        if not 1 <= channels <= 4 or not height or not width:
            other, of_other = ("NHWC", shape[2]) if self.layout == "NCHW" else ("NCHW", shape[0])
            advice = f'; set_tensor_layout("{other}") takes it as {other}' if 1 <= of_other <= 4 else ""
            raise InputError(
                f"a picture has one to four channels, and pixels; {tensor.name!r} {tensor.shape} as {self.layout} has "
                f"{channels} channels of {height} × {width} pixels{advice}"
            )
        if channels > len(self.swizzle) and not self.broadcast:
            raise InputError(
                f"the swizzle {self.swizzle!r} says nothing of channel {len(self.swizzle)} of {tensor.shape}: name one "
                "texture channel for each channel of the tensor, or set_broadcast()"
            )
        for name, values in (("mean", self.mean), ("std", self.std)):
            if 1 < len(values) < channels:
                raise InputError(f"{name} has {len(values)} numbers for the {channels} channels of {tensor.shape}")
        return channels, height, width

    def mapping(self, picture_size: tuple[int, int], tensor: Tensor | Sequence[int]) -> PictureMap:
        """Where a picture of this width and height lies in a tensor (or a shape). It maps points and boxes both ways.

        Raises InputError.
        """
        width, height = picture_size
        if not (width > 0 and height > 0):
            raise InputError(f"a picture's size is its width and its height in pixels, not {picture_size!r}")
        shape = tuple(tensor.shape if isinstance(tensor, Tensor) else tensor)
        if len(shape) not in (3, 4) or not all(isinstance(dim, (int, np.integer)) and dim > 0 for dim in shape):
            raise InputError(f"a picture is a tensor of rank 3 or 4, and of known size, not {shape}")
        rows, columns = shape[-2:] if self.layout == "NCHW" else shape[-3:-1]
        return self.place((width, height), rows, columns)

    def place(self, size: tuple[int, int], height: int, width: int) -> PictureMap:
        """The region of a picture of this size, and the box in a tensor of this height and width that it fills."""
        region = self.region or (0.0, 0.0, float(size[0]), float(size[1]))
        box = (0, 0, width, height)
        if self.letterbox is not None:
            scale = min(width / region[2], height / region[3])
            wide, high = (
                min(max(math.floor(length * scale + 0.5), 1), most)
                for length, most in zip(region[2:], (width, height), strict=True)
            )
            centered = self.letterbox_align == "center"
            box = ((width - wide) // 2 if centered else 0, (height - high) // 2 if centered else 0, wide, high)
        return PictureMap(region, box)

    def channels_of(self, channels: int) -> list[int]:
        """The texture's channel for each channel of a tensor."""
        names = self.swizzle + self.swizzle[-1] * (4 - len(self.swizzle))
        return [CHANNELS.index(name) for name in names[:channels]]

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
