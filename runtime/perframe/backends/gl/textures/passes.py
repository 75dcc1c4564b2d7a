"""Passes between the caller's textures and tensors: one draw or dispatch each, bound once and replayed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import moderngl
import numpy as np

from perframe.backends.gl.backend import GLBackend
from perframe.backends.gl.compile.program import Numbers, load_kernel
from perframe.backends.gl.compute import ComputeBackend
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.lowering.steps import Binding, kind_of, on_gl
from perframe.backends.gl.pixel import PixelBackend
from perframe.backends.gl.replay import Name
from perframe.backends.gl.texels import SHEETS
from perframe.backends.gl.textures import pictures
from perframe.backends.gl.textures.attachments import DrawnTextures
from perframe.backends.gl.textures.draw_step import DrawStep
from perframe.backends.gl.textures.frames import FramePass, OwnTexture
from perframe.backends.gl.textures.steps import (
    Filter,
    Pass,
    PixelBuffers,
    Replay,
    TextureLayer,
    TextureName,
    layer_of,
    layered_define,
    name_of,
    operand_at,
)
from perframe.backends.gl.textures.targets import DrawTarget
from perframe.backends.gl.textures.variant import Variant
from perframe.backends.operand import Array, Operand
from perframe.errors import BackendError, InputError
from perframe.graphics.yuv import YuvFrame
from perframe.tensor import BackendType, DataType, Storage, Tensor

if TYPE_CHECKING:
    from perframe.graphics import GLContext

_PIXELS = {"f1": "uint8", "nu1": "uint8", "f2": "float16", "f4": "float32"}  # by moderngl's names for dtypes
_ROWS, _TAPS = 64, 4  # the rows and the weights of filters are multiples of these; shaders read four weights
_AT_ONCE = 6  # parts that a pass joins
Bound = TypeVar("Bound")
_MAX_BOUND = 64  # passes that stay bound; beyond that, the least recently used one is dropped


class TexturePasses:
    """All passes of one TextureConverter."""

    def __init__(self, ctx: GLContext) -> None:
        self._device = device_for(ctx)
        with self._device.current():
            backends: list[GLBackend] = [PixelBackend(self._device)]
            if self._device.has_compute:
                backends.insert(0, ComputeBackend(self._device))
        self._backends = {backend.backend_type: backend for backend in backends}
        self._bound: OrderedDict[Hashable, Any] = OrderedDict()
        self._own: dict[Hashable, Storage] = {}
        self._drawn_textures = DrawnTextures(self._device)
        self._target = DrawTarget(self._device)

    @property
    def default(self) -> BackendType:
        """The backend on which a tensor without storage is placed."""
        return next(iter(self._backends))

    def alloc(self, backend: BackendType, tensor: Tensor) -> Storage:
        """Allocate storage for a tensor. Raises BackendError if this context lacks the backend."""
        if backend not in self._backends:
            raise BackendError(f"this GL context has no {backend}: it is GL {self._device.ctx.version_code / 100:.1f}")
        return self._backends[backend].alloc(tensor.shape, tensor.dtype)

    def own_storage(self, tensor: Tensor, backend: BackendType | None = None, index: int = -1) -> Storage:
        """GPU storage that stands in for a tensor on the CPU, or for one of a batch, by its index."""
        key = (backend, index, tensor.shape, tensor.dtype)
        if key not in self._own:
            self._own[key] = self.alloc(backend or self.default, tensor)
        return self._own[key]

    def storage_on(self, target: Storage, tensor: Tensor) -> Storage:
        """A tensor's storage on the backend of `target`: its own, or a copy."""
        if tensor.backend_type is target.backend_type:
            return tensor.data_on_backend
        copy = self.own_storage(tensor, target.backend_type, -2)
        copy.upload(tensor.download_to_array())
        return copy

    def layers(self, texture: Any) -> list[TextureLayer]:
        """The layers of the caller's array texture; none if it is not one."""
        many = texture.layers if isinstance(texture, moderngl.TextureArray) else 0
        return [TextureLayer(texture, layer) for layer in range(many)]

    def readable(self, texture: Any, mipmap: bool = False) -> Any:
        """A texture to read. A framebuffer stands for its first one; raises InputError if it has none. A frame of video
        is drawn into a texture of ours, with a mipmap on demand.
        """
        if isinstance(texture, YuvFrame):
            return self._texture_of(texture, mipmap)
        if not isinstance(texture, moderngl.Framebuffer):
            return texture
        pictures.check_object(self._device, texture)
        return self._drawn_textures.texture_of(texture)

    def is_drawn(self, texture: Any) -> bool:
        """Whether GL draws into a texture, so that its first row is the bottom one."""
        return self._drawn_textures.is_drawn(texture)

    def texture_size(self, texture: Any) -> tuple[int, int]:
        """Width and height of the caller's texture, a moderngl object or a GL name. Raises InputError, ClosedError."""
        return pictures.size_of(self._device, texture)

    def channels(self, texture: Any) -> int:
        """The channels of the caller's texture; four for a GL name. Raises InputError, ClosedError."""
        self.texture_size(texture)
        return pictures.channels_of(texture)

    def new_texture(self, size: tuple[int, int], channels: int, dtype: str) -> moderngl.Texture:
        """Make a texture for the caller, with room for the channels. `dtype` is moderngl's name."""
        return pictures.new_texture(self._device, size, channels, dtype)

    def _texture_of(self, frame: YuvFrame, mipmap: bool) -> moderngl.Texture:
        """Our texture with a frame of video."""
        with self._device.using():
            texture = self._pass(("own", frame.size), lambda: OwnTexture(self._device, frame.size)).texture
            self._draw_frame(frame, texture)
            if mipmap:
                texture.build_mipmaps()
        return texture

    def _draw_frame(self, frame: YuvFrame, texture: moderngl.Texture) -> None:
        with self._device.using() as gl:
            make = partial(FramePass, self._device, self._target, frame)
            self._pass(FramePass.key(frame), make).draw(gl, frame, texture)
        self._drawn_textures.note_upload(texture)

    def upload(self, picture: Array | YuvFrame, texture: Any) -> None:
        """Copy an array into the caller's texture of its size, components and dtype; or draw a frame of video into one
        of its size with four components. Raises InputError.
        """
        if not isinstance(texture, moderngl.Texture):
            raise InputError(f"an array is uploaded into a moderngl.Texture, not {type(texture).__name__}")
        size = self.texture_size(texture)
        if isinstance(picture, YuvFrame):
            if (size, texture.components) != (picture.size, 4):
                raise InputError(
                    f"a frame of video of {picture.size[0]}×{picture.size[1]} is uploaded into a texture of its size "
                    f"with 4 components; this one is {size[0]}×{size[1]} with {texture.components}"
                )
            self._draw_frame(picture, texture)
            return
        wanted = (texture.height, texture.width, texture.components), _PIXELS.get(texture.dtype)
        if wanted[1] is None:
            raise InputError(f"a {texture.dtype} texture takes no uploads: make one of {', '.join(_PIXELS)}")
        if (picture.shape, picture.dtype.name) != wanted:
            raise InputError(
                f"this texture takes arrays of {wanted[1]} {wanted[0]}, not {picture.dtype} {picture.shape}: make a "
                "texture of the picture's size, components and dtype"
            )
        with self._device.using():
            buffers = self._pass(("upload", picture.nbytes), lambda: PixelBuffers(self._device, picture.nbytes))
            buffers.upload(np.ascontiguousarray(picture), texture)
        self._drawn_textures.note_upload(texture)

    def mipmap_levels(self, texture: Any, size: tuple[int, int]) -> int:
        """The number of levels of the texture's mipmap. Raises InputError if only the first is there."""
        return pictures.mipmap_levels(self._device, texture, size)

    def to_tensor(self, texture: Any, tensor: Tensor, storage: Storage, params: Mapping[str, Numbers]) -> None:
        """Sample a texture into a tensor's storage."""
        self.check(tensor, storage)

        def make() -> Pass[Replay]:
            source, (output, place) = TextureName(0), operand_at(tensor.shape, tensor.dtype)
            return self._bind("texture_to_tensor", {}, output, variant, {"T": source}, storage, [source, place])

        variant = Variant.of(params, texture)
        with self._device.using() as gl:
            key = ("to_tensor", storage.backend_type, tensor.shape, tensor.dtype, variant.key)
            found = self._pass(key, make)
            found.step.actual = TextureName(name_of(texture)), storage
            found.run(gl, variant.numbers)

    def crop(
        self,
        texture: Any,
        regions: Tensor,
        regions_storage: Storage,
        tensor: Tensor,
        storage: Storage,
        params: Mapping[str, Numbers],
    ) -> None:
        """Sample regions of a texture, whose numbers lie in a storage, into the batch of a tensor's storage."""
        self.check(tensor, storage)
        self.check(regions, regions_storage)

        def make() -> Pass[Replay]:
            source, (output, place) = TextureName(0), operand_at(tensor.shape, tensor.dtype)
            given, first = operand_at(regions.shape, regions.dtype)
            planned = source, first, place
            return self._bind("regions_to_tensor", {"R": given}, output, variant, {"T": source}, storage, planned)

        variant = Variant.of(params, texture, has_regions=True)
        with self._device.using() as gl:
            key = ("crop", storage.backend_type, tensor.shape, tensor.dtype, regions.shape, variant.key)
            found = self._pass(key, make)
            found.step.actual = TextureName(name_of(texture)), regions_storage, storage
            found.run(gl, variant.numbers)

    def filter_to_tensor(
        self,
        texture: Any,
        tensor: Tensor,
        storage: Storage,
        size: tuple[int, int],
        params: Mapping[str, Any],
        weights: tuple[Any, Any],
        flipped: bool,
    ) -> None:
        """Filter a texture into a tensor's storage: first across, for the rows that the tensor needs, and then down.

        `weights` are `textures.filters.FilterWeights`. If `flipped`, the texture's first row is the picture's last.
        """
        self.check(tensor, storage)
        top, end = weights[1].span
        rows = _rounded(end - top, _ROWS)  # so that regions of similar sizes share a pass
        counts = weights[0].values.shape[1], weights[1].values.shape[1]
        taps = _rounded(counts[0], _TAPS), _rounded(counts[1], _TAPS)
        wide, high = params["box"][2:]
        stride = _rounded(wide, SHEETS)
        begin = {"first_row": size[1] - 1 - top, "row_step": -1} if flipped else {"first_row": top, "row_step": 1}
        numbers = {"texture_size": size, "layer": layer_of(texture), "width": wide, "rows": rows, "taps": counts[0]}
        across = Variant(numbers | begin, layered_define(texture))
        down = Variant({"stride": stride, "rows": rows, "taps": counts[1], "first_row": top}, {})
        into = Variant.of({**params, "stride": stride})

        def make() -> Filter:
            backend = self._backends[storage.backend_type]
            shapes = (stride, rows, 4), (high, stride, 4), (wide, 4 + taps[0]), (high, 4 + taps[1])
            columns, picture, first, second = (
                Operand("filter", shape, DataType.FLOAT32, storage=backend.alloc(shape, DataType.FLOAT32))
                for shape in shapes
            )
            source, (output, place) = TextureName(0), operand_at(tensor.shape, tensor.dtype)
            return Filter(
                self._bind("filter_columns", {"F": first}, columns, across, {"T": source}, storage, [source]),
                self._bind("filter_rows", {"X": columns, "F": second}, picture, down, {}, storage, []),
                self._bind("filter_to_tensor", {"X": picture}, output, into, {}, storage, [place]),
                (first.storage, second.storage),
            )

        with self._device.using() as gl:
            shapes = tensor.shape, tensor.dtype, wide, high, rows, taps
            found = self._pass(("filter", storage.backend_type, shapes, across.key, into.key), make)
            found.set_weights(weights, taps)
            found.across.step.actual, found.into.step.actual = (TextureName(name_of(texture)),), (storage,)
            found.across.run(gl, across.numbers)
            found.down.run(gl, down.numbers)
            found.into.run(gl, into.numbers)

    def join(self, parts: Sequence[Storage], item: Tensor, tensor: Tensor, storage: Storage, inner: int) -> None:
        """Join the storages of a batch's items, which are like `item`, along the batch's dim of a tensor. `inner`
        elements of an item lie after that dim.
        """
        self.check(tensor, storage)
        kind, done, outer = storage.backend_type, 0, item.shape.size // inner
        given = list(parts)
        while given:
            now, given = given[:_AT_ONCE], given[_AT_ONCE:]
            runs = [done or inner, *[inner] * (len(now) - 1)]
            done = sum(runs)
            whole = not any(run % 4 for run in runs)
            counts = [run // 4 for run in runs] if whole else runs
            target = self.own_storage(Tensor.empty((outer * done,), tensor.dtype), kind) if given else storage
            params: dict[str, Numbers] = {
                "first": [sum(counts[:k]) for k in range(len(now))],
                "run": counts,
                "total": sum(counts),
            }
            defines = {"OPERANDS": str(len(now)), **({"WHOLE": "1"} if whole else {})}
            self._join(now, [outer * run for run in runs], target, tensor.dtype, params, defines)
            given = [target, *given] if given else []

    def _join(
        self,
        parts: Sequence[Storage],
        sizes: Sequence[int],
        target: Storage,
        dtype: DataType,
        params: Mapping[str, Numbers],
        defines: Mapping[str, str],
    ) -> None:
        """Join up to six storages."""

        def make() -> Pass[Replay]:
            *given, (output, place) = [operand_at((run,), dtype) for run in (*sizes, sum(sizes))]
            inputs, planned = {f"X{k}": one for k, (one, _) in enumerate(given)}, [*(each for _, each in given), place]
            return self._bind("join", inputs, output, Variant(params, defines), {}, target, planned)

        with self._device.using() as gl:
            found = self._pass(("join", target.backend_type, tuple(sizes), dtype, *sorted(defines)), make)
            found.step.actual = (*parts, target)
            found.run(gl, params)

    def _bind(
        self,
        name: str,
        inputs: dict[str, Operand],
        output: Operand,
        variant: Variant,
        textures: Mapping[str, TextureName],
        storage: Storage,
        planned: Sequence[TextureName],
    ) -> Pass[Replay]:
        """A pass of a kernel on the backend of this storage."""
        kernel = load_kernel(name if name == "join" else f"convert/{name}")
        defines = {**variant.defines, **({"BYTES": "1"} if kind_of(output.dtype) == "int" else {})}
        named = {sampler: Name(texture, "glo") for sampler, texture in textures.items()}
        binding = Binding(name, kernel, inputs, output, variant.numbers, defines, "", named)
        step = self._backends[storage.backend_type].bind(binding)
        self._device.programs.settle()
        return Pass(self._device, kernel, Replay(step, *planned), output.shape.size)

    def viewport(self, framebuffer: Any) -> tuple[int, int, int, int]:
        """The viewport of the caller's framebuffer; without one, the current viewport."""
        return self._target.viewport(framebuffer)

    def draw(
        self,
        tensor: Tensor,
        storage: Storage,
        target: Any,
        params: Mapping[str, Numbers],
        viewport: tuple[int, int, int, int],
        offset: tuple[int, int],
        written: Sequence[bool],
    ) -> None:
        """Draw a tensor into a texture, a framebuffer, or (None) the bound framebuffer.

        `viewport` is the area that the tensor covers. `offset` is the pixel from which `params["origin"]` counts.
        `written` says for each of the four channels whether drawing may change it.
        """
        self.check(tensor, storage)
        origin: Any = params["origin"]
        params = {**params, "origin": (origin[0] + offset[0], origin[1] + offset[1]), "corner": viewport[:2]}
        variant = Variant.drawing(params)
        kind = "half" if on_gl(storage).is_half else kind_of(tensor.dtype)
        compute = storage.backend_type == BackendType.GPU_COMPUTE

        def make() -> Pass[DrawStep]:
            step = DrawStep(self._device, self._target, compute, kind, variant.defines)
            return Pass(self._device, step.kernel, step, 0)

        with self._device.using() as gl:
            found = self._pass(("draw", compute, kind, variant.key), make)
            self._target.choose(gl, target)
            found.step.input, found.step.viewport, found.step.written = storage, viewport, written
            found.run(gl, variant.numbers)
            found.step.input = None

    def check(self, tensor: Tensor, storage: Storage) -> None:
        """Raise ClosedError for a released tensor, and InputError for one in another context."""
        placed = on_gl(storage)
        placed.glo  # noqa: B018  # raises if it was released
        if placed.device is not self._device:
            raise InputError(
                f"tensor {tensor.name!r} {tensor.shape} lies in another GL context: give its worker and the "
                "TextureConverter the same ctx"
            )

    def _pass(self, key: Hashable, make: Callable[[], Bound]) -> Bound:
        found: Bound | None = self._bound.get(key)
        if found is None:
            found = self._bound[key] = make()
            if len(self._bound) > _MAX_BOUND:
                self._bound.popitem(last=False)
        self._bound.move_to_end(key)
        return found

    def release(self) -> None:
        """Free the bound passes and their storage."""
        self._bound.clear()
        for storage in self._own.values():
            storage.release()
        self._own.clear()


def _rounded(count: int, step: int) -> int:
    return -(-count // step) * step
