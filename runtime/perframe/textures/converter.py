"""Textures to tensors and back, in one or two passes: region, letterbox, swizzle, origin, colors, mean, std, layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from perframe.backends import BackendName, texture_passes
from perframe.backends import backend_type as backend_type_of
from perframe.errors import ClosedError, InputError
from perframe.graphics import GLContext
from perframe.graphics.yuv import YuvFrame
from perframe.tensor import Array, BackendType, Storage, Tensor
from perframe.tensor.frames import WHILE_DRAWN, current_frame
from perframe.textures.arguments import (
    Transforms,
    checked_area,
    checked_size,
    checked_targets,
    checked_transform,
    checked_transforms,
    content_of,
    from_bottom,
)
from perframe.textures.arrays import as_picture, as_target, paint, sample
from perframe.textures.crops import check_crop, checked_regions, crop_array
from perframe.textures.layout import BATCH, Dims, shape_of
from perframe.textures.other_programs import TextureSink, TextureSource, open_texture_sink, open_texture_source
from perframe.textures.parameters import (
    crop_params,
    drawing_params,
    filter_params,
    filter_weights,
    is_filtered,
    sampling_params,
)
from perframe.textures.transform import TextureTransform

if TYPE_CHECKING:
    from perframe.backends import TexturePasses

_DTYPES = {"f1": np.uint8, "f2": np.float16, "f4": np.float32}  # by moderngl's names
_STAY_ON_GPU = "the pixels must leave the GPU; with a worker on gpu_compute or gpu_pixel they stay there"


class TextureConverter:
    """Converts textures in the caller's GL context. Pictures may also be arrays, H x W x C, of uint8, float32 or
    float16, and those of `perframe.media`; they need no `ctx`.

    `backend` is the backend for tensors that have no storage yet. By default it is gpu_compute, or gpu_pixel if the
    context has no compute shaders.
    """

    def __init__(self, ctx: GLContext | None = None, backend: BackendName | None = None) -> None:
        self._ctx, self._passes = ctx, texture_passes(ctx) if ctx is not None else None
        self._closed = False
        self._backend = backend_type_of(backend, ctx) if backend is not None else None

    def to_tensor(
        self,
        texture: Any,
        tensor: Tensor | None = None,
        transform: Transforms = None,
        *,
        size: tuple[int, int] | None = None,
        channels: int | None = None,
    ) -> Tensor:
        """Sample a texture into a tensor without leaving the GPU, and return the tensor.

        Without a tensor a new one of float32 is made. `size` is its width and height, by default those of the region or
        the texture. `channels` are by default those of the texture, or of the swizzle. Do not do so in each frame.

        A tensor's first row is the picture's top. Unless the transform has a `coord_origin`, a texture attached to a
        framebuffer is read from the bottom, as GL draws, and any other texture or array from the top, as pictures are
        uploaded. A framebuffer may stand for its first texture.

        A `media.Picture` stands for its pixels. If they are a frame of video, and the tensor lies on a GPU, the GPU
        converts the colors.

        A list of textures, arrays or Pictures, or all layers of a texture array, fill the batch of a tensor; each may
        have its own transform. If the tensor lies on the CPU, the frame waits for the download. Raises InputError.
        """
        self._check_open()
        texture = self._contents(texture, tensor)
        if tensor is None:
            tensor = self._new_tensor(texture, transform, size, channels)
        elif size is not None or channels is not None:
            raise InputError("size and channels are for a new tensor: this one has a shape already")
        if not isinstance(texture, list):
            return self._fill(texture, tensor, checked_transform(transform))
        hows = checked_transforms(transform, len(texture))
        for how in hows:
            how.dims(tensor, len(texture))
        axis = hows[0].layout.index(BATCH)
        shape = tensor.shape[:axis] + tensor.shape[axis + 1 :]
        items = [Tensor.empty(shape, tensor.dtype) for _ in texture]
        if all(isinstance(picture, np.ndarray) for picture in texture):
            for picture, item, how in zip(texture, items, hows, strict=True):
                self._fill(picture, item, how)
            tensor.upload(np.stack([item.download_to_array() for item in items], axis))
            return tensor
        passes, target = self._require_passes(), self._storage(tensor)
        for index, (picture, item, how) in enumerate(zip(texture, items, hows, strict=True)):
            item.set_storage(passes.own_storage(item, target.backend_type, index))
            self._fill(picture, item, how)
        inner = math.prod(tensor.shape[axis + 1 :])
        passes.join([item.data_on_backend for item in items], items[0], tensor, target, inner)
        self._bring(tensor, target)
        return tensor

    def crop(self, texture: Any, regions: Any, tensor: Tensor, transform: TextureTransform | None = None) -> Tensor:
        """Sample regions of a texture, an array or a Picture into the batch of a tensor, in one pass, and return it.

        `regions` is n x 5 (the center's x and y, width, height, and an angle in radians) or n x 2 x 3 (matrices from
        the unit square to pixels): an array, or a tensor. One on the tensor's GPU backend stays there, so that a crop
        follows a network without a readback. The transform has no region and no letterbox, and samples by "linear" or
        "nearest". Raises InputError.
        """
        self._check_open()
        how, regions = checked_transform(transform), checked_regions(regions)
        texture = self._content(texture, tensor)
        check_crop(how)
        count = regions.shape[0]
        dims = how.dims(tensor, count)
        if isinstance(texture, np.ndarray):
            values = regions.download_to_array()
            tensor.upload(crop_array(as_picture(texture), values, how, dims, tensor.dtype).reshape(tensor.shape))
            return tensor
        passes = self._require_passes()
        texture = passes.readable(texture)
        size, target = passes.texture_size(texture), self._storage(tensor)
        how = self._upright(texture, how)
        numbers = passes.storage_on(target, regions)
        params = crop_params(how, size, dims, tensor.dtype, count, regions.shape.size // count)
        passes.crop(texture, regions, numbers, tensor, target, params)
        self._bring(tensor, target)
        return tensor

    def _new_tensor(
        self, texture: Any, transform: Transforms, size: tuple[int, int] | None, channels: int | None
    ) -> Tensor:
        """A tensor without storage for a picture, or for the pictures of a list, which have one size."""
        pictures, single = (texture, None) if isinstance(texture, list) else ([texture], checked_transform(transform))
        hows = [single] if single is not None else checked_transforms(transform, len(pictures))
        sizes, held = set(), 0
        for picture, how in zip(pictures, hows, strict=True):
            own, count = self._form(picture)
            sizes.add(how.region_size or own)
            held = max(held, count if how.swizzle == "rgba" else len(how.swizzle))
        if size is None and len(sizes) > 1:
            raise InputError(f"the pictures have different sizes, {sorted(sizes)}: give size=(width, height)")
        width, height = checked_size(size or sizes.pop())
        dims = held if channels is None else channels, height, width
        return Tensor.empty(shape_of(hows[0].layout, dims, len(pictures)))

    def _form(self, picture: Any) -> tuple[tuple[int, int], int]:
        """The width and height of a picture, and its channels."""
        if isinstance(picture, np.ndarray):
            array = as_picture(picture)
            return (array.shape[1], array.shape[0]), array.shape[2]
        if isinstance(picture, YuvFrame):
            return picture.size, 3
        passes = self._require_passes()
        picture = passes.readable(picture)
        return passes.texture_size(picture), passes.channels(picture)

    def _many(self, texture: Any) -> Any:
        """The pictures of a batch as a list; a single texture unchanged."""
        if isinstance(texture, Sequence) and not isinstance(texture, str):
            return list(texture)
        return (self._passes.layers(texture) if self._passes is not None else None) or texture

    def _contents(self, texture: Any, tensor: Tensor | None) -> Any:
        """What is read for `to_tensor`: a texture, an array or a frame of video, or the list of a batch."""
        texture = self._many(texture)
        if isinstance(texture, list):
            return [self._content(each, tensor) for each in texture]
        return self._content(texture, tensor)

    def _content(self, texture: Any, tensor: Tensor | None) -> Any:
        """A Picture's planes if they go to the GPU, or else its pixels; anything else unchanged."""
        content = content_of(texture)
        if not isinstance(content, YuvFrame):
            return content
        stays = tensor is not None and tensor.is_pinned and tensor.backend_type is BackendType.CPU
        on_cpu = stays or self._passes is None or self._backend is BackendType.CPU
        return content.pixels if on_cpu else content

    def _fill(self, texture: Any, tensor: Tensor, how: TextureTransform) -> Tensor:
        """Sample one texture into a tensor."""
        dims = how.dims(tensor)
        if isinstance(texture, np.ndarray):
            tensor.upload(sample(as_picture(texture), how, dims, tensor.dtype).reshape(tensor.shape))
            return tensor
        passes = self._require_passes()
        texture = passes.readable(texture, how.resample == "mipmap")
        size, target = passes.texture_size(texture), self._storage(tensor)
        how = self._upright(texture, how)
        if is_filtered(how):
            flipped = how.coord_origin == "bottom_left"
            params = filter_params(how, size, dims, tensor.dtype)
            passes.filter_to_tensor(texture, tensor, target, size, params, filter_weights(how, size, dims), flipped)
        else:
            levels = passes.mipmap_levels(texture, size) if how.resample == "mipmap" else 1
            passes.to_tensor(texture, tensor, target, sampling_params(how, size, levels, dims, tensor.dtype))
        self._bring(tensor, target)
        return tensor

    def _upright(self, texture: Any, how: TextureTransform) -> TextureTransform:
        """The transform with the texture's own origin, unless it has one."""
        if how.coord_origin is None and self._require_passes().is_drawn(texture):
            return from_bottom(how)
        return how

    def _bring(self, tensor: Tensor, target: Storage) -> None:
        """End a pass into `target`: download the values if the tensor lies on the CPU."""
        target.changes += 1
        if tensor.backend_type is BackendType.CPU:
            current_frame().blocking("TextureConverter.to_tensor() into a tensor on the CPU", _STAY_ON_GPU)
            tensor.upload(target.download(tensor.shape, tensor.dtype))

    def upload(self, picture: Any, texture: Any) -> None:
        """Copy an array, H x W x C, into a moderngl texture of its size, components and dtype; or a `media.Picture`. If
        its content is a frame of video, the GPU converts the colors, and the texture has four components. Call it in
        any frame.

        Two buffers take turns: the call returns when the array is copied; the GPU moves it during the frame. Raises
        InputError.
        """
        self._check_open()
        picture = content_of(picture)
        if not isinstance(picture, (np.ndarray, YuvFrame)):
            raise InputError(f"upload takes a picture as an array, not {type(picture).__name__}")
        passes = self._require_passes(arrays_serve=False)
        passes.upload(picture if isinstance(picture, YuvFrame) else as_picture(picture), texture)

    def to_texture(
        self,
        tensor: Tensor,
        texture: Any = None,
        transform: Transforms = None,
        *,
        size: tuple[int, int] | None = None,
        dtype: str = "f1",
    ) -> Any:
        """Draw a tensor into a texture, or into the transform's region of it, and return the texture. Sizes may differ.

        Without a texture a new one is made, or a list of them for a batch of several. `size` is by default the tensor's
        width and height, and moderngl's `dtype` is "f1", "f2" or "f4". It has one, two or four channels. Release it
        yourself. Without a GL context it is an array.

        Unless the transform has a `coord_origin`, the tensor's top goes to the last row of a texture attached to a
        framebuffer, as GL draws, and to the first row of any other. A batch is drawn into a list of textures or arrays,
        or into all layers of a texture array. Raises InputError.
        """
        self._check_open()
        if texture is None:
            texture = self._new_textures(tensor, transform, size, dtype)
        elif size is not None:
            raise InputError("size is for a new texture: this one has a size already")
        given, texture = texture, self._many(texture)
        many = isinstance(texture, list)
        targets = checked_targets(texture if many else [texture])
        hows = checked_transforms(transform, len(targets)) if many else [checked_transform(transform)]
        dims = [how.dims(tensor, len(targets) if many else None) for how in hows]
        places = [  # all are checked before anything is drawn
            as_target(target) if isinstance(target, np.ndarray) else self._require_passes().texture_size(target)
            for target in targets
        ]
        hows = [
            how if isinstance(target, np.ndarray) else self._upright(target, how)
            for target, how in zip(targets, hows, strict=True)
        ]
        values: Array | None = None
        for index, (target, place, how, each) in enumerate(zip(targets, places, hows, dims, strict=True)):
            if isinstance(place, np.ndarray):
                values = tensor.download_to_array() if values is None else values
                paint(values, place, how, each, len(targets), index)
            else:
                self._draw(tensor, target, how, place, each, batch=len(targets), index=index)
        return given

    def _new_textures(self, tensor: Tensor, transform: Transforms, size: tuple[int, int] | None, dtype: str) -> Any:
        """Textures, or arrays without a context, for a tensor: one, or a list for several pictures."""
        if dtype not in _DTYPES:
            raise InputError(f"dtype is one of {', '.join(_DTYPES)}, not {dtype!r}")
        order = (transform[0] if isinstance(transform, Sequence) and transform else checked_transform(transform)).layout
        is_batch = isinstance(tensor, Tensor) and len(tensor.shape) == 4
        count = tensor.shape[order.index(BATCH)] if is_batch else 1
        hows = checked_transforms(transform, count) if count > 1 else [checked_transform(transform)]
        made: list[Any] = []
        for how in hows:
            channels, height, width = how.dims(tensor, count if count > 1 else None)
            across, down = checked_size(size or (width, height))
            if how.broadcast or how.masked_color is not None:
                channels = 4
            elif how.swizzle != "rgba":
                channels = 1 + max(map("rgba".index, how.swizzle[:channels]))
            if self._passes is None:
                made.append(np.zeros((down, across, channels), _DTYPES[dtype]))
            else:
                made.append(self._passes.new_texture((across, down), channels, dtype))
        return made if count > 1 else made[0]

    def render_to_screen(
        self,
        tensor: Tensor,
        transform: TextureTransform | None = None,
        viewport: tuple[int, int, int, int] | None = None,
        framebuffer: Any = None,
    ) -> None:
        """Draw a tensor upright, so that it fills the viewport.

        By default it draws into the bound framebuffer and the current viewport, or else into the viewport of the given
        framebuffer; `viewport` is x, y, width and height.
        A region and a letterbox belong to another picture, and do not count here.
        """
        self._check_open()
        how = from_bottom(checked_transform(transform))
        dims = how.dims(tensor)
        passes = self._require_passes(arrays_serve=False)
        area = checked_area(viewport) if viewport is not None else passes.viewport(framebuffer)
        moved = how.replace(region=None, letterbox=None)
        self._draw(tensor, framebuffer, moved, (area[2], area[3]), dims, area)

    def open_sink(self, name: str) -> TextureSink:
        """Open "spout:NAME" (Windows) or "syphon:NAME" (macOS), which sends textures to other programs on this GPU.
        Raises InputError, and MissingExtraError without the package.
        """
        self._check_open()
        return open_texture_sink(name, cast(Any, self._ctx), self._require_passes(arrays_serve=False))

    def open_source(self, name: str) -> TextureSource:
        """Open "spout:NAME" or "syphon:NAME" of another program on this GPU, to receive. Raises as `open_sink` does."""
        self._check_open()
        self._require_passes(arrays_serve=False)
        return open_texture_source(name, cast(Any, self._ctx))

    def _draw(
        self,
        tensor: Tensor,
        target: Any,
        how: TextureTransform,
        size: tuple[int, int],
        dims: Dims,
        viewport: tuple[int, int, int, int] | None = None,
        batch: int = 1,
        index: int = 0,
    ) -> None:
        passes = self._require_passes()
        storage = self._storage(tensor)
        passes.check(tensor, storage)
        if not size[0] or not size[1]:
            return  # a minimized window has no pixels
        if tensor.backend_type is BackendType.CPU:
            with current_frame().named("Drawing a tensor on the CPU", WHILE_DRAWN):
                storage.upload(tensor.download_to_array())
        params, (x, y, width, height) = drawing_params(how, size, dims, tensor.dtype, batch, index)
        offset = viewport[:2] if viewport else (0, 0)
        area = (offset[0] + x, offset[1] + y, width, height)
        written = [name in how.write_mask or how.masked_color is not None for name in "rgba"]
        passes.draw(tensor, storage, target, params, area, offset, written)

    def _storage(self, tensor: Tensor) -> Storage:
        """The tensor's GPU storage. For a tensor on the CPU it is a stand-in."""
        passes = self._require_passes()
        if not tensor.is_pinned and self._backend is not BackendType.CPU:
            tensor.set_storage(passes.alloc(self._backend or passes.default, tensor))
        if tensor.backend_type is BackendType.CPU:
            return passes.own_storage(tensor)
        return tensor.data_on_backend

    def _require_passes(self, arrays_serve: bool = True) -> TexturePasses:
        if self._passes is None:
            advice = "or pass pictures as arrays" if arrays_serve else "as pf.TextureConverter(ctx)"
            raise InputError(f"this TextureConverter has no GL context: give it one, {advice}")
        return self._passes

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this TextureConverter was released")

    def release(self) -> None:
        """Free the converter's storage on the GPU. Further calls raise ClosedError."""
        self._closed = True
        if self._passes is not None:
            self._passes.release()

    def __repr__(self) -> str:
        return f"TextureConverter({'released' if self._closed else 'without GL' if self._ctx is None else 'on GL'})"

    def __enter__(self) -> TextureConverter:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
