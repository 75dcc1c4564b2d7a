"""GPU_PIXEL: tensors are float or int array textures, kernels are pixel shaders of GL 3.3 that blit into them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Self

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.compile.program import TOUCHED
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY
from perframe.backends.gl.lowering.steps import Array, Binding, KernelStep, from_gpu, kind_of, to_gpu
from perframe.backends.gl.replay import CommandList, Name
from perframe.backends.gl.storage.storage import PIECE, GLStorage, runs_of
from perframe.backends.gl.storage.texel_writer import TexelWriter
from perframe.backends.gl.texels import (
    SHEETS,
    count_texels,
    from_sheets,
    most_elements,
    shader_of_places,
    texture_size,
    to_sheets,
)
from perframe.backends.precision import FULL, Precision
from perframe.backends.refit import SizeMath
from perframe.graphics.functions import delete, generate
from perframe.tensor import BackendType, DataType, Storage, TensorShape

if TYPE_CHECKING:
    from perframe.graphics import GLContext

_READ_FRAMEBUFFER, _DRAW_FRAMEBUFFER, _COLOR_BIT, _NEAREST = 0x8CA8, 0x8CA9, 0x4000, 0x2600
_FRAMEBUFFER, _TRIANGLES = 0x8D40, 4
_TARGETS = range(0x8CE0, 0x8CE0 + SHEETS)  # GL_COLOR_ATTACHMENT0 and so on
_PACK_BUFFER, _BYTES = 0x88EB, 16
_PIXELS = {"float": (0x1908, 0x1406), "int": (0x8D99, 0x1404)}  # RGBA of floats, RGBA_INTEGER of ints
# A frame draws at least a block of 4 × 4 texels: llvmpipe shades whole blocks, and GPUs quads. Where fewer rows are
# left blocks are longer, so that each costs what the others do.
_BLOCK = 4
_LAST_LENGTHS = {1: 16, 2: 8, 3: 4}  # by the number of rows


class Framebuffers:
    """The framebuffers that draw into an array texture. Each is made when it is first used."""

    def __init__(self, gl: Any, texture: int) -> None:
        self._gl, self._texture = gl, texture

    @cached_property
    def every(self) -> int:
        """A framebuffer with all sheets as render targets."""
        name = self._make()
        for sheet, target in enumerate(_TARGETS):
            self._gl.glFramebufferTextureLayer(_FRAMEBUFFER, target, self._texture, 0, sheet)
        self.choose(_TARGETS)
        return name

    @cached_property
    def any(self) -> int:
        """A framebuffer with one target; the geometry shader selects the layer."""
        name = self._make()
        self._gl.glFramebufferTexture(_FRAMEBUFFER, _TARGETS[0], self._texture, 0)
        return name

    def choose(self, targets: Sequence[int]) -> None:
        """Draw into these targets of the bound framebuffer."""
        self._gl.glDrawBuffers(len(targets), (ctypes.c_uint * len(targets))(*targets))

    def _make(self) -> int:
        name = generate(self._gl, "Framebuffers")
        self._gl.glBindFramebuffer(_FRAMEBUFFER, name)
        return name

    def release(self) -> None:
        """Free them."""
        for name in ("every", "any"):
            made = self.__dict__.pop(name, None)
            if made is not None:
                delete(self._gl, "Framebuffers", made)


class TextureStorage(GLStorage):
    """A tensor in an array texture of RGBA32F, RGBA16F or RGBA32I; texels.py says where its elements lie."""

    backend_type = BackendType.GPU_PIXEL

    def _make(self) -> tuple[Any, ...]:
        self.kind, self._shift = kind_of(self.dtype), self.device.texture_shift
        size = texture_size(self.size, self._shift)
        texture = self.device.texture(size, "half" if self.is_half else self.kind)
        self._capacity = size[0] * size[1] * SHEETS * 4
        return Framebuffers(self.device.gl, texture.glo), texture

    def bytes_for(self, size: int) -> int:
        """The bytes of a texture for `size` elements."""
        return self.device.texture_bytes(texture_size(size, self._shift), self.element_bytes)

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""
        return self._capacity if self.is_open else 0

    @property
    def most_elements(self) -> int:
        """The elements of the largest texture."""
        return most_elements(self.device.limits["texture_size"], self._shift)

    @property
    def framebuffers(self) -> Framebuffers:
        """The framebuffers that draw into it. Raises ClosedError after release()."""
        assert self.glo
        made: Framebuffers = self._objects[0]
        return made

    def upload(self, array: Array) -> None:
        """Write the values of `array`."""
        self.changes += 1
        if not self.glo or not array.size:
            return
        size = texture_size(array.size, self._shift)
        values = to_sheets(to_gpu(array, self.is_half), self._shift)
        with self.device.using():
            self.memory.write(values, viewport=(0, 0, 0, *size, SHEETS))

    def pieces(self, arranged: Array) -> Iterator[None]:
        """Write arranged values, a piece at each step."""
        self.changes += 1
        _, height, width = arranged.shape
        rows = max(1, PIECE // max(1, width * arranged.itemsize))
        for sheet, top in product(range(SHEETS), range(0, height, rows)):
            values = arranged[sheet, top : top + rows]
            with self.device.using():
                self.memory.write(values, viewport=(0, top, sheet, width // 4, len(values), 1))
            yield

    def upload_part(self, array: Array, at: Sequence[int], shape: Sequence[int]) -> None:
        """Write a block of a tensor, run by run."""
        self.changes += 1
        begins, run = runs_of(array.shape, at, shape)
        if self.glo and array.size:
            rows = to_gpu(array, self.is_half).reshape(-1, run)
            with self.device.using() as gl:
                writer = TexelWriter(gl, self.memory, self.framebuffers.every, self.kind, self._shift)
                for begin, row in zip(begins, rows, strict=True):
                    writer.write(begin, row)

    def request(self, shape: Sequence[int], dtype: DataType) -> StagedReadback:
        """Copy the sheets to a pixel buffer on the GPU, one after the other, and set a fence."""
        size, shift = TensorShape(shape).size if self.glo else 0, self._shift
        width, height = texture_size(size, shift)
        sheet = width * height * _BYTES
        targets, room = _TARGETS[: count_texels(size)] if size else (), self.snapshots.room
        with self.device.using() as gl:
            staging = self.device.take_staging(max(1, len(targets) * sheet))
            if size:
                gl.glBindFramebuffer(_READ_FRAMEBUFFER, self.framebuffers.every)
                gl.glBindBuffer(_PACK_BUFFER, staging.glo)
                for index, target in enumerate(targets):
                    gl.glReadBuffer(target)
                    gl.glReadPixels(0, 0, width, height, *_PIXELS[self.kind], index * sheet)
                gl.glBindBuffer(_PACK_BUFFER, 0)

            def convert(values: Array) -> Array:
                return from_gpu(from_sheets(values, size, shift, room) if size else values, shape, dtype)

            return StagedReadback(self.device, staging, len(targets) * sheet, self.kind, room, convert)


class PixelStep(KernelStep):
    """One blit: it draws into the output's sheets, into all of them at once unless the kernel is long."""

    def __init__(self, device: Device, binding: Binding) -> None:
        kinds = {name: kind_of(binding.inputs[name].dtype) for name in binding.reads}
        samplers = [f"{name}_texture" for name in kinds]
        super().__init__(device, binding, "pixel", texture_accessors(device, kinds), {}, samplers)
        self._vertex_array = device.vertex_array
        self._width, self._height = texture_size(binding.output.shape.size, device.texture_shift)
        top = binding.left_alone // (SHEETS * self._width)
        parts = binding.parts(self._height - top)
        self._parts = [(0, top + first, self._width, count) for first, count in parts]
        self._is_long = binding.is_long
        self._instances = min(SHEETS, count_texels(binding.output.shape.size)) if self._is_long else 1
        self._is_whole = TOUCHED not in binding.defines
        if not self._is_whole:  # each instance draws one place
            self._parts, self._instances = [(0, 0, self._width, self._height)], binding.tiles

    @property
    def rows(self) -> int:
        """The number of parts that it may be drawn in: blocks of texels."""
        return count_blocks(self._width, self._height) if self._is_whole else 1

    def with_numbers(self, function: Callable[[Any], Any]) -> Self:
        """Return the step with other numbers in the place of those that may depend on sizes."""
        made = super().with_numbers(function)
        made._width, made._height, made._instances = map(function, (self._width, self._height, self._instances))
        made._parts = [tuple(map(function, part)) for part in self._parts]
        return made

    def record(self, commands: CommandList, uniforms: int, rows: tuple[int, int] | None = None) -> None:
        """Record draws that cover the output's texels, or parts of them, or some rows: the first, and how many."""
        self._bind(commands, uniforms)
        for unit, storage in enumerate(self._inputs):
            commands.set_texture(unit, TEXTURE_2D_ARRAY, Name(storage, "glo"), self._sampler)
        for unit, texture in enumerate(self._textures, len(self._inputs)):
            commands.set_texture(unit, self._texture_target, texture, self._sampler)
        target = Name(self._output, "framebuffers.any" if self._is_long else "framebuffers.every")
        commands.set(1, "glBindFramebuffer", _FRAMEBUFFER, target)
        commands.set(0, "glBindVertexArray", self._vertex_array)
        for area in self._parts if rows is None or not self._is_whole else areas(self._width, self._height, *rows):
            commands.set(0, "glViewport", *area)
            commands.call("glDrawArraysInstanced", _TRIANGLES, 0, 3, self._instances)


