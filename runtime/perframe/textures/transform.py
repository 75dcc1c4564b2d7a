"""The relation between a texture's pixels and a tensor's elements, both ways."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from perframe.errors import InputError
from perframe.tensor import Array, DataType, Tensor
from perframe.textures import layout as layouts
from perframe.textures.filters import FILTERS
from perframe.textures.regions import Numbers, Warp, apply, checked_region

CHANNELS = "rgba"
RESAMPLING = ("linear", "nearest", "mipmap", *FILTERS)
COLOR_CONVERSIONS = ("none", "srgb_to_linear", "linear_to_srgb")
ALIGNMENTS = ("center", "top_left")
ORIGINS = ("top_left", "bottom_left")
# A tensor of these holds integers: 255 times a value, from the lowest to the highest.
WHOLE_RANGES = {DataType.UINT8: (0, 255), DataType.INT8: (-128, 127)}


@dataclass(frozen=True, init=False)
class TextureTransform:
    """The relation between a texture's pixels and a tensor's elements. It is frozen: `replace` returns a changed copy.

    A tensor's first row is always the picture's top. Pixels are 0..1 for the usual texture formats.

    - `region`: the part of the texture to use, in pixels from the picture's top left: x, y, width and height; or a
      rotated rectangle as the center's x and y, width, height, and an angle in radians (clockwise); or a matrix, 2 x 3
      or 3 x 3, from the unit square to pixels. It may reach over the edge. By default the whole texture.
    - `resample`: how pixels become elements where sizes differ. "linear" (the default) mixes the four nearest pixels,
      "nearest" takes one; both skip pixels when they shrink. "area", "antialias" and "bicubic" read all pixels under an
      element: they are Pillow's BOX, BILINEAR and BICUBIC. "mipmap" mixes two levels of the mipmap that the caller has
      built: it reads eight pixels an element, and is rougher. Drawing a tensor is "nearest" or else "linear".
    - `letterbox`: keep the picture's proportions, and fill the rest with this color (gray, or r, g, b). It is a pixel,
      0..1, and normalized like the others. `letterbox_align` is "center" or "top_left". `mapping` maps a network's
      results back to the picture. Drawing a tensor leaves out the filled rest. By default the picture is stretched.
    - `mean` and `std`: element = (pixel - mean) / std, one number for all channels or one for each. Drawing undoes it.
    - `range`: bring pixels of 0..1 to low..high instead, as (0, 255) or (-1, 1).
    - `swizzle`: the texture's channel for each channel of the tensor: "rgba" (the default), "bgr", "a", ...
    - `broadcast`: repeat the last channel where one side has more. A swizzle "r" then fills three channels of a tensor,
      and a tensor of one channel is drawn into all four channels of a texture.
    - `write_mask`: the texture's channels that get the tensor's values: "rgba" (the default), "rgb", "a", ... Drawing
      leaves the others unchanged, or sets them to `masked_color`: one number, or r, g, b, a, as the texture holds them.
    - `coord_origin`: where in the picture the texture's first row of texels lies. "top_left": at the top, as in an
      uploaded array. "bottom_left": at the bottom, as GL draws. By default "bottom_left" for a texture that a
      framebuffer draws into, and "top_left" for anything else (see TextureConverter.to_tensor).
    - `color_conversion`: convert colors, but not alpha: "srgb_to_linear", "linear_to_srgb", or "none" (the default). It
      comes after resampling and before normalization. Drawing undoes it.
    - `layout`: the order of the tensor's dims: "NCHW" (the default), "NHWC", or another order of these letters. N is
      left out for a tensor of rank 3.

    Raises InputError for values that do not fit.
    """

    region: Numbers | None
    resample: str
    letterbox: tuple[float, float, float] | None
    letterbox_align: str
    mean: tuple[float, ...]
    std: tuple[float, ...]
    range: tuple[float, float] | None
    swizzle: str
    broadcast: bool
    write_mask: str
    masked_color: tuple[float, ...] | None
    coord_origin: str | None
    color_conversion: str
    layout: str

    def __init__(
        self,
        *,
        region: Sequence[float] | Sequence[Sequence[float]] | Array | None = None,
        resample: str = "linear",
        letterbox: float | Sequence[float] | None = None,
        letterbox_align: str = "center",
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        range: tuple[float, float] | None = None,
        swizzle: str = "rgba",
        broadcast: bool = False,
        write_mask: str = "rgba",
        masked_color: float | Sequence[float] | None = None,
        coord_origin: str | None = None,
        color_conversion: str = "none",
        layout: str = "NCHW",
    ) -> None:
        checked = {
            "region": None if region is None else checked_region(region),
            "resample": _one_of("resample", resample, RESAMPLING),
            "letterbox": None if letterbox is None else _color("letterbox", letterbox, 3),
            "letterbox_align": _one_of("letterbox_align", letterbox_align, ALIGNMENTS),
            "mean": _floats("mean", mean),
            "std": _floats("std", std),
            "range": None if range is None else _range(range),
            "swizzle": _channels("swizzle", swizzle),
            "broadcast": bool(broadcast),
            "write_mask": _channels("write_mask", write_mask),
            "masked_color": None if masked_color is None else _color("masked_color", masked_color, 4),
            "coord_origin": None if coord_origin is None else _one_of("coord_origin", coord_origin, ORIGINS),
            "color_conversion": _one_of("color_conversion", color_conversion, COLOR_CONVERSIONS),
            "layout": layouts.layout(layout),
        }
        warp = None if region is None else Warp.of(checked_region(region))
        if warp is not None and resample in FILTERS:
            raise InputError(f'resample="{resample}" reads upright regions; this one takes linear, nearest or mipmap')
        if warp is not None and not warp.is_affine and letterbox is not None:
            raise InputError("a region with perspective has no proportions that a letterbox could keep")
        if range is not None and (checked["mean"], checked["std"]) != ((0.0,), (1.0,)):
            raise InputError("give range, or mean and std: both say how pixels become elements")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def replace(self, **changes: Any) -> TextureTransform:
        """Return a copy with these settings changed: `how.replace(region=box)`. A range replaces mean and std, and mean
        or std replaces a range. Raises InputError.
        """
        unknown = ", ".join(sorted(changes.keys() - {field.name for field in fields(self)}))
        if unknown:
            known = ", ".join(field.name for field in fields(self))
            raise InputError(f"a TextureTransform has no setting {unknown}; it has {known}")
        if changes.get("range") is not None:
            changes = {"mean": 0.0, "std": 1.0, **changes}
        elif "mean" in changes or "std" in changes:
            changes = {"range": None, **changes}
        return replace(self, **changes)

    if not TYPE_CHECKING:  # type checkers report them as unknown

        def __getattr__(self, name: str) -> Any:
            """Return a deprecated setter, with a warning. `replace` does what it did."""
            if name not in _SETTERS:
                raise AttributeError(f"a TextureTransform has no attribute {name!r}")
            warnings.warn(
                f"{name}() is deprecated: use TextureTransform(...) or replace(...)", DeprecationWarning, stacklevel=2
            )
            return lambda *given, **named: self.replace(**_SETTERS[name](*given, **named))

    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The mean and std of each channel, or one for all. A `range` decides both."""
        if self.range is None:
            return self.mean, self.std
        low, high = self.range
        return (-low / (high - low),), (1 / (high - low),)

    def dims(self, tensor: Tensor, batch: int | None = None) -> tuple[int, int, int]:
        """The channels, height and width of a tensor, or of each picture in its batch. Raises InputError."""
        if not isinstance(tensor, Tensor):
            kind, advice = type(tensor).__name__, ""
            if isinstance(tensor, TextureTransform):
                advice = ": pass it as transform=..."
            elif isinstance(tensor, np.ndarray):
                advice = ": pass perframe.Tensor(array)"
            raise InputError(f"a texture is converted to or from a perframe.Tensor, not {kind}{advice}")
        shape = tuple(tensor.shape)
        has_batch = len(shape) == 4 and shape[self.layout.index(layouts.BATCH)] == (batch or 1)
        if batch is not None and not has_batch:
            raise InputError(
                f"{batch} pictures fill a tensor of rank 4 with a batch of {batch}; this is {tensor.shape}"
            )
        name = repr(tensor.name) if tensor.name else "this one"
        if not (has_batch or len(shape) == 3) or tensor.dtype not in (
            DataType.FLOAT32,
            DataType.FLOAT16,
            *WHOLE_RANGES,
        ):
            raise InputError(
                "a picture is a tensor of float32, float16, uint8 or int8, of rank 3, or of rank 4 with a batch of 1 "
                f"(a list of n pictures fills a batch of n); {name} is {tensor.dtype} {tensor.shape}"
            )
        channels, height, width = layouts.dims_of(self.layout, shape)
        if not 1 <= channels <= 4 or not height or not width:
            other = "NHWC" if self.layout == "NCHW" else "NCHW"
            fits = 1 <= layouts.dims_of(other, shape)[0] <= 4
            advice = f': pass TextureTransform(layout="{other}")' if fits else ""
            raise InputError(
                f"a tensor of a picture has one to four channels and at least one pixel; {name} {tensor.shape} as "
                f"{self.layout} has {channels} channels of {height} × {width} pixels{advice}"
            )
        if channels > len(self.swizzle) and not self.broadcast:
            raise InputError(
                f"the swizzle {self.swizzle!r} says nothing of channel {len(self.swizzle)} of {tensor.shape}: name one "
                "texture channel for each channel of the tensor, or broadcast=True"
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
        _, rows, columns = layouts.dims_of(self.layout, shape)
        return self.place((width, height), rows, columns)

    def place(self, size: tuple[int, int], height: int, width: int) -> PictureMap:
        """The region of a picture of this size, and the box in a tensor of this height and width that it fills."""
        region = self.region or (0.0, 0.0, float(size[0]), float(size[1]))
        warp, box = Warp.of(region), (0, 0, width, height)
        if self.letterbox is not None:
            sides = region[2:] if warp is None else warp.size
            scale = min(width / sides[0], height / sides[1])
            wide, high = (
                min(max(math.floor(length * scale + 0.5), 1), most)
                for length, most in zip(sides, (width, height), strict=True)
            )
            centered = self.letterbox_align == "center"
            box = ((width - wide) // 2 if centered else 0, (height - high) // 2 if centered else 0, wide, high)
        if warp is not None:
            return PictureMap(warp.bounds, box, warp)
        return PictureMap((region[0], region[1], region[2], region[3]), box)

    @property
    def region_size(self) -> tuple[int, int] | None:
        """The region's width and height in whole pixels; None for the whole picture."""
        if self.region is None:
            return None
        warp = Warp.of(self.region)
        width, height = self.region[2:4] if warp is None else warp.size
        return max(round(width), 1), max(round(height), 1)

    def channels_of(self, channels: int) -> list[int]:
        """The texture's channel for each channel of a tensor."""
        names = self.swizzle + self.swizzle[-1] * (4 - len(self.swizzle))
        return [CHANNELS.index(name) for name in names[:channels]]

    def each(self, values: tuple[float, ...]) -> list[float]:
        """Four numbers, one a channel."""
        return [*values, *values[-1:] * (4 - len(values))]


_SETTERS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "set_region": lambda x, y, width, height: {"region": (x, y, width, height)},
    "set_resample": lambda mode: {"resample": mode},
    "set_letterbox": lambda color=0.0, align="center": {"letterbox": color, "letterbox_align": align},
    "set_color_conversion": lambda conversion: {"color_conversion": conversion},
    "set_broadcast": lambda on=True: {"broadcast": on},
    "set_write_mask": lambda channels: {"write_mask": channels},
    "set_swizzle": lambda channels: {"swizzle": channels},
    "set_coord_origin": lambda origin: {"coord_origin": origin},
    "set_normalization": lambda mean, std: {"mean": mean, "std": std},
    "set_range": lambda low, high: {"range": (low, high)},
    "set_tensor_layout": lambda layout: {"layout": layout},
}


def _color(what: str, given: Any, channels: int) -> tuple[Any, ...]:
    numbers = _each_number(what, given)
    if len(numbers) not in (1, channels):
        several = "three for r, g and b" if channels == 3 else "four for r, g, b and a"
        raise InputError(f"{what} is one number for gray, or {several}, not {given!r}")
    return numbers if len(numbers) == channels else numbers * channels


def _range(given: Any) -> tuple[float, float]:
    numbers = _each_number("range", given)
    if len(numbers) != 2 or numbers[0] == numbers[1]:
        raise InputError(f"range is two different numbers, the lowest and the highest, not {given!r}")
    return numbers[0], numbers[1]


def _channels(what: str, given: Any) -> str:
    if not isinstance(given, str) or not 1 <= len(given) <= 4 or set(given) - set(CHANNELS):
        raise InputError(f"{what} names one to four of r, g, b and a, not {given!r}")
    return given


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{what} is one of {', '.join(allowed)}, not {value!r}")
    return value


def _floats(what: str, given: float | Sequence[float]) -> tuple[float, ...]:
    numbers = _each_number(what, given)
    if not 1 <= len(numbers) <= 4:
        raise InputError(f"{what} has one number, or one for each of up to four channels, not {len(numbers)}")
    if what == "std" and 0.0 in numbers:
        raise InputError("std must not be 0")
    return numbers


def _each_number(what: str, given: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in np.ravel(np.asarray(given, object)))
    except (TypeError, ValueError):
        numbers = (math.nan,)
    if not all(map(math.isfinite, numbers)):
        raise InputError(f"{what}: all numbers must be finite, not {given!r}")
    return numbers


@dataclass(frozen=True)
class PictureMap:
    """A region of a picture, and the box of a tensor that it fills, as left, top, width and height.

    Places count from the top left corner of the first pixel or element: the center of the first lies at (0.5, 0.5).
    A region that is not upright has a `warp`; `region` is the upright rectangle around it.
    """

    region: tuple[float, float, float, float]
    box: tuple[int, int, int, int]
    warp: Warp | None = None

    @property
    def scale(self) -> tuple[float, float]:
        """The pixels that an element spans, across and down."""
        width, height = self.region[2:] if self.warp is None else self.warp.size
        return width / self.box[2], height / self.box[3]

    @property
    def matrix(self) -> Array:
        """The matrix from places of the tensor to places of the picture, 3 x 3."""
        if self.warp is not None:
            return self.warp.of_box(self.box)
        (a, b), (left, top) = self.scale, self.region[:2]
        return np.array([[a, 0.0, left - self.box[0] * a], [0.0, b, top - self.box[1] * b], [0.0, 0.0, 1.0]])

    def to_picture(self, points: ArrayLike) -> Array:
        """Points of the tensor as points of the picture. Shape (..., 2): x and y. Raises InputError."""
        given = _coordinates(points, 2, "points have x and y")
        if self.warp is not None:
            return apply(self.warp.of_box(self.box), given)
        result: Array = (given - self.box[:2]) * self.scale + self.region[:2]
        return result

    def to_tensor(self, points: ArrayLike) -> Array:
        """Points of the picture as points of the tensor. Shape (..., 2): x and y. Raises InputError."""
        given = _coordinates(points, 2, "points have x and y")
        if self.warp is not None:
            return apply(np.linalg.inv(self.warp.of_box(self.box)), given)
        result: Array = (given - self.region[:2]) / self.scale + self.box[:2]
        return result

    def boxes_to_picture(self, boxes: ArrayLike) -> Array:
        """Boxes of the tensor as boxes of the picture. Shape (..., 4): left, top, right and bottom.

        They may reach over the picture's edges. If the region is rotated, they are upright boxes around the rotated
        ones. Raises InputError.
        """
        return self._boxes(self.to_picture, boxes)

    def boxes_to_tensor(self, boxes: ArrayLike) -> Array:
        """Boxes of the picture as boxes of the tensor. Shape (..., 4): left, top, right and bottom.

        If the region is rotated, they are upright boxes around the rotated ones. Raises InputError.
        """
        return self._boxes(self.to_tensor, boxes)

    def _boxes(self, map_points: Callable[[Array], Array], boxes: ArrayLike) -> Array:
        given = _coordinates(boxes, 4, "boxes have left, top, right and bottom")
        picked = [0, 1, 2, 3] if self.warp is None else [0, 1, 2, 1, 0, 3, 2, 3]
        moved = map_points(given[..., picked].reshape(*given.shape[:-1], len(picked) // 2, 2))
        if self.warp is None:
            return moved.reshape(given.shape)
        result: Array = np.concatenate([moved.min(-2), moved.max(-2)], -1)
        return result


def _coordinates(values: ArrayLike, last: int, rule: str) -> Array:
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{rule}, and these are not numbers: {values!r:.80}") from None
    if not given.ndim or given.shape[-1] != last:
        raise InputError(f"{rule}: the last dim is {last}, but the shape is {given.shape}")
    return given
