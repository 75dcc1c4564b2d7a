"""GPU_PIXEL: tensors are float or int textures, kernels are pixel shaders of GL 3.3 that blit into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.context import Device, device_for
from perframe.backends.gl.steps import Array, Binding, KernelStep, from_gpu, kind_of, to_gpu
from perframe.backends.gl.storage import GLStorage
from perframe.tensor import BackendType, DataType, Storage, TensorShape

_READ_FRAMEBUFFER, _DRAW_FRAMEBUFFER, _COLOR_BIT, _NEAREST = 0x8CA8, 0x8CA9, 0x4000, 0x2600
_UNIFORM_BUFFER, _TEXTURE0, _TEXTURE_2D, _FRAMEBUFFER, _TRIANGLES = 0x8A11, 0x84C0, 0x0DE1, 0x8D40, 4


def texture_size(elements: int, shift: int) -> tuple[int, int]:
    """Width and height of a texture for `elements` elements, four a texel: one row, or rows of 2 ** shift texels."""
    texels = max(1, (elements + 3) // 4)
    width = 1 << shift
    return (texels, 1) if texels <= width else (width, -(-texels // width))


class TextureStorage(GLStorage):
    """A tensor in an RGBA32F or RGBA32I texture; texel t lies at (t mod width, t div width)."""

    backend_type = BackendType.GPU_PIXEL

    def _make(self) -> tuple[Any, ...]:
        self.kind = kind_of(self.dtype)
        texture = self.device.texture(texture_size(self.size, self.device.texture_shift), self.kind)
        return self.device.ctx.framebuffer([texture]), texture

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""
        return int(self.memory.width * self.memory.height * 4) if self.is_open else 0

    @property
    def target(self) -> int:
        """The GL name of the framebuffer that draws into it. Raises ClosedError after release()."""
        return int(self._objects[0].glo) if self.glo else 0

    def upload(self, array: Array) -> None:
        """Write the values of `array`."""
        if not self.glo or not array.size:
            return
        width, height = texture_size(array.size, self.device.texture_shift)
        values = to_gpu(array)
        padded = np.zeros(width * height * 4, values.dtype)
        padded[: values.size] = values
        with self.device.using():
            self.memory.write(padded, viewport=(0, 0, width, height))

    def request(self, shape: Sequence[int], dtype: DataType) -> StagedReadback:
        """Copy the values to a pixel buffer on the GPU, and set a fence."""
        size = TensorShape(shape).size if self.glo else 0
        width, height = texture_size(size, self.device.texture_shift)
        with self.device.using():
            if size:
                staging = self.device.take_staging(width * height * 16)
                layout = "f4" if self.kind == "float" else "i4"
                self._objects[0].read_into(staging, (0, 0, width, height), 4, dtype=layout)
            else:
                staging = self.device.take_staging(1)
            return StagedReadback(
                self.device, staging, size * 4, self.kind, lambda values: from_gpu(values, shape, dtype)
            )


class PixelStep(KernelStep):
    """One blit: it draws into the output's framebuffer."""

    def __init__(self, device: Device, binding: Binding) -> None:
        shift, reads = device.texture_shift, binding.reads
        accessors = [texture_accessor(name, kind_of(binding.inputs[name].dtype), shift) for name in reads]
        samplers = [f"{name}_texture" for name in reads]
        super().__init__(device, binding, "pixel", accessors, {"TEXTURE_SHIFT": str(shift)}, samplers)
        self._vertex_array = device.vertex_array
        self._size = texture_size(binding.output.shape.size, shift)

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and draw a triangle that covers the output's texels."""
        gl.glUseProgram(self._program)
        gl.glBindBufferRange(_UNIFORM_BUFFER, 0, uniforms, self.offset, len(self.block))
        for unit, texture in enumerate([*(storage.glo for storage in self._inputs), *self.textures]):
            gl.glActiveTexture(_TEXTURE0 + unit)
            gl.glBindTexture(_TEXTURE_2D, texture)
            gl.glBindSampler(unit, self._sampler)
        gl.glBindFramebuffer(_FRAMEBUFFER, self.output.target)
        gl.glViewport(0, 0, *self._size)
        gl.glBindVertexArray(self._vertex_array)
        gl.glDrawArrays(_TRIANGLES, 0, 3)


def texture_accessor(name: str, kind: str, shift: int) -> str:
    """GLSL that declares a tensor's texture and reads from it: one element, four from any index, or a texel."""
    sampler, vector = ("sampler2D", "vec4") if kind == "float" else ("isampler2D", "ivec4")
    width = (1 << shift) - 1
    return (
        f"uniform {sampler} {name}_texture;\n"
        f"{vector} {name}_texel(int t) {{ return texelFetch({name}_texture, ivec2(t & {width}, t >> {shift}), 0); }}\n"
        f"{kind} {name}(int i) {{ return {name}_texel(i >> 2)[i & 3]; }}\n"
        f"{vector} {name}_four(int i) {{\n"
        f"    {vector} a = {name}_texel(i >> 2);\n"
        f"    if ((i & 3) == 0) return a;\n"
        f"    {vector} b = {name}_texel((i >> 2) + 1);\n"
        f"    if ((i & 3) == 1) return {vector}(a.yzw, b.x);\n"
        f"    return (i & 3) == 2 ? {vector}(a.zw, b.xy) : {vector}(a.w, b.xyz);\n"
        f"}}"
    )


class PixelBackend(GLBackend):
    """Pixel shaders over textures."""

    backend_type = BackendType.GPU_PIXEL

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.max_elements = 4 * device.limits["texture_size"] << device.texture_shift

    def alloc(self, shape: Sequence[int], dtype: DataType) -> TextureStorage:
        """A texture with its framebuffer."""
        return TextureStorage(self.device, shape, dtype)

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value from texture to texture."""
        assert isinstance(source, TextureStorage) and isinstance(target, TextureStorage)
        width, height = texture_size(TensorShape(shape).size, self.device.texture_shift)
        names, area = (source.target, target.target), (0, 0, width, height)
        with self.device.using() as gl:
            gl.glBindFramebuffer(_READ_FRAMEBUFFER, names[0])
            gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, names[1])
            gl.glBlitFramebuffer(*area, *area, _COLOR_BIT, _NEAREST)

    def capacity(self, shape: Sequence[int], dtype: DataType) -> tuple[str, int]:
        """The kind of numbers and the number of texels: any texture of this kind that is large enough serves."""
        width, height = texture_size(TensorShape(shape).size, self.device.texture_shift)
        return kind_of(dtype), width * height

    def bind(self, binding: Binding) -> PixelStep:
        """Make a blit of a binding."""
        return PixelStep(self.device, binding)


def open_backend(ctx: Any) -> PixelBackend:
    """Open the backend in the caller's context, or in a headless one. Raises BackendError without GL 3.3."""
    device = device_for(ctx)
    with device.current():
        return PixelBackend(device)
