"""Steps between the caller's textures and tensors, which are bound once and replayed with other numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar

import moderngl

from perframe.backends.gl.compile.program import LAYERED, Kernel, Numbers, compose, load_kernel
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY
from perframe.backends.gl.lowering.read_buffers import ReadBuffer
from perframe.backends.gl.pixel import texture_accessors
from perframe.backends.gl.program.sequence import GLStep
from perframe.backends.gl.replay import CommandList
from perframe.backends.gl.texels import SHEETS
from perframe.backends.operand import Array, Operand
from perframe.graphics.functions import get
from perframe.graphics.state_tables import FRAMEBUFFER_SRGB
from perframe.safety.records import dataclass
from perframe.tensor import DataType

_TEXTURE0, _DRAW_FRAMEBUFFER, _UNIFORM_BUFFER, _STORAGE_BUFFER = 0x84C0, 0x8CA9, 0x8A11, 0x90D2
_TRIANGLES, _BARRIERS, _DRAW_BUFFER, _NO_CHANNEL = 4, 0xFFFFFFFF, 0x8825, (False,) * 4


class Runnable(Protocol):
    """A step that reads a uniform buffer."""

    def run(self, gl: Any, uniforms: int) -> None:
        """Submit the step."""


Submitted = TypeVar("Submitted", bound=Runnable)


class Pass(Generic[Submitted]):
    """A kernel's uniform buffer, which is written only when the numbers change, and the pass that reads it."""

    def __init__(self, device: Device, kernel: Kernel, step: Submitted, size: int) -> None:
        self.step = step
        self._device, self._kernel, self._size = device, kernel, size
        self._block = b""
        self._uniforms: Any = None

    def run(self, gl: Any, params: Mapping[str, Numbers]) -> None:
        """Submit the pass with these numbers."""
        block, _ = self._kernel.pack({"O_size": self._size, "O_tiles": 0, **params}, "float")
        if self._uniforms is None:
            self._uniforms = self._device.buffer(len(block))
        if block != self._block:
            self._uniforms.write(block)
            self._block = block
        self.step.run(gl, self._uniforms.glo)

    def __del__(self) -> None:
        if self._uniforms is not None:
            self._device.drop(self._uniforms)


@dataclass(frozen=True, eq=False)
class TextureName:
    """The caller's texture, by its GL name, or the place of a tensor's storage in a pass."""

    glo: int
    is_half: bool = False


@dataclass(frozen=True, eq=False)
class TextureLayer:
    """A layer of the caller's array texture."""

    texture: moderngl.TextureArray
    layer: int

    @property
    def glo(self) -> int:
        """The GL name of the array texture."""
        return int(self.texture.glo)


def layer_of(texture: Any) -> int:
    """The number of a layer; 0 for a texture."""
    return texture.layer if isinstance(texture, TextureLayer) else 0


def layered_define(texture: Any) -> dict[str, str]:
    """The define of kernels that sample a layer."""
    return {LAYERED: "1"} if isinstance(texture, TextureLayer) else {}


def name_of(texture: Any) -> int:
    """The GL name of a texture or a layer's texture."""
    return int(texture if isinstance(texture, Integral) else texture.glo)


def operand_at(shape: Sequence[int], dtype: DataType) -> tuple[Operand, TextureName]:
    """A tensor as a lowering sees it, and the place that stands for its storage."""
    place: Any = TextureName(0, dtype is DataType.FLOAT16)
    return Operand("tensor", shape, dtype, storage=place), place


class PixelBuffers:
    """Two buffers for uploads: the GPU reads the one while the next picture is written into the other."""

    def __init__(self, device: Device, size: int) -> None:
        self._device, self._next = device, 0
        self._buffers = [device.buffer(size) for _ in range(2)]

    def upload(self, pixels: Array, texture: moderngl.Texture) -> None:
        """Write pixels into a buffer, and let the GPU copy them into a moderngl texture."""
        buffer = self._buffers[self._next]
        self._next = 1 - self._next
        buffer.write(pixels)
        texture.write(buffer, alignment=1)

    def __del__(self) -> None:
        self._device.drop(*self._buffers)