def count_blocks(width: int, height: int) -> int:
    """The number of blocks of a texture."""
    last = height % _BLOCK
    return height // _BLOCK * -(-width // _BLOCK) + (-(-width // _LAST_LENGTHS[last]) if last else 0)


def areas(width: int, height: int, first: int, count: int) -> list[tuple[int, int, int, int]]:
    """The rectangles (x, y, width, height) of consecutive blocks of a texture. Blocks follow each other along bands."""
    bands, across = height // _BLOCK, -(-width // _BLOCK)
    end = first + count
    (top, left), (bottom, right) = divmod(first, across), divmod(min(end, bands * across), across)
    found = []  # in texels: left, top, right, bottom
    if top == bottom:
        found.append((left * _BLOCK, top * _BLOCK, right * _BLOCK, (top + 1) * _BLOCK))
    elif top < bottom:
        whole = top + (left > 0)
        found.append((left * _BLOCK, top * _BLOCK, width if left else 0, (top + 1) * _BLOCK))
        found.append((0, whole * _BLOCK, width, bottom * _BLOCK))
        found.append((0, bottom * _BLOCK, right * _BLOCK, (bottom + 1) * _BLOCK))
    if end > bands * across:
        length = _LAST_LENGTHS[height % _BLOCK]
        begin, until = max(0, first - bands * across), end - bands * across
        found.append((begin * length, bands * _BLOCK, until * length, height))
    return [(x, y, min(right, width) - x, bottom - y) for x, y, right, bottom in found if x < right and y < bottom]


