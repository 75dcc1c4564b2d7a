"""GPU_COMPUTE: tensors are storage buffers, kernels are compute shaders of GL 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.context import Device, device_for
from perframe.backends.gl.steps import Array, Binding, KernelStep, from_gpu, kind_of, to_gpu
from perframe.backends.gl.storage import GLStorage
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError
from perframe.tensor import BackendType, DataType, Storage, TensorShape

_STORAGE_BUFFER, _UNIFORM_BUFFER, _COPY_READ, _COPY_WRITE = 0x90D2, 0x8A11, 0x8F36, 0x8F37
_TEXTURE0, _TEXTURE_2D = 0x84C0, 0x0DE1
_ALL_BARRIERS = 0xFFFFFFFF
_STORAGE_BARRIER = 0x2000
_GROUP = 64
_MAX_GROUPS = 65535
_OUTPUT = 7  # the binding of a kernel's output, after its inputs


class BufferStorage(GLStorage):
    """A tensor in a storage buffer, four bytes an element, rounded up to whole vec4s."""

    backend_type = BackendType.GPU_COMPUTE

    def _make(self) -> tuple[Any, ...]:
        self._capacity = max(1, (self.size + 3) // 4) * 4
        return (self.device.buffer(self._capacity * 4),)

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""
        return self._capacity if self.is_open else 0

    def upload(self, array: Array) -> None:
        """Write the values of `array`."""
        if self.glo and array.size:
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)  # an earlier dispatch may have written here
                self.memory.write(to_gpu(array))

    def request(self, shape: Sequence[int], dtype: DataType) -> StagedReadback:
        """Copy the values to a staging buffer on the GPU, and set a fence."""
        name, size = self.glo, TensorShape(shape).size * 4
        with self.device.using() as gl:
            staging = self.device.take_staging(size)
            if size:
                gl.glMemoryBarrier(_ALL_BARRIERS)
                gl.glBindBuffer(_COPY_READ, name)
                gl.glBindBuffer(_COPY_WRITE, staging.glo)
                gl.glCopyBufferSubData(_COPY_READ, _COPY_WRITE, 0, 0, size)
            return StagedReadback(
                self.device, staging, size, kind_of(dtype), lambda values: from_gpu(values, shape, dtype)
            )


class ComputeStep(KernelStep):
    """One dispatch."""

    def __init__(self, device: Device, binding: Binding) -> None:
        kinds = {name: kind_of(binding.inputs[name].dtype) for name in binding.reads}
        accessors = [buffer_accessor(name, kinds[name], index) for index, name in enumerate(kinds)]
        super().__init__(device, binding, "compute", accessors, {"TEXELS": str(SHEETS)})
        size = binding.output.shape.size
        texels = (size + 3) // 4
        units = {"element": size, "texel": texels, "strip": -(-texels // SHEETS), "tile": binding.tiles}
        invocations = units[binding.kernel.unit]
        groups = -(-invocations // _GROUP)
        self._groups = (groups, 1) if groups <= _MAX_GROUPS else (_MAX_GROUPS, -(-groups // _MAX_GROUPS))

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and dispatch. The barrier makes the result visible to later steps."""
        gl.glUseProgram(self._program)
        gl.glBindBufferRange(_UNIFORM_BUFFER, 0, uniforms, self.offset, len(self.block))
        for index, storage in enumerate(self._inputs):
            gl.glBindBufferBase(_STORAGE_BUFFER, index, storage.glo)
        for unit, texture in enumerate(self.textures):
            gl.glActiveTexture(_TEXTURE0 + unit)
            gl.glBindTexture(_TEXTURE_2D, texture)
            gl.glBindSampler(unit, self._sampler)
        gl.glBindBufferBase(_STORAGE_BUFFER, _OUTPUT, self.output.glo)
        gl.glDispatchCompute(*self._groups, 1)
        gl.glMemoryBarrier(_STORAGE_BARRIER)


def buffer_accessor(name: str, kind: str, binding: int) -> str:
    """GLSL that declares a tensor's storage buffer and reads from it: one element, four from any index, those
    at four indices, or a texel.
    """
    vector = "vec4" if kind == "float" else "ivec4"
    data = f"{name}_data"
    return (
        f"layout(std430, binding = {binding}) readonly buffer {name}_block {{ {kind} {data}[]; }};\n"
        f"layout(std430, binding = {binding}) readonly buffer {name}_texels {{ {vector} {name}_vectors[]; }};\n"
        f"{kind} {name}(int i) {{ return {data}[i]; }}\n"
        f"{vector} {name}_four(int i) {{ return {vector}({data}[i], {data}[i + 1], {data}[i + 2], {data}[i + 3]); }}\n"
        f"{vector} {name}_at(ivec4 at) {{\n"
        f"    return {vector}({data}[at.x], {data}[at.y], {data}[at.z], {data}[at.w]);\n"
        f"}}\n"
        f"{vector} {name}_texel(int t) {{ return {name}_vectors[t]; }}"
    )


class ComputeBackend(GLBackend):
    """Compute shaders over storage buffers."""

    backend_type = BackendType.GPU_COMPUTE
    stores_anywhere = True

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.max_elements = device.limits["storage_block"] // 4

    def alloc(self, shape: Sequence[int], dtype: DataType) -> BufferStorage:
        """A storage buffer."""
        return BufferStorage(self.device, shape, dtype)

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value from buffer to buffer."""
        assert isinstance(source, BufferStorage) and isinstance(target, BufferStorage)
        names, size = (source.glo, target.glo), TensorShape(shape).size * 4
        if size:
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)
                gl.glBindBuffer(_COPY_READ, names[0])
                gl.glBindBuffer(_COPY_WRITE, names[1])
                gl.glCopyBufferSubData(_COPY_READ, _COPY_WRITE, 0, 0, size)

    def capacity(self, shape: Sequence[int], dtype: DataType) -> tuple[str, int]:
        """The class "buffer" and the number of elements: any buffer that is large enough serves."""
        return "buffer", max(1, (TensorShape(shape).size + 3) // 4) * 4

    def bind(self, binding: Binding) -> ComputeStep:
        """Make a dispatch of a binding."""
        return ComputeStep(self.device, binding)


def open_backend(ctx: Any) -> ComputeBackend:
    """Open the backend in the caller's context, or in a headless one. Raises BackendError without GL 4.3."""
    device = device_for(ctx)
    if not device.has_compute:
        raise BackendError(
            f"gpu_compute needs OpenGL 4.3, and this context has {device.ctx.version_code / 100:.1f}: use gpu_pixel"
        )
    with device.current():
        return ComputeBackend(device)