class Replay:
    """A recorded step. Other things stand in for those that were planned: textures and the storages of tensors."""

    def __init__(self, step: GLStep, *planned: Any) -> None:
        self._step, self._planned = step, planned
        self.actual: tuple[Any, ...] = ()
        self._commands: CommandList | None = None

    def run(self, gl: Any, uniforms: int) -> None:
        """Replay the step."""
        bound = dict(zip(self._planned, self.actual, strict=True))
        if self._commands is None:
            commands = CommandList(gl, bound)
            self._step.record(commands, uniforms)
            self._commands = commands.finish()
            bound.clear()  # the list must not keep a dropped tensor alive
        else:
            for planned, new in bound.items():
                self._commands.replace(planned, new)
        self._commands.run()
        self.actual = ()  # nor may the pass


class Filter:
    """The two passes of a filter, and their tables of weights, which change with the region."""

    def __init__(self, across: Pass[Replay], down: Pass[Replay], tables: tuple[Any, Any]) -> None:
        self.across, self.down = across, down
        self._tables, self._weights = tables, (None, None)

    def set_weights(self, weights: tuple[Any, Any], taps: tuple[int, int]) -> None:
        """Write the tables if they have changed."""
        for old, new, table, count in zip(self._weights, weights, self._tables, taps, strict=True):
            if old is not new:
                table.upload(new.table(count))
        self._weights = weights


class DrawStep:
    """A pass that draws a tensor into pixels. With `encodes`, colors are encoded for an sRGB texture."""

    def __init__(self, device: Device, compute: bool, kind: str) -> None:
        self.kernel = load_kernel("convert/tensor_to_texture")
        sampled = "int" if kind == "int" else "float"
        accessors = [ReadBuffer("X", kind, 0).accessor] if compute else texture_accessors(device, {"X": sampled})
        shader = compose(self.kernel, "draw", accessors, {"O_TYPE": "float"}, "", 430 if compute else 330)
        self._program = device.programs.get(shader, [] if compute else ["X_texture"], self.kernel.name)
        device.programs.settle()
        self._vertex_array, self._sampler, self._compute = device.vertex_array, device.sampler, compute
        self._framebuffer = device.framebuffer
        self.input: Any = None
        self.target, self.viewport = 0, (0, 0, 0, 0)
        self.written: Sequence[bool] = [True] * 4
        self.encodes = False

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferBase(_UNIFORM_BUFFER, 0, uniforms)
        if self._compute:
            gl.glMemoryBarrier(_BARRIERS)
            gl.glBindBufferBase(_STORAGE_BUFFER, 0, self.input.glo)
        else:
            gl.glActiveTexture(_TEXTURE0)
            gl.glBindTexture(TEXTURE_2D_ARRAY, self.input.glo)
            gl.glBindSampler(0, self._sampler)
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self.target)
        gl.glViewport(*self.viewport)
        gl.glBindVertexArray(self._vertex_array)
        if self.encodes:
            gl.glEnable(FRAMEBUFFER_SRGB)
        written = {0: self.written, **dict.fromkeys(self._other_draw_buffers(gl), _NO_CHANNEL)}
        masked = {index: channels for index, channels in written.items() if not all(channels)}
        for index, channels in masked.items():
            gl.glColorMaski(index, *channels)
        gl.glDrawArrays(_TRIANGLES, 0, 3)
        for index in masked:
            gl.glColorMaski(index, 1, 1, 1, 1)
        gl.glDisable(FRAMEBUFFER_SRGB)

    def _other_draw_buffers(self, gl: Any) -> list[int]:
        """The draw buffers after the first of the caller's framebuffer: our program writes none of them."""
        if self.target in (0, self._framebuffer):
            return []
        return [index for index in range(1, SHEETS) if get(gl, _DRAW_BUFFER + index)]
