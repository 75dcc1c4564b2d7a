"""Pictures that are arrays: the conversions with NumPy, which are also the reference for the shaders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perframe.backends import picture_sampler
from perframe.errors import InputError
from perframe.safety.wording import arranged_picture
from perframe.tensor import Array, DataType
from perframe.textures.layout import BATCH, CHANNELS, HEIGHT, WIDTH, Dims, axes_of, shape_of
from perframe.textures.parameters import drawing_params, filter_weights, is_filtered, rows_of, sampling_params
from perframe.textures.transform import WHOLE_RANGES, TextureTransform

_PICTURE = HEIGHT + WIDTH + CHANNELS  # the axes of an array that is a picture
_KINDS = (np.uint8, np.float16, np.float32)


def as_picture(array: Array, is_target: bool = False) -> Array:
    """An array as height x width x channels, still the caller's memory. Raises InputError."""
    picture = array[..., None] if array.ndim == 2 else array
    if picture.ndim != 3 or not picture.size or picture.shape[2] > 4 or picture.dtype not in _KINDS:
        raise InputError(
            "a picture is an array of height x width, or of height x width x one to four channels, of uint8 or float32 "
            f"(or float16); this is {array.dtype} {array.shape}{_advice(array, is_target)}"
        )
    return picture


def _advice(array: Array, is_target: bool) -> str:
    """How to make a picture of an array that is nearly one. A target stays the caller's memory."""
    picture, said = arranged_picture(array)
    if not picture.size or not (picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] <= 4)):
        return ""
    if picture.dtype not in _KINDS:
        if is_target:
            return ""
        if picture.dtype.kind in "bf":
            said += '.astype("float32")'
        elif picture.dtype.kind in "iu" and 0 <= picture.min() <= picture.max() <= 255:
            said += '.astype("uint8")'
        else:
            return ""
    return f": pass {said}"


def as_target(array: Array) -> Array:
    """An array to draw into, as height x width x channels. Raises InputError."""
    if not array.flags.writeable:
        raise InputError("a tensor is drawn into an array that can be written, and this one is read-only: copy it")
    return as_picture(array, is_target=True)


@np.errstate(invalid="ignore", over="ignore")  # a picture may hold infinities and NaN, as a texture may
def sample(picture: Array, how: TextureTransform, dims: Dims, dtype: DataType) -> Array:
    """`TextureConverter.to_tensor` for an array: the tensor's values, in its layout and dtype."""
    elements = np.empty(shape_of(how.layout, dims, None), np.float32)
    if not _by_kernel(picture, elements, how, dims):
        order = [_PICTURE.index(axis) for axis in axes_of(how.layout, 3)]
        elements = _by_numpy(picture, how, dims).transpose(order)
    if dtype in WHOLE_RANGES:
        low, high = WHOLE_RANGES[dtype]
        whole = np.rint(elements * 255 + low)
        elements = np.where(whole > low, np.minimum(whole, high), low)  # low stands for NaN, too
    return np.ascontiguousarray(elements, dtype.numpy)


def _by_kernel(picture: Array, elements: Array, how: TextureTransform, dims: Dims) -> bool:
    """Whether a compiled kernel has filled the elements of a tensor."""
    if is_filtered(how):
        return False
    params = sampling_params(how, (picture.shape[1], picture.shape[0]), 1, dims, DataType.FLOAT32)
    return picture_sampler()(picture, elements, params)


def _by_numpy(picture: Array, how: TextureTransform, dims: Dims) -> Array:
    """The elements, height x width x channels."""
    channels, height, width = dims
    size = (picture.shape[1], picture.shape[0])
    left, top, wide, high = how.place(size, height, width).box
    inner = (_filtered if is_filtered(how) else _sampled)(picture, how, size, dims)
    if picture.dtype == np.uint8:
        inner *= np.float32(1 / 255)
    colors = np.empty((height, width, 4), np.float32)
    colors[:] = (*(how.letterbox or (0, 0, 0)), 1)
    box = colors[top : top + high, left : left + wide]
    box[..., :3], box[..., 3] = 0, 1  # GL fills missing channels like this
    box[..., : inner.shape[2]] = inner
    result: Array = _converted(colors, how.color_conversion)[..., how.channels_of(channels)]
    mean, std = map(how.each, how.normalization())
    result -= np.array(mean[:channels], np.float32)
    result *= np.array([1 / s for s in std[:channels]], np.float32)
    return result


