"""Textures to tensors and back, in one pass: region, resampling, swizzle, origin, mean and std, layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends import backend_type as backend_type_of
from perframe.backends import texture_passes
from perframe.errors import ClosedError, InputError
from perframe.tensor import BackendType, Storage, Tensor
from perframe.tensor.readback import FrameState
from perframe.textures.transform import CHANNELS, TextureTransform

Array = NDArray[Any]


class TextureConverter:
    """Converts textures in the caller's GL context. Without `ctx`, pictures are arrays: H x W x C, uint8 or float32.

    `backend` is the backend for tensors that have no storage yet. By default it is gpu_compute, or gpu_pixel if the
    context has no compute shaders.
    """

    def __init__(self, ctx: Any = None, backend: BackendType | str | None = None) -> None:
        self._passes = texture_passes(ctx) if ctx is not None else None
        self._closed = False
        self._backend = backend_type_of(backend) if backend is not None else None

    def to_tensor(self, texture: Any, tensor: Tensor, transform: TextureTransform | None = None) -> Tensor:
        """Sample a texture into a tensor without leaving the GPU, and return the tensor.

        If the tensor lies on the CPU, the frame waits for the download. Raises InputError.
        """
        self._check_open()
        how = _transform(transform)
        channels, height, width = how.dims(tensor)
        if isinstance(texture, np.ndarray):
            values = _sample(_picture(texture), how, channels, height, width)
            tensor.upload(np.ascontiguousarray(values, np.float32).reshape(tensor.shape))
            return tensor
        passes = self._require_passes()
        size = passes.texture_size(texture)
        target = self._storage(tensor)
        passes.to_tensor(texture, tensor, target, _to_tensor_params(how, size, channels, height, width))
        if tensor.backend_type is BackendType.CPU:
            FrameState.blocking("TextureConverter.to_tensor() into a tensor on the CPU")
            tensor.upload(target.download(tensor.shape, tensor.dtype))
        return tensor

    def to_texture(self, tensor: Tensor, texture: Any, transform: TextureTransform | None = None) -> None:
        """Draw a tensor into a texture, or into the transform's region of it. Sizes may differ. Raises InputError."""
        self._check_open()
        how = _transform(transform)
        channels, height, width = how.dims(tensor)
        if isinstance(texture, np.ndarray):
            _paint(tensor.download_to_array(), _picture(texture), how, channels, height, width)
            return
        size = self._require_passes().texture_size(texture)
        self._draw(tensor, texture, how, size, (channels, height, width))

    def render_to_screen(
        self,
        tensor: Tensor,
        transform: TextureTransform | None = None,
        viewport: tuple[int, int, int, int] | None = None,
        framebuffer: Any = None,
    ) -> None:
        """Draw a tensor upright, so that it fills the viewport.

        By default it draws into the bound framebuffer and its current viewport; `viewport` is x, y, width and height.
        """
        self._check_open()
        how = _transform(transform).set_coord_origin("bottom_left")
        dims = how.dims(tensor)
        passes = self._require_passes()
        area = _area(viewport) if viewport is not None else passes.viewport(framebuffer)
        moved = replace(how, region=None)
        self._draw(tensor, framebuffer, moved, (area[2], area[3]), dims, area)

    def _draw(
        self,
        tensor: Tensor,
        target: Any,
        how: TextureTransform,
        size: tuple[int, int],
        dims: tuple[int, int, int],
        viewport: tuple[int, int, int, int] | None = None,
    ) -> None:
        passes = self._require_passes()
        storage = self._storage(tensor)
        passes.check(tensor, storage)
        if not size[0] or not size[1]:
            return  # a minimised window has no pixels
        if tensor.backend_type is BackendType.CPU:
            storage.upload(tensor.download_to_array())
        params, region = _draw_params(how, size, *dims)
        offset = viewport[:2] if viewport else (0, 0)
        x, y, width, height = region
        passes.draw(tensor, storage, target, params, (offset[0] + x, offset[1] + y, width, height), offset)

    def _storage(self, tensor: Tensor) -> Storage:
        """The tensor's GPU storage. For a tensor on the CPU it is a stand-in."""
        passes = self._require_passes()
        if not tensor.is_pinned and self._backend is not BackendType.CPU:
            tensor.set_storage(passes.alloc(self._backend or passes.default, tensor))
        if tensor.backend_type is BackendType.CPU:
            stand_in: Storage = passes.own_storage(tensor)
            return stand_in
        return tensor.data_on_backend

    def _require_passes(self) -> Any:
        if self._passes is None:
            raise InputError("this TextureConverter has no GL context: give it one, or pass pictures as arrays")
        return self._passes

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this TextureConverter was released")

    def release(self) -> None:
        """Free the converter's storage on the GPU. Further calls raise ClosedError."""
        self._closed = True
        if self._passes is not None:
            self._passes.release()

    def __enter__(self) -> TextureConverter:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _transform(given: Any) -> TextureTransform:
    if given is not None and not isinstance(given, TextureTransform):
        raise InputError(f"transform is a perframe.TextureTransform, not {type(given).__name__}")
    return given or TextureTransform()