def texture_accessors(device: Device, kinds: Mapping[str, str]) -> list[str]:
    """GLSL that declares textures of these kinds, and reads an element, four, those at four indices, or a texel."""
    read = (
        "textureLod(T, vec3((vec2(COLUMN, ROW) + 0.5) / vec2(textureSize(T, 0)), SHEET), 0.0)"
        if device.choices["texels"] == "sampled"
        else "texelFetch(T, ivec3(COLUMN, ROW, SHEET), 0)"
    )
    of_texel = read.replace("COLUMN", "COLUMN(t)").replace("ROW", "ROW(t)").replace("SHEET", "SHEET(t) + k")
    of_place = read.replace("COLUMN", "COLUMN_OF(p)").replace("ROW", "ROW_OF(p)").replace("SHEET", "sheet")
    places = (
        f"{shader_of_places(device.texture_shift)}\n"
        f"#define READ_TEXEL(T, t, k) {of_texel}\n"
        f"#define READ_PLACE(T, p, sheet) {of_place}"
    )
    return [places, *(_accessor(name, kind) for name, kind in kinds.items())]


def _accessor(name: str, kind: str) -> str:
    sampler, vector = ("sampler2DArray", "vec4") if kind == "float" else ("isampler2DArray", "ivec4")
    return (
        f"uniform {sampler} {name}_texture;\n"
        f"{vector} {name}_texel(int t) {{ return READ_TEXEL({name}_texture, t, 0); }}\n"
        f"{vector} {name}_near(int t, int k) {{ return READ_TEXEL({name}_texture, t, k); }}\n"
        f"{vector} {name}_on(int place, int sheet) {{ return READ_PLACE({name}_texture, place, sheet); }}\n"
        f"{kind} {name}(int i) {{ return {name}_texel(i >> 2)[i & 3]; }}\n"
        f"{vector} {name}_four(int i) {{\n"
        f"    {vector} a = {name}_texel(i >> 2);\n"
        f"    if ((i & 3) == 0) return a;\n"
        f"    {vector} b = {name}_texel((i >> 2) + 1);\n"
        f"    if ((i & 3) == 1) return {vector}(a.yzw, b.x);\n"
        f"    return (i & 3) == 2 ? {vector}(a.zw, b.xy) : {vector}(a.w, b.xyz);\n"
        f"}}\n"
        f"{vector} {name}_at(ivec4 at) {{\n"
        f"    if (at == ivec4(at.x)) return {vector}({name}(at.x));\n"
        f"    if (at == at.x + ivec4(0, 1, 2, 3)) return {name}_four(at.x);\n"
        f"    return {vector}({name}(at.x), {name}(at.y), {name}(at.z), {name}(at.w));\n"
        f"}}"
    )