def _filtered(picture: Array, how: TextureTransform, size: tuple[int, int], dims: Dims) -> Array:
    """Filter down, and then across: few rows are left when the axes change places."""
    across, down = filter_weights(how, size, dims)
    rows = down.apply(picture[::-1] if how.coord_origin == "bottom_left" else picture)
    return np.ascontiguousarray(across.apply(rows.swapaxes(0, 1)).swapaxes(0, 1))


def _sampled(picture: Array, how: TextureTransform, size: tuple[int, int], dims: Dims) -> Array:
    levels = max(size).bit_length()
    params = sampling_params(how, size, levels, dims, DataType.FLOAT32)
    left, top, wide, high = params["box"]
    if params["warped"]:
        places = _warped(params, np.arange(left, left + wide) + 0.5, np.arange(top, top + high) + 0.5)
        return _at_places(picture, places, how.resample, params["level"], size)
    if how.resample == "nearest":
        across, down = rows_of(params)
        upright = picture[::-1] if params["flipped"] else picture
        return _texels(upright, down.indices(high), across.indices(wide))
    xs = params["origin"][0] + (np.arange(left, left + wide) + 0.5) * params["scale"][0]
    ys = params["origin"][1] + (np.arange(top, top + high) + 0.5) * params["scale"][1]
    if how.resample != "mipmap":
        return _bilinear(picture, xs, ys)
    level, part = divmod(params["level"], 1)
    for _ in range(int(level)):
        picture = _halved(picture)
    mixed = _on_level(picture, xs, ys, size)
    return mixed if not part else mixed * (1 - part) + _on_level(_halved(picture), xs, ys, size) * np.float32(part)


def _warped(params: Mapping[str, Any], xs: Array, ys: Array) -> tuple[Array, Array]:
    """Where the matrix of parameters brings all places of these columns and rows: x and y, one for each place."""
    across, down, behind = (np.array(params[name][:3]) for name in ("warp_across", "warp_down", "warp_behind"))
    given = np.stack([*np.broadcast_arrays(xs[None, :], ys[:, None]), np.ones((len(ys), len(xs)))], -1)
    depth = given @ behind
    depth = np.where(depth > 0, depth, np.nan)
    return given @ across / depth, given @ down / depth


def _at_places(
    picture: Array, places: tuple[Array, Array], resample: str, level: float, size: tuple[int, int]
) -> Array:
    """Sample an H x W x C array at places that are on no grid, clamped to the edge, as float32."""
    xs, ys = places
    if resample == "nearest":
        return _each_texel(picture, np.floor(ys), np.floor(xs))
    whole, part = divmod(level, 1)
    for _ in range(int(whole)):
        picture = _halved(picture)
    mixed = _mixed(picture, xs * picture.shape[1] / size[0], ys * picture.shape[0] / size[1])
    if not part:
        return mixed
    half = _halved(picture)
    other = _mixed(half, xs * half.shape[1] / size[0], ys * half.shape[0] / size[1])
    result: Array = mixed * np.float32(1 - part) + other * np.float32(part)
    return result


def _mixed(image: Array, xs: Array, ys: Array) -> Array:
    x, y = np.floor(xs - 0.5), np.floor(ys - 0.5)
    across, down = (xs - 0.5 - x).astype(np.float32)[..., None], (ys - 0.5 - y).astype(np.float32)[..., None]
    top, bottom = (
        _each_texel(image, row, x) * (1 - across) + _each_texel(image, row, x + 1) * across for row in (y, y + 1)
    )
    result: Array = top * (1 - down) + bottom * down
    return result


def _each_texel(image: Array, rows: Array, columns: Array) -> Array:
    """A texel for each pair of a row and a column, clamped to the edge, as float32."""
    height, width = image.shape[:2]
    ys, xs = np.clip(rows, 0, height - 1).astype(int), np.clip(columns, 0, width - 1).astype(int)
    chosen: Array = image[ys, xs]
    return chosen.astype(np.float32)