def _area(viewport: Any) -> tuple[int, int, int, int]:
    """The caller's viewport as four ints. Raises InputError."""
    whole = isinstance(viewport, Sequence) and all(isinstance(number, (int, np.integer)) for number in viewport)
    if not whole or len(viewport) != 4 or viewport[2] < 0 or viewport[3] < 0:
        raise InputError(f"a viewport is x, y, width and height in whole pixels, not {viewport!r}")
    x, y, width, height = map(int, viewport)
    return x, y, width, height


def _to_tensor_params(
    how: TextureTransform, size: tuple[int, int], channels: int, height: int, width: int
) -> dict[str, Any]:
    """The parameters of the sampling pass."""
    x, y, w, h = how.region or (0.0, 0.0, float(size[0]), float(size[1]))
    flipped = how.coord_origin == "bottom_left"
    return {
        "texture_size": size,
        "origin": (x, size[1] - y) if flipped else (x, y),
        "scale": (w / width, -h / height if flipped else h / height),
        "swizzle": [CHANNELS.index(c) for c in how.swizzle],
        "mean": how.each(how.mean),
        "factor": [1.0 / s for s in how.each(how.std)],
        "channels": channels,
        "height": height,
        "width": width,
        "channels_last": int(how.layout == "NHWC"),
        "smooth_": int(how.resample == "linear"),
    }


def _draw_params(
    how: TextureTransform, size: tuple[int, int], channels: int, height: int, width: int
) -> tuple[dict[str, Any], tuple[int, int, int, int]]:
    """The parameters of the drawing pass, and the pixels that it covers: x, y from the first texel, width, height."""
    x, y, w, h = how.region or (0.0, 0.0, float(size[0]), float(size[1]))
    flipped = how.coord_origin == "bottom_left"
    first = size[1] - y - h if flipped else y
    swizzle = [-1] * 4
    for index, name in enumerate(how.swizzle[:channels]):
        swizzle[CHANNELS.index(name)] = index
    if channels == 1 and how.swizzle == "rgba":  # grey
        swizzle = [0, 0, 0, -1]
    means, deviations = how.each(how.mean), how.each(how.std)
    params = {
        "origin": (x, first + h) if flipped else (x, first),
        "scale": (width / w, -height / h if flipped else height / h),
        "swizzle": swizzle,
        "mean": [means[c] if c >= 0 else 0.0 for c in swizzle],
        "factor": [deviations[c] if c >= 0 else 0.0 for c in swizzle],
        "channels": channels,
        "height": height,
        "width": width,
        "channels_last": int(how.layout == "NHWC"),
        "smooth_": int(how.resample == "linear"),
    }
    left, right = _covered(x, w, size[0])
    low, high = _covered(first, h, size[1])
    return params, (left, low, right - left, high - low)


