"""Frames in color formats of video: their planes are uploaded unchanged, and drawn into textures as RGB."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import moderngl
import numpy as np

from perframe.backends.gl.compile.program import compose, load_kernel
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.textures.draw_step import program_of
from perframe.backends.gl.textures.steps import Pass, PixelBuffers
from perframe.backends.gl.textures.targets import DrawTarget
from perframe.backends.operand import Array
from perframe.graphics.yuv import YuvFrame

_TEXTURE0, _TEXTURE_2D, _UNIFORM_BUFFER, _TRIANGLES = 0x84C0, 0x0DE1, 0x8A11, 4
_DEFINES: Mapping[str, Mapping[str, str]] = {"planar": {}, "semiplanar": {"SEMIPLANAR": "1"}, "packed": {"PACKED": "1"}}
_DTYPES = {"uint8": "f1", "uint16": "nu2"}  # moderngl's names for samples that GL reads as 0 to 1


class PlaneTexture:
    """A plane of frames, in a texture. Its padding is uploaded, too, so that its rows need no copies."""

    def __init__(self, device: Device, plane: Array) -> None:
        rows, columns, samples = plane.shape
        self._device, self._buffers = device, PixelBuffers(device, plane.nbytes)
        self._texture = device.ctx.texture((columns, rows), samples, dtype=_DTYPES[plane.dtype.name])

    @property
    def glo(self) -> int:
        """The texture's GL name."""
        return int(self._texture.glo)

    def upload(self, plane: Array) -> None:
        """Upload the plane of the next frame."""
        self._buffers.upload(plane, self._texture)

    def __del__(self) -> None:
        if hasattr(self, "_texture"):  # the driver may have refused it
            self._device.drop(self._texture)


class FrameStep:
    """A pass that draws the planes of a frame into pixels."""

    def __init__(self, device: Device, target: DrawTarget, frame: YuvFrame) -> None:
        self.kernel = load_kernel("convert/yuv_to_texture")
        shader = compose(self.kernel, "draw", [], {"O_TYPE": "float", **_DEFINES[frame.form.layout]}, "", 330)
        self._program = program_of(device, shader, compute=False, kernel=self.kernel, inputs=[])
        self._device, self._target = device, target
        self.planes = [PlaneTexture(device, plane) for plane in frame.planes]
        self.viewport: Sequence[int] = (0, 0, 0, 0)

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw."""
        gl.glUseProgram(self._program)
        gl.glBindBufferBase(_UNIFORM_BUFFER, 0, uniforms)
        for unit, plane in enumerate(self.planes):
            gl.glActiveTexture(_TEXTURE0 + unit)
            gl.glBindTexture(_TEXTURE_2D, plane.glo)
            gl.glBindSampler(unit, self._device.sampler)
        masked = self._target.begin(gl, self.viewport)
        gl.glDrawArrays(_TRIANGLES, 0, 3)
        self._target.end(gl, masked)


class FramePass:
    """The textures and the pass for frames of one format and size."""

    def __init__(self, device: Device, target: DrawTarget, frame: YuvFrame) -> None:
        step = FrameStep(device, target, frame)
        self._target, self._pass = target, Pass(device, step.kernel, step, 0)

    @staticmethod
    def key(frame: YuvFrame) -> Hashable:
        """What frames have in common that one pass can draw."""
        return ("frame", frame.form.layout, *((plane.shape, plane.dtype.name) for plane in frame.planes))

    def draw(self, gl: Any, frame: YuvFrame, texture: moderngl.Texture) -> None:
        """Draw a frame into a texture of its upright size, its top in the first row. Raises InputError."""
        step = self._pass.step
        for plane, samples in zip(step.planes, frame.planes, strict=True):
            plane.upload(np.ascontiguousarray(samples))  # rows may run upward
        self._target.choose(gl, texture, encodes=False)
        step.viewport = (0, 0, *frame.size)
        self._pass.run(gl, frame.numbers())


class OwnTexture:
    """A texture of bytes, RGBA, that is freed with this object."""

    def __init__(self, device: Device, size: tuple[int, int]) -> None:
        self._device, self.texture = device, device.ctx.texture(size, 4)

    def __del__(self) -> None:
        self._device.drop(self.texture)