def _halved(picture: Array) -> Array:
    """The next level of a mipmap."""
    height, width = (max(length // 2, 1) for length in picture.shape[:2])
    ys, xs = ((np.arange(few) + 0.5) * many / few for few, many in zip((height, width), picture.shape, strict=False))
    return _bilinear(picture, xs, ys)


def _on_level(picture: Array, xs: Array, ys: Array, size: tuple[int, int]) -> Array:
    return _bilinear(picture, xs * picture.shape[1] / size[0], ys * picture.shape[0] / size[1])


def _texels(image: Array, rows: Array, columns: Array) -> Array:
    """Rows and columns of an H x W x C array, clamped to the edge, as float32."""
    height, width = image.shape[:2]
    chosen: Array = image[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]
    return chosen.astype(np.float32)  # converts only the chosen pixels, which are few of a large picture


def _bilinear(image: Array, xs: Array, ys: Array) -> Array:
    """Sample an H x W x C array at pixel coordinates (centres at .5), clamped to the edge, as float32."""
    x, y = np.floor(xs - 0.5).astype(int), np.floor(ys - 0.5).astype(int)
    across = (xs - 0.5 - x).astype(np.float32)[None, :, None]
    down = (ys - 0.5 - y).astype(np.float32)[:, None, None]
    top, bottom = (_texels(image, row, x) * (1 - across) + _texels(image, row, x + 1) * across for row in (y, y + 1))
    sampled: Array = top * (1 - down) + bottom * down
    return sampled


def _converted(colors: Array, conversion: str) -> Array:
    """Colors of H x W x C between sRGB and linear light. The fourth channel, alpha, stays."""
    if conversion == "none":
        return colors
    result, bright = colors.copy(), colors[..., :3]
    above = np.maximum(bright, 0.003)  # powers are of positive numbers
    if conversion == "srgb_to_linear":
        result[..., :3] = np.where(bright <= 0.04045, bright / 12.92, ((above + 0.055) / 1.055) ** 2.4)
    else:
        result[..., :3] = np.where(bright <= 0.0031308, bright * 12.92, 1.055 * above ** (1 / 2.4) - 0.055)
    return result


_OPPOSITE = {"none": "none", "srgb_to_linear": "linear_to_srgb", "linear_to_srgb": "srgb_to_linear"}


@np.errstate(invalid="ignore", over="ignore")
def paint(values: Array, picture: Array, how: TextureTransform, dims: Dims, batch: int = 1, index: int = 0) -> None:
    """`TextureConverter.to_texture` for an array: draw a tensor's values into it, those of one picture of a batch."""
    whole = values.reshape(shape_of(how.layout, dims, batch))
    image = whole.transpose([how.layout.index(axis) for axis in BATCH + _PICTURE])[index]
    dtype = DataType.of(values.dtype)
    params, (x, y, w, h) = drawing_params(how, (picture.shape[1], picture.shape[0]), dims, dtype)
    columns, rows = np.arange(x, x + w), np.arange(y, y + h)
    left, top, wide, high = params["box"]
    xs = (columns + 0.5 - params["origin"][0]) * params["scale"][0] - left
    ys = (rows + 0.5 - params["origin"][1]) * params["scale"][1] - top
    given = (image[top : top + high, left : left + wide].astype(np.float32) - params["lowest"]) * params["step_"]
    inside: Array | bool = True
    if params["warped"]:
        at = _warped(params, columns + 0.5, rows + 0.5)
        inside = (at[0] >= left) & (at[0] < left + wide) & (at[1] >= top) & (at[1] < top + high)
        places = np.nan_to_num(at[0] - left), np.nan_to_num(at[1] - top)
        sampled = _at_places(given, places, "nearest" if how.resample == "nearest" else "linear", 0.0, (wide, high))
    elif how.resample == "nearest":
        across, down = rows_of(params)
        sampled = _texels(given, down.indices(h), across.indices(w))
    else:
        sampled = _bilinear(given, xs, ys)
    colors = np.zeros((h, w, 4), np.float32)
    colors[..., 3] = 1
    for target, source in enumerate(params["swizzle"]):
        if source >= 0:
            colors[..., target] = sampled[..., source] * params["factor"][target] + params["mean"][target]
    colors = _converted(colors, _OPPOSITE[how.color_conversion])
    for target, source in enumerate(params["swizzle"]):
        if source < 0:
            colors[..., target] = params["blank"][target]
    if picture.dtype == np.uint8:
        colors = np.rint(np.where(colors > 0, np.minimum(colors, 1), 0) * 255)  # 0 stands for NaN, too
    for target in range(picture.shape[2]):
        if "rgba"[target] in how.write_mask or how.masked_color is not None:
            part = picture[y : y + h, x : x + w, target]
            part[...] = np.where(inside, colors[..., target], part)
