"""Steps between the caller's textures and tensors, which are bound once and replayed with other numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar

import moderngl

from perframe.backends.gl.compile.program import LAYERED, Kernel, Numbers
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.program.sequence import GLStep
from perframe.backends.gl.replay import CommandList
from perframe.backends.operand import Array, Operand
from perframe.safety.records import dataclass
from perframe.tensor import DataType


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
        self._params: Mapping[str, Numbers] | None = None
        self._uniforms: Any = None

    def run(self, gl: Any, params: Mapping[str, Numbers]) -> None:
        """Submit the pass with these numbers."""
        if self._uniforms is None or params != self._params:
            block, _ = self._kernel.pack({"O_size": self._size, "O_tiles": 0, **params}, "float")
            if self._uniforms is None:
                self._uniforms = self._device.buffer(len(block))
            self._uniforms.write(block)
            self._params = dict(params)
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
    """The passes of a filter: across, down and into the tensor. The tables of weights change with the region."""

    def __init__(self, across: Pass[Replay], down: Pass[Replay], into: Pass[Replay], tables: tuple[Any, Any]) -> None:
        self.across, self.down, self.into = across, down, into
        self._tables, self._weights = tables, (None, None)

    def set_weights(self, weights: tuple[Any, Any], taps: tuple[int, int]) -> None:
        """Write the tables if they have changed."""
        for old, new, table, count in zip(self._weights, weights, self._tables, taps, strict=True):
            if old is not new:
                table.upload(new.table(count))
        self._weights = weights
