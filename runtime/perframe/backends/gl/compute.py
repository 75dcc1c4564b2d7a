"""GPU_COMPUTE: tensors are storage buffers, kernels are compute shaders of GL 4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.context import Device, device_for
from perframe.backends.gl.program import compose
from perframe.backends.gl.steps import Array, Binding, GLStorage, from_gpu, kind_of, on_gl, released, to_gpu
from perframe.errors import BackendError, ClosedError
from perframe.tensor import BackendType, DataType, Storage, Tensor, TensorShape

_STORAGE_BUFFER, _UNIFORM_BUFFER, _COPY_READ, _COPY_WRITE = 0x90D2, 0x8A11, 0x8F36, 0x8F37
_TEXTURE0, _TEXTURE_2D = 0x84C0, 0x0DE1
_ALL_BARRIERS = 0xFFFFFFFF
_STORAGE_BARRIER = 0x2000
_GROUP = 64
_MAX_GROUPS = 65535
_OUTPUT = 7  # the binding of a kernel's output, after its inputs


class BufferStorage:
    """A tensor in a storage buffer, four bytes an element, rounded up to whole vec4s."""

    backend_type = BackendType.GPU_COMPUTE

    def __init__(self, device: Device, shape: Sequence[int], dtype: DataType) -> None:
        self.device, self.dtype = device, dtype
        self.size = TensorShape(shape).size
        self._capacity = max(1, (self.size + 3) // 4) * 4
        with device.using():
            self.buffer: Any = device.buffer(self._capacity * 4)

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""
        return self._capacity if self.buffer is not None else 0

    @property
    def busy(self) -> bool:
        """Always False: GL orders an upload after earlier work."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether the storage has not been released."""
        return self.buffer is not None

    @property
    def glo(self) -> int:
        """The buffer's GL name. Raises ClosedError after release()."""
        if self.buffer is None:
            raise ClosedError(released(self))
        return int(self.buffer.glo)

    def upload(self, array: Array) -> None:
        """Write the values of `array`."""
        if self.glo and array.size:
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)  # an earlier dispatch may have written here
                self.buffer.write(to_gpu(array))

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

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """Return the values. Blocks until the GPU has computed them."""
        pending = self.request((self.size,) if shape is None else shape, dtype or self.dtype)
        pending.wait()
        result: Array = pending.values()
        return result

    def like(self, shape: Sequence[int], dtype: DataType) -> BufferStorage:
        """New storage in the same context."""
        return BufferStorage(self.device, shape, dtype)

    def pin(self, tensor: Tensor) -> Storage:
        """Move `tensor`'s data into a buffer of this context."""
        return tensor.pin_like(self)

    def release(self) -> None:
        """Free the buffer, on the GL thread."""
        if self.buffer is not None:
            self.device.drop(self.buffer)
        self.buffer = None

    def __del__(self) -> None:
        if getattr(self, "buffer", None) is not None:
            self.device.drop(self.buffer)


class ComputeStep:
    """One dispatch: a program, its numbers, input buffers and an output buffer."""

    def __init__(self, device: Device, binding: Binding) -> None:
        kernel = binding.kernel
        accessors, self._inputs = list[str](), list[GLStorage]()
        for index, name in enumerate(name for name in kernel.inputs if name in binding.inputs):
            operand = binding.inputs[name]
            kind = kind_of(operand.dtype)
            accessors.append(buffer_accessor(name, kind, index))
            self._inputs.append(on_gl(operand.storage))
        self._planned = self._inputs
        text = compose(kernel, "compute", accessors, binding.all_defines, binding.functions)
        self._program = device.programs.get(text, kernel.textures, kernel.name).glo
        self.textures, self._sampler = list(binding.textures.values()), device.sampler
        self.output: Any = binding.output.storage  # the converter replaces it for each run
        self.layer, self.block, self.offset = binding.layer, binding.block, 0
        size = binding.output.shape.size
        invocations = {"element": size, "texel": (size + 3) // 4, "tile": binding.tiles}[kernel.unit]
        groups = -(-invocations // _GROUP)
        self._groups = (groups, 1) if groups <= _MAX_GROUPS else (_MAX_GROUPS, -(-groups // _MAX_GROUPS))

    def replace(self, planned: Storage, new: Storage) -> None:
        """Read `new` in place of the plan's storage `planned`."""
        both = zip(self._planned, self._inputs, strict=True)
        self._inputs = [on_gl(new) if storage is planned else current for storage, current in both]

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
    """GLSL that declares a tensor's storage buffer and reads from it: one element, four from any index, or a texel."""
    vector = "vec4" if kind == "float" else "ivec4"
    data = f"{name}_data"
    return (
        f"layout(std430, binding = {binding}) readonly buffer {name}_block {{ {kind} {data}[]; }};\n"
        f"layout(std430, binding = {binding}) readonly buffer {name}_texels {{ {vector} {name}_vectors[]; }};\n"
        f"{kind} {name}(int i) {{ return {data}[i]; }}\n"
        f"{vector} {name}_four(int i) {{ return {vector}({data}[i], {data}[i + 1], {data}[i + 2], {data}[i + 3]); }}\n"
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
