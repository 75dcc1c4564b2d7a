"""Steps that draw into the caller's pixels: a tensor as a picture, or its rows as marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perframe.backends.gl.compile.program import Kernel, Shader, compose, load_kernel
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY
from perframe.backends.gl.lowering.read_buffers import ReadBuffer
from perframe.backends.gl.pixel import texture_accessors
from perframe.backends.gl.textures.targets import DrawTarget

_TEXTURE0, _UNIFORM_BUFFER, _STORAGE_BUFFER, _TRIANGLES, _BARRIERS = 0x84C0, 0x8A11, 0x90D2, 4, 0xFFFFFFFF


def accessors_of(device: Device, compute: bool, kinds: Mapping[str, str]) -> list[str]:
    """GLSL that reads tensors of these kinds ("float", "half" or "int") by name, in this order of bindings."""
    if compute:
        return [ReadBuffer(name, kind, index).accessor for index, (name, kind) in enumerate(kinds.items())]
    return texture_accessors(device, {name: "int" if kind == "int" else "float" for name, kind in kinds.items()})


def program_of(device: Device, shader: Shader, compute: bool, kernel: Kernel, inputs: Iterable[str]) -> int:
    """The GL name of a program whose first units are the kernel's textures. Waits until it is linked."""
    samplers = [*kernel.textures, *([] if compute else (f"{name}_texture" for name in inputs))]
    program = device.programs.get(shader, samplers, kernel.name)
    device.programs.settle()
    return program


def bind_inputs(gl: Any, device: Device, compute: bool, storages: Sequence[Any], first_unit: int = 0) -> None:
    """Bind the storages of a program's inputs."""
    if compute:
        gl.glMemoryBarrier(_BARRIERS)
        for index, storage in enumerate(storages):
            gl.glBindBufferBase(_STORAGE_BUFFER, index, storage.glo)
        return
    for unit, storage in enumerate(storages, first_unit):
        gl.glActiveTexture(_TEXTURE0 + unit)
        gl.glBindTexture(TEXTURE_2D_ARRAY, storage.glo)
        gl.glBindSampler(unit, device.sampler)


class DrawStep:
    """A pass that draws a tensor into pixels."""

    def __init__(
        self, device: Device, target: DrawTarget, compute: bool, kind: str, defines: Mapping[str, str]
    ) -> None:
        self.kernel = load_kernel("convert/tensor_to_texture")
        accessors = accessors_of(device, compute, {"X": kind})
        version = 430 if compute else 330
        shader = compose(self.kernel, "draw", accessors, {"O_TYPE": "float", **defines}, "", version)
        self._program = program_of(device, shader, compute, self.kernel, ["X"])
        self._device, self._target, self._compute = device, target, compute
        self.input: Any = None
        self.viewport: Sequence[int] = (0, 0, 0, 0)
        self.written: Sequence[bool] = [True] * 4

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferBase(_UNIFORM_BUFFER, 0, uniforms)
        bind_inputs(gl, self._device, self._compute, [self.input])
        masked = self._target.begin(gl, self.viewport, self.written)
        gl.glDrawArrays(_TRIANGLES, 0, 3)
        self._target.end(gl, masked)