def _covered(begin: float, length: float, size: int) -> tuple[int, int]:
    """The first pixel whose centre lies within the range, and the one after the last."""
    first = min(max(math.ceil(begin - 0.5), 0), size)
    return first, min(max(math.ceil(begin + length - 0.5), first), size)


def _picture(array: Array) -> Array:
    """An array as height x width x channels, still the caller's memory. Raises InputError."""
    picture = array[..., None] if array.ndim == 2 else array
    if picture.ndim != 3 or not picture.size or picture.shape[2] > 4 or picture.dtype not in (np.uint8, np.float32):
        raise InputError(
            "a picture is an array of height x width, or with one to four channels, of uint8 or float32; "
            f"this is {array.dtype} {array.shape}"
        )
    return picture


def _bilinear(image: Array, xs: Array, ys: Array, linear: bool) -> Array:
    """Sample an H x W x C array at pixel coordinates (centres at .5), clamped to the edge, as float32."""
    height, width = image.shape[:2]

    def texels(rows: Array, columns: Array) -> Array:
        chosen: Array = image[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]
        return chosen.astype(np.float32)  # converts only the chosen pixels, which are few of a large picture

    if not linear:
        return texels(np.floor(ys).astype(int), np.floor(xs).astype(int))
    x, y = np.floor(xs - 0.5).astype(int), np.floor(ys - 0.5).astype(int)
    across = (xs - 0.5 - x).astype(np.float32)[None, :, None]
    down = (ys - 0.5 - y).astype(np.float32)[:, None, None]
    top, bottom = (texels(row, x) * (1 - across) + texels(row, x + 1) * across for row in (y, y + 1))
    sampled: Array = top * (1 - down) + bottom * down
    return sampled


def _sample(picture: Array, how: TextureTransform, channels: int, height: int, width: int) -> Array:
    """`to_tensor` with NumPy: the reference for the shaders."""
    params = _to_tensor_params(how, (picture.shape[1], picture.shape[0]), channels, height, width)
    xs = params["origin"][0] + (np.arange(width) + 0.5) * params["scale"][0]
    ys = params["origin"][1] + (np.arange(height) + 0.5) * params["scale"][1]
    colors = _bilinear(picture, xs, ys, how.resample == "linear")
    if picture.dtype == np.uint8:
        colors *= np.float32(1 / 255)
    if colors.shape[2] < 4:  # GL fills missing channels like this
        missing = np.zeros((height, width, 4 - colors.shape[2]), np.float32)
        missing[..., -1] = 1.0
        colors = np.concatenate([colors, missing], 2)
    chosen = params["swizzle"][:channels]
    mean, factor = (np.array(params[name][:channels], np.float32) for name in ("mean", "factor"))
    result: Array = (colors[..., chosen] - mean) * factor
    return result if how.layout == "NHWC" else result.transpose(2, 0, 1)


def _paint(values: Array, picture: Array, how: TextureTransform, channels: int, height: int, width: int) -> None:
    """`to_texture` with NumPy, into an array."""
    image = values.reshape((height, width, channels) if how.layout == "NHWC" else (channels, height, width))
    image = image if how.layout == "NHWC" else image.transpose(1, 2, 0)
    params, (x, y, w, h) = _draw_params(how, (picture.shape[1], picture.shape[0]), channels, height, width)
    columns, rows = np.arange(x, x + w), np.arange(y, y + h)
    xs = (columns + 0.5 - params["origin"][0]) * params["scale"][0]
    ys = (rows + 0.5 - params["origin"][1]) * params["scale"][1]
    sampled = _bilinear(image.astype(np.float32), xs, ys, how.resample == "linear")
    for target in range(picture.shape[2]):
        source = params["swizzle"][target]
        color = (
            sampled[..., source] * params["factor"][target] + params["mean"][target]
            if source >= 0
            else float(target == 3)
        )
        if picture.dtype == np.uint8:
            color = np.rint(np.clip(color, 0, 1) * 255)
        picture[rows[:, None], columns, target] = color
