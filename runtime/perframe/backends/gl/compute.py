"""GPU_COMPUTE: tensors are storage buffers, kernels are compute shaders of GL 4.3."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from perframe.backends.gl.backend import GLBackend, StagedReadback
from perframe.backends.gl.compile.program import TOUCHED
from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.lowering.read_buffers import buffers_of
from perframe.backends.gl.lowering.steps import (
    GROUP_COLUMNS,
    GROUP_ROWS,
    Array,
    Binding,
    KernelStep,
    from_gpu,
    kind_held,
    kind_of,
    to_gpu,
)
from perframe.backends.gl.program.timers import CallTimers, system_clock
from perframe.backends.gl.replay import CommandList, Name
from perframe.backends.gl.storage.storage import PIECE, GLStorage, runs_of
from perframe.backends.gl.texels import SHEETS
from perframe.backends.precision import FULL, Precision
from perframe.backends.refit import SizeMath
from perframe.errors import BackendError
from perframe.graphics.functions import delete, generate
from perframe.tensor import BackendType, DataType, Storage, TensorShape
from perframe.tensor.memory import Held

if TYPE_CHECKING:
    from perframe.graphics import GLContext

_STORAGE_BUFFER, _COPY_READ, _COPY_WRITE = 0x90D2, 0x8F36, 0x8F37
_TEXTURE0, _TEXTURE_BUFFER = 0x84C0, 0x8C2A
_FORMATS = {"float": 0x8814, "half": 0x881A, "int": 0x8D82}  # RGBA32F, RGBA16F and RGBA32I
_VIEWS = {"float": "view_of_floats", "half": "view_of_halves", "int": "view_of_ints"}
_ALL_BARRIERS = 0xFFFFFFFF
_PINNED, _STATIC_DRAW = 0x9160, 0x88E4
_PAGE, LEAST_LENT = 4096, 1 << 16  # bytes
_GROUP = 64
_MAX_GROUPS = 65535
_OUTPUT = 7  # the binding of a kernel's output, after its inputs


class BufferStorage(GLStorage):
    """A tensor in a storage buffer, rounded up to whole vec4s."""

    backend_type = BackendType.GPU_COMPUTE

    def _make(self) -> tuple[Any, ...]:
        self._capacity = _whole_texels(self.size)
        return (self.device.buffer(self._capacity * self.element_bytes),)

    def bytes_for(self, size: int) -> int:
        """The bytes of a buffer for `size` elements."""
        return self.device.buffer_bytes(_whole_texels(size) * self.element_bytes)

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""
        return self._capacity if self.is_open else 0

    @property
    def most_elements(self) -> int:
        """The elements of the largest storage block."""
        return int(self.device.limits["storage_block"]) // 4

    @property
    def view_of_floats(self) -> int:
        """The GL name of a texture that reads the buffer, four floats a texel. The caller has guarded the state."""
        return self._view("float")

    @property
    def view_of_halves(self) -> int:
        """The GL name of a texture that reads four halves a texel, as floats."""
        return self._view("half")

    @property
    def view_of_ints(self) -> int:
        """The GL name of a texture that reads four ints a texel: values of other dtypes may share the storage."""
        return self._view("int")

    def _view(self, kind: str) -> int:
        found = [view for view in self._objects[:-1] if view.kind == kind]
        if not found:
            found = [_View(self.device.gl, self.glo, kind)]
            self._objects = (*found, *self._objects)
        return int(found[0].glo)

    def upload(self, array: Array) -> None:
        """Write the values of `array`."""
        self.changes += 1
        if self.glo and array.size:
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)  # an earlier dispatch may have written here
                self.memory.write(to_gpu(array, self.is_half))

    def pieces(self, arranged: Array) -> Iterator[None]:
        """Write arranged values, a piece at each step."""
        self.changes += 1
        for begin in range(0, arranged.size, step := PIECE // arranged.itemsize):
            with self.device.using():
                self.memory.write(arranged[begin : begin + step], offset=begin * arranged.itemsize)
            yield

    def upload_part(self, array: Array, at: Sequence[int], shape: Sequence[int]) -> None:
        """Write a block of a tensor, run by run."""
        self.changes += 1
        begins, run = runs_of(array.shape, at, shape)
        if self.glo and array.size:
            rows = to_gpu(array, self.is_half).reshape(-1, run)
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)
                for begin, row in zip(begins, rows, strict=True):
                    self.memory.write(row, offset=begin * self.element_bytes)

    def request(self, shape: Sequence[int], dtype: DataType) -> StagedReadback:
        """Copy the values to a staging buffer on the GPU, and set a fence."""
        name, size = self.glo, TensorShape(shape).size * self.element_bytes
        kind = "half" if self.is_half else kind_of(dtype)
        with self.device.using() as gl:
            staging = self.device.take_staging(size)
            if size:
                gl.glMemoryBarrier(_ALL_BARRIERS)
                gl.glBindBuffer(_COPY_READ, name)
                gl.glBindBuffer(_COPY_WRITE, staging.glo)
                gl.glCopyBufferSubData(_COPY_READ, _COPY_WRITE, 0, 0, size)

            def convert(values: Array) -> Array:
                return from_gpu(values, shape, dtype)

            return StagedReadback(self.device, staging, size, kind, self.snapshots.room, convert)


def _whole_texels(elements: int) -> int:
    return max(1, (elements + 3) // 4) * 4


class LentBuffer(BufferStorage):
    """A constant that lies in the memory of an array. The array never changes. A new buffer would first be filled with
    zeros by llvmpipe.
    """

    def __init__(self, device: Device, shape: Sequence[int], dtype: DataType, is_half: bool, values: Array) -> None:
        self._values = values
        super().__init__(device, shape, dtype, is_half)

    def _make(self) -> tuple[Any, ...]:
        self._capacity, values, gl = _whole_texels(self.size), self._values, self.device.gl
        held = Held(values.nbytes, "a GL buffer")
        held.kept = values
        buffer = self.device.buffer(1)
        buffer.extra = held
        gl.glBindBuffer(_PINNED, buffer.glo)
        gl.glBufferData(_PINNED, self._capacity * self.element_bytes, values.ctypes.data, _STATIC_DRAW)
        gl.glBindBuffer(_PINNED, 0)
        return (buffer,)

    def like(self, shape: Sequence[int], dtype: DataType) -> Any:
        """New storage in the same context, in its own memory."""
        return BufferStorage(self.device, shape, dtype)

    def release(self) -> None:
        """Free the buffer, and then the array."""
        super().release()
        self._values = self._values[:0]


class _View:
    """A texture over a buffer."""

    def __init__(self, gl: Any, buffer: int, kind: str) -> None:
        self._gl, self.kind, self.glo = gl, kind, generate(gl, "Textures")
        gl.glActiveTexture(_TEXTURE0)  # a guarded unit
        gl.glBindTexture(_TEXTURE_BUFFER, self.glo)
        gl.glTexBuffer(_TEXTURE_BUFFER, _FORMATS[kind], buffer)

    def release(self) -> None:
        """Delete the texture; the buffer stays."""
        delete(self._gl, "Textures", self.glo)


class ComputeStep(KernelStep):
    """One dispatch."""

    def __init__(self, device: Device, binding: Binding) -> None:
        kernel, kinds = binding.kernel, {name: kind_held(binding.inputs[name]) for name in binding.reads}
        largest = 4 * device.viewed_texels
        fits = {name for name in kinds if binding.inputs[name].shape.size <= largest}
        buffers = buffers_of(kernel, kinds, binding.all_defines, fits)
        self._gl = device.gl
        rows = int(binding.defines.get(GROUP_ROWS, 1))
        self._columns, self._rows = int(binding.defines.get(GROUP_COLUMNS, _GROUP // rows)), rows
        sizes = {"TEXELS": SHEETS, GROUP_COLUMNS: self._columns, GROUP_ROWS: rows}
        accessors = [buffer.accessor for buffer in buffers]
        defines = {name: str(size) for name, size in sizes.items()}
        super().__init__(device, binding, "compute", accessors, defines)
        self._buffers, size = buffers, binding.output.shape.size
        unit = kernel.unit(binding.all_defines)
        if unit == "grid":
            invocations, *rest = binding.grid
            rest[0] = -(-rest[0] // rows)
        else:
            texels = (size + 3) // 4
            elements = -(-size // 2) if binding.makes_halves else size  # two share a word
            begin = binding.left_alone
            counts = {
                "element": binding.tiles if TOUCHED in binding.defines else elements,
                "texel": texels - begin,
                "strip": -(-texels // SHEETS),
                "tile": binding.tiles,
            }
            invocations, *rest = counts[unit], 1, 1
        self._extent = -(-invocations // self._columns), *rest  # in work groups
        self._axis, self._begin = int(rest[0] > self._extent[0]), binding.left_alone
        parts = binding.parts(self._extent[0], _MAX_GROUPS)
        self._parts = [(self._begin + first * self._columns, 0, count, rest[0]) for first, count in parts]

    @property
    def groups(self) -> int:
        """The number of work groups."""
        return math.prod(self._extent)

    @property
    def invocations(self) -> int:
        """The number of invocations of a work group."""
        return self._columns * self._rows

    @property
    def rows(self) -> int:
        """The number of parts that it may be launched in: the work groups along its longer axis."""
        return min(self._extent[self._axis], _MAX_GROUPS)

    @property
    def _first(self) -> int:
        """The location of the numbers of the first invocation and work group."""
        return int(self._gl.glGetUniformLocation(self._program, b"O_first"))

    def with_numbers(self, function: Callable[[Any], Any]) -> Self:
        """Return the step with other numbers in the place of those that may depend on sizes."""
        made = super().with_numbers(function)
        made._extent = tuple(map(function, self._extent))
        made._parts = [tuple(map(function, part)) for part in self._parts]
        made._begin = function(self._begin)
        return made

    def _some(self, first: int, count: int) -> list[tuple[int, int, int, int]]:
        """Return the launch of some rows, as the first invocation and row, and the work groups across and down."""
        if self._axis:
            return [(self._begin, first * self._rows, self._extent[0], count)]
        return [(self._begin + first * self._columns, 0, count, self._extent[1])]

    def record(self, commands: CommandList, uniforms: int, rows: tuple[int, int] | None = None) -> None:
        """Record a dispatch, or several for parts of it, or that of some rows: the first, and how many."""
        self._bind(commands, uniforms)
        for buffer, storage in zip(self._buffers, self._inputs, strict=True):
            if buffer.blocks:
                commands.set(2, "glBindBufferBase", _STORAGE_BUFFER, buffer.binding, Name(storage, "glo"))
            if buffer.unit is not None:
                commands.set_texture(buffer.unit, _TEXTURE_BUFFER, Name(storage, _VIEWS[buffer.kind]))
        for unit, texture in enumerate(self._textures):
            commands.set_texture(unit, self._texture_target, texture, self._sampler)
        commands.set(2, "glBindBufferBase", _STORAGE_BUFFER, _OUTPUT, Name(self._output, "glo"))
        commands.order(self._inputs, self._output)
        parts = self._parts if rows is None else self._some(*rows)
        where = self._first if len(parts) > 1 or rows is not None or self._begin else None
        for x, y, across, down in parts:
            if where is not None:
                commands.call("glUniform2i", where, x, y)
            commands.call("glDispatchCompute", across, down, self._extent[2])
        if where is not None:
            commands.call("glUniform2i", where, 0, 0)  # a program may be that of other steps too


class ComputeBackend(GLBackend):
    """Compute shaders over storage buffers."""

    backend_type = BackendType.GPU_COMPUTE
    stores_anywhere = True

    def __init__(self, device: Device, precision: Precision = FULL) -> None:
        super().__init__(device, precision)
        self.max_elements = device.limits["storage_block"] // 4
        if device.computes_in_calls and system_clock():
            self.timers = CallTimers

    def alloc(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> BufferStorage:
        """A storage buffer."""
        return BufferStorage(self.device, shape, dtype, is_half)

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy a value from buffer to buffer."""
        assert isinstance(source, BufferStorage) and isinstance(target, BufferStorage)
        assert source.is_half == target.is_half
        target.changes += 1
        names, size = (source.glo, target.glo), TensorShape(shape).size * source.element_bytes
        if size:
            with self.device.using() as gl:
                gl.glMemoryBarrier(_ALL_BARRIERS)
                gl.glBindBuffer(_COPY_READ, names[0])
                gl.glBindBuffer(_COPY_WRITE, names[1])
                gl.glCopyBufferSubData(_COPY_READ, _COPY_WRITE, 0, 0, size)

    def capacity(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> tuple[str, int]:
        """The class and the number of elements: any buffer of the class that is large enough serves."""
        return "buffer of halves" if is_half else "buffer", _whole_texels(TensorShape(shape).size)

    def arranged(self, value: Array, is_half: bool) -> Array:
        """The values in their order, as buffers hold them; where buffers may lie in arrays, in an array for that."""
        values = to_gpu(value, is_half)
        if not self.device.lends or values.nbytes < LEAST_LENT:
            return values
        whole = np.empty(-(-values.nbytes // _PAGE) * _PAGE + _PAGE, np.uint8)
        begin = -whole.ctypes.data % _PAGE
        lent: Array = whole[begin : begin + values.nbytes].view(values.dtype)
        np.copyto(lent, values)
        return lent

    def lent(self, arranged: Array, shape: Sequence[int], dtype: DataType, is_half: bool) -> GLStorage | None:
        """Return storage that lies in an arranged array, without a copy."""
        if not self.device.lends or arranged.nbytes < LEAST_LENT:
            return None
        return LentBuffer(self.device, shape, dtype, is_half, arranged)

    def bind(self, binding: Binding) -> ComputeStep:
        """Make a dispatch of a binding."""
        return ComputeStep(self.device, binding)


def open_backend(
    ctx: GLContext | None, precision: Precision = FULL, size_math: SizeMath | None = None
) -> ComputeBackend:
    """Open the backend in the caller's context, or in a headless one. Raises BackendError without GL 4.3."""
    device = device_for(ctx)
    if not device.has_compute:
        raise BackendError(
            f"gpu_compute needs OpenGL 4.3, and this context has {device.ctx.version_code / 100:.1f}: use gpu_pixel"
        )
    with device.current():
        made = ComputeBackend(device, precision)
    made.size_math = size_math
    return made