class PixelBackend(GLBackend):
    """Pixel shaders over textures."""

    backend_type = BackendType.GPU_PIXEL

    def __init__(self, device: Device, precision: Precision = FULL) -> None:
        super().__init__(device, precision)
        self.max_elements = most_elements(device.limits["texture_size"], device.texture_shift)

    def alloc(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> TextureStorage:
        """An array texture."""
        return TextureStorage(self.device, shape, dtype, is_half)

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value from texture to texture, sheet by sheet."""
        assert isinstance(source, TextureStorage) and isinstance(target, TextureStorage)
        target.changes += 1
        size = TensorShape(shape).size
        area = (0, 0, *texture_size(size, self.device.texture_shift))
        with self.device.using() as gl:
            names = source.framebuffers.every, target.framebuffers.every
            gl.glBindFramebuffer(_READ_FRAMEBUFFER, names[0])
            gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, names[1])
            for index, attachment in enumerate(_TARGETS[: count_texels(size)]):
                gl.glReadBuffer(attachment)
                chosen = [0] * index + [attachment]  # GL_NONE, and then the target of this index
                target.framebuffers.choose(chosen)
                gl.glBlitFramebuffer(*area, *area, _COLOR_BIT, _NEAREST)
            target.framebuffers.choose(_TARGETS)

    def capacity(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> tuple[str, int]:
        """The kind of numbers and the number of texels: any texture of this kind that is large enough serves."""
        width, height = texture_size(TensorShape(shape).size, self.device.texture_shift)
        return "half" if is_half else kind_of(dtype), width * height

    def arranged(self, value: Array, is_half: bool) -> Array:
        """The values in the order of textures: rows of all sheets."""
        width = texture_size(value.size, self.device.texture_shift)[0]
        return to_sheets(to_gpu(value, is_half), self.device.texture_shift).reshape(SHEETS, -1, 4 * width)

    def bind(self, binding: Binding) -> PixelStep:
        """Make a blit of a binding."""
        return PixelStep(self.device, binding)


def open_backend(ctx: GLContext | None, precision: Precision = FULL, size_math: SizeMath | None = None) -> PixelBackend:
    """Open the backend in the caller's context, or in a headless one. Raises BackendError without GL 3.3."""
    device = device_for(ctx)
    with device.current():
        made = PixelBackend(device, precision)
    made.size_math = size_math
    return made
