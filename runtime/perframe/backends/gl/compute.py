"""GPU_COMPUTE: tensors are storage buffers, kernels are compute shaders of GL 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.context import Device, device_for
from perframe.backends.gl.steps import GROUP_ROWS, Array, Binding, KernelStep, from_gpu, kind_of, to_gpu
from perframe.backends.gl.storage import GLStorage
from perframe.backends.gl.texels import SHEETS
from perframe.errors import BackendError
from perframe.graphics.functions import delete, generate
from perframe.tensor import BackendType, DataType, Storage, TensorShape

_STORAGE_BUFFER, _UNIFORM_BUFFER, _COPY_READ, _COPY_WRITE = 0x90D2, 0x8A11, 0x8F36, 0x8F37
_TEXTURE0, _TEXTURE_2D, _TEXTURE_BUFFER = 0x84C0, 0x0DE1, 0x8C2A
_FORMATS = {"float": 0x8814, "int": 0x8D82}  # RGBA32F and RGBA32I
_ALL_BARRIERS = 0xFFFFFFFF
_STORAGE_BARRIER, _FETCH_BARRIER = 0x2000, 0x8
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

    @property
    def view(self) -> int:
        """The GL name of a texture that reads the buffer, four elements a texel. The caller has guarded the state."""
        if len(self._objects) == 1:
            self._objects = (_View(self.device.gl, self.glo, kind_of(self.dtype)), *self._objects)
        return int(self._objects[0].glo)

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


class _View:
    """A texture over a buffer."""

    def __init__(self, gl: Any, buffer: int, kind: str) -> None:
        self._gl, self.glo = gl, generate(gl, "Textures")
        gl.glBindTexture(_TEXTURE_BUFFER, self.glo)
        gl.glTexBuffer(_TEXTURE_BUFFER, _FORMATS[kind], buffer)

    def release(self) -> None:
        """Delete the texture; the buffer stays."""
        delete(self._gl, "Textures", self.glo)


class ComputeStep(KernelStep):
    """One dispatch."""

    def __init__(self, device: Device, binding: Binding) -> None:
        kernel, kinds = binding.kernel, {name: kind_of(binding.inputs[name].dtype) for name in binding.reads}
        largest = 4 * device.viewed_texels
        fits = [kernel.reads_texels(name) and binding.inputs[name].shape.size <= largest for name in kinds]
        viewed = [index for index, fit in enumerate(fits) if fit]
        units = {index: unit for unit, index in enumerate(viewed, len(kernel.textures))}
        accessors = [buffer_accessor(name, kinds[name], at, units.get(at)) for at, name in enumerate(kinds)]
        rows = int(binding.defines.get(GROUP_ROWS, 1))
        sizes = {"TEXELS": SHEETS, "GROUP_COLUMNS": _GROUP // rows, GROUP_ROWS: rows}
        super().__init__(device, binding, "compute", accessors, {name: str(size) for name, size in sizes.items()})
        self._units, size = units, binding.output.shape.size
        if kernel.unit == "grid":
            x, y, z = binding.grid
            self.groups = (-(-x // (_GROUP // rows)), -(-y // rows), z)
        else:
            texels = (size + 3) // 4
            counts = {"element": size, "texel": texels, "strip": -(-texels // SHEETS), "tile": binding.tiles}
            groups = -(-counts[kernel.unit] // _GROUP)
            self.groups = (min(groups, _MAX_GROUPS), -(-groups // _MAX_GROUPS), 1)

    def run(self, gl: Any, uniforms: int) -> None:
        """Bind and dispatch. The barrier makes the result visible to later steps."""
        gl.glUseProgram(self._program)
        gl.glBindBufferRange(_UNIFORM_BUFFER, 0, uniforms, self.offset, len(self.block))
        for index, storage in enumerate(self._inputs):
            gl.glBindBufferBase(_STORAGE_BUFFER, index, storage.glo)
        for index, unit in self._units.items():
            gl.glActiveTexture(_TEXTURE0 + unit)
            viewed: Any = self._inputs[index]
            gl.glBindTexture(_TEXTURE_BUFFER, viewed.view)
        for unit, texture in enumerate(self.textures):
            gl.glActiveTexture(_TEXTURE0 + unit)
            gl.glBindTexture(_TEXTURE_2D, texture)
            gl.glBindSampler(unit, self._sampler)
        gl.glBindBufferBase(_STORAGE_BUFFER, _OUTPUT, self.output.glo)
        gl.glDispatchCompute(*self.groups)
        gl.glMemoryBarrier(_STORAGE_BARRIER | _FETCH_BARRIER)


def buffer_accessor(name: str, kind: str, binding: int, unit: int | None = None) -> str:
    """GLSL that declares a tensor's storage buffer and reads from it: one element, four from any index, those at
    four indices, or a texel. Texels come from a view of the buffer if `unit` is the texture unit of one.
    """
    vector, prefix = ("vec4", "") if kind == "float" else ("ivec4", "i")
    data, vectors = f"{name}_data", f"{name}_vectors"
    block = f"layout(std430, binding = {binding}) readonly buffer"
    if unit is not None:
        texels, texel = (
            f"layout(binding = {unit}) uniform {prefix}samplerBuffer {name}_view;",
            f"texelFetch({name}_view, t)",
        )
    else:
        texels, texel = f"{block} {name}_texels {{ {vector} {vectors}[]; }};", f"{vectors}[t]"
    return (
        f"{block} {name}_block {{ {kind} {data}[]; }};\n"
        f"{texels}\n"
        f"{kind} {name}(int i) {{ return {data}[i]; }}\n"
        f"{vector} {name}_four(int i) {{ return {vector}({data}[i], {data}[i + 1], {data}[i + 2], {data}[i + 3]); }}\n"
        f"{vector} {name}_at(ivec4 at) {{\n"
        f"    return {vector}({data}[at.x], {data}[at.y], {data}[at.z], {data}[at.w]);\n"
        f"}}\n"
        f"{vector} {name}_texel(int t) {{ return {texel}; }}"
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
