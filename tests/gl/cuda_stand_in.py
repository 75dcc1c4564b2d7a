"""A stand-in for `cuda.bindings.runtime`: no NVIDIA GPU is here.

It has the package's signatures, records the calls, and keeps CUDA's rules. Its device memory is host memory; what it
maps it reads from GL and writes back, so that values count.
"""

from __future__ import annotations

import ctypes
import enum
from types import SimpleNamespace
from typing import Any

import numpy as np

import perframe as pf
from perframe.graphics.headless_context import entry_point

U, N, P, L = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t
_BUFFER, _SIZE, _ARRAY, _BEGUN = 0x8F36, 0x8764, 0x8C1A, 0xCD  # the last fills memory that has no values
_FORMATS = {0x8814: (0x1908, 0x1406, 16), 0x881A: (0x1908, 0x140B, 8), 0x8D82: (0x8D99, 0x1404, 16)}
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "glBindBuffer": (None, U, U),
    "glBindTexture": (None, U, U),
    "glBufferSubData": (None, U, L, L, P),
    "glGetBufferParameteriv": (None, U, U, P),
    "glGetBufferSubData": (None, U, L, L, P),
    "glGetTexImage": (None, U, N, U, U, P),
    "glGetTexLevelParameteriv": (None, U, N, U, P),
    "glIsBuffer": (ctypes.c_ubyte, U),
    "glIsTexture": (ctypes.c_ubyte, U),
    "glTexSubImage3D": (None, U, N, N, N, N, N, N, N, U, U, P),
}


class Status(enum.IntEnum):
    """cudaError_t."""

    cudaSuccess = 0
    cudaErrorInvalidResourceHandle = 400
    cudaErrorOperatingSystem = 304


class _Enumeration(enum.IntEnum):
    cudaMemcpyDeviceToDevice = 3
    cudaGLDeviceListAll = 1


class Plane:
    """A cudaArray_t: one layer of a mapped texture."""

    def __init__(self, texels: Any) -> None:
        self.rows = texels  # height x bytes


class Resource:
    """A cudaGraphicsResource_t."""

    def __init__(self, name: int, is_texture: bool) -> None:
        self.name, self.is_texture, self.flags = name, is_texture, 0
        self.memory: Any = None  # while it is mapped
        self.format: tuple[int, int, int] = (0, 0, 0)


class Runtime:
    """The functions of the package that perframe calls."""

    cudaError_t = Status
    cudaMemcpyKind = cudaGLDeviceList = _Enumeration

    def __init__(self, ctx: Any) -> None:
        load = {name: ctypes.CFUNCTYPE(*kinds)(entry_point(ctx, name)) for name, kinds in _SIGNATURES.items()}
        self.gl = SimpleNamespace(**load)
        self.calls: list[tuple[Any, ...]] = []
        self.device, self.devices_of_context = 0, [0]
        self.resources: list[Resource] = []
        self.allocated: dict[int, Any] = {}
        self.events: list[object] = []
        self.fails: dict[str, Status | Exception] = {}

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("cuda") or not callable(found) or isinstance(found, type):
            return found

        def called(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            failure = self.fails.get(name)
            if isinstance(failure, Exception):
                raise failure
            return (failure,) if failure is not None else found(*arguments)

        return called

    def names(self) -> list[str]:
        """The names of the calls so far, which are then forgotten."""
        names = [name for name, *_ in self.calls]
        self.calls.clear()
        return names

    def cudaGetDevice(self) -> Any:
        return Status.cudaSuccess, self.device

    def cudaGLGetDevices(self, count: int, devices: Any) -> Any:
        assert devices is _Enumeration.cudaGLDeviceListAll
        found = self.devices_of_context
        return Status.cudaSuccess, len(found), [*found, *[0] * (count - len(found))]

    def cudaGraphicsGLRegisterBuffer(self, buffer: int, flags: int) -> Any:
        assert self.gl.glIsBuffer(buffer) and flags == 0
        self.resources.append(Resource(buffer, False))
        return Status.cudaSuccess, self.resources[-1]

    def cudaGraphicsGLRegisterImage(self, image: int, target: int, flags: int) -> Any:
        assert self.gl.glIsTexture(image) and target == _ARRAY and flags == 0
        self.resources.append(Resource(image, True))
        return Status.cudaSuccess, self.resources[-1]

    def cudaGraphicsUnregisterResource(self, resource: Resource) -> Any:
        assert resource in self.resources and resource.memory is None
        exists = self.gl.glIsTexture if resource.is_texture else self.gl.glIsBuffer
        assert exists(resource.name), "the GL object was deleted first"
        self.resources.remove(resource)
        return (Status.cudaSuccess,)

    def cudaGraphicsResourceSetMapFlags(self, resource: Resource, flags: int) -> Any:
        assert resource in self.resources and resource.memory is None and flags in (0, 1, 2)
        resource.flags = flags
        return (Status.cudaSuccess,)

    def cudaGraphicsMapResources(self, count: int, resource: Resource, stream: int) -> Any:
        assert count == 1 and isinstance(stream, int)
        if resource not in self.resources or resource.memory is not None:
            return (Status.cudaErrorInvalidResourceHandle,)
        size = ctypes.c_int()
        if not resource.is_texture:
            self.gl.glBindBuffer(_BUFFER, resource.name)
            self.gl.glGetBufferParameteriv(_BUFFER, _SIZE, ctypes.byref(size))
            resource.memory = np.full(size.value, _BEGUN, np.uint8)
            if resource.flags != 2:
                self.gl.glGetBufferSubData(_BUFFER, 0, size.value, resource.memory.ctypes.data)
            return (Status.cudaSuccess,)
        sizes = []
        self.gl.glBindTexture(_ARRAY, resource.name)
        for name in (0x8071, 0x1001, 0x1000, 0x1003):  # depth, height, width, format
            self.gl.glGetTexLevelParameteriv(_ARRAY, 0, name, ctypes.byref(size))
            sizes.append(size.value)
        resource.format = layout, kind, texel = _FORMATS[sizes[3]]
        resource.memory = np.full((*sizes[:2], sizes[2] * texel), _BEGUN, np.uint8)
        if resource.flags != 2:
            self.gl.glGetTexImage(_ARRAY, 0, layout, kind, resource.memory.ctypes.data)
        return (Status.cudaSuccess,)

    def cudaGraphicsUnmapResources(self, count: int, resource: Resource, stream: int) -> Any:
        assert count == 1 and resource.memory is not None and isinstance(stream, int)
        memory, resource.memory = resource.memory, None
        if resource.flags == 1:
            return (Status.cudaSuccess,)
        if not resource.is_texture:
            self.gl.glBindBuffer(_BUFFER, resource.name)
            self.gl.glBufferSubData(_BUFFER, 0, memory.size, memory.ctypes.data)
        else:
            self.gl.glBindTexture(_ARRAY, resource.name)
            (depth, height, row), (layout, kind, texel) = memory.shape, resource.format
            size = row // texel, height, depth
            self.gl.glTexSubImage3D(_ARRAY, 0, 0, 0, 0, *size, layout, kind, memory.ctypes.data)
        return (Status.cudaSuccess,)

    def cudaGraphicsResourceGetMappedPointer(self, resource: Resource) -> Any:
        assert not resource.is_texture and resource.memory is not None
        return Status.cudaSuccess, resource.memory.ctypes.data, resource.memory.size

    def cudaGraphicsSubResourceGetMappedArray(self, resource: Resource, index: int, level: int) -> Any:
        assert resource.is_texture and resource.memory is not None and level == 0
        return Status.cudaSuccess, Plane(resource.memory[index])

    def cudaMalloc(self, size: int) -> Any:
        memory = np.full(size, _BEGUN, np.uint8)
        self.allocated[memory.ctypes.data] = memory
        return Status.cudaSuccess, memory.ctypes.data

    def cudaFree(self, address: int) -> Any:
        del self.allocated[address]
        return (Status.cudaSuccess,)

    def cudaMemset(self, address: int, value: int, size: int) -> Any:
        self._check(address, size)
        ctypes.memset(address, value, size)
        return (Status.cudaSuccess,)

    def cudaMemcpyAsync(self, target: int, source: int, size: int, kind: Any, stream: int) -> Any:
        self._check(target, size)
        assert kind is _Enumeration.cudaMemcpyDeviceToDevice and isinstance(stream, int)
        ctypes.memmove(target, source, size)
        return (Status.cudaSuccess,)

    def cudaMemcpy2DAsync(
        self, target: int, to: int, source: int, step: int, width: int, height: int, kind: Any, stream: int
    ) -> Any:
        assert width <= min(to, step) and kind is _Enumeration.cudaMemcpyDeviceToDevice and isinstance(stream, int)
        self._check(target, to * (height - 1) + width)
        self._check(source, step * (height - 1) + width)
        for row in range(height):
            ctypes.memmove(target + row * to, source + row * step, width)
        return (Status.cudaSuccess,)

    def cudaMemcpy2DFromArrayAsync(
        self, target: int, to: int, plane: Plane, x: int, y: int, width: int, height: int, kind: Any, stream: int
    ) -> Any:
        assert (x, y) == (0, 0) and width <= to and kind is _Enumeration.cudaMemcpyDeviceToDevice
        self._check(target, to * (height - 1) + width)
        for row, texels in enumerate(np.ascontiguousarray(plane.rows[:height, :width])):
            ctypes.memmove(target + row * to, texels.ctypes.data, width)
        assert plane.rows.shape[0] >= height and plane.rows.shape[1] >= width and isinstance(stream, int)
        return (Status.cudaSuccess,)

    def cudaMemcpy2DToArrayAsync(
        self, plane: Plane, x: int, y: int, source: int, step: int, width: int, height: int, kind: Any, stream: int
    ) -> Any:
        assert (x, y) == (0, 0) and width <= step and kind is _Enumeration.cudaMemcpyDeviceToDevice
        assert plane.rows.shape[0] >= height and plane.rows.shape[1] >= width and isinstance(stream, int)
        self._check(source, step * (height - 1) + width)
        for row in range(height):
            bytes_of_row = ctypes.string_at(source + row * step, width)
            plane.rows[row, :width] = np.frombuffer(bytes_of_row, np.uint8)
        return (Status.cudaSuccess,)

    def cudaEventCreateWithFlags(self, flags: int) -> Any:
        assert flags == 2
        self.events.append(object())
        return Status.cudaSuccess, self.events[-1]

    def cudaEventRecord(self, event: object, stream: int) -> Any:
        assert event in self.events and isinstance(stream, int)
        return (Status.cudaSuccess,)

    def cudaStreamWaitEvent(self, stream: int, event: object, flags: int) -> Any:
        assert event in self.events and flags == 0
        return (Status.cudaSuccess,)

    def cudaEventDestroy(self, event: object) -> Any:
        self.events.remove(event)
        return (Status.cudaSuccess,)

    def _check(self, address: int, size: int) -> None:
        """Fail unless the bytes are in memory that is allocated or mapped."""
        blocks = [*self.allocated.values(), *(one.memory for one in self.resources if one.memory is not None)]
        begins = [(block.ctypes.data, block.nbytes) for block in blocks]
        assert any(begin <= address and address + size <= begin + length for begin, length in begins)


def host_view(array: Any) -> Any:
    """The memory of a CudaArray, or of another object with its interface, which is host memory here."""
    described = array.__cuda_array_interface__
    if not described["data"][0]:
        return np.zeros(described["shape"], described["typestr"])
    owner = SimpleNamespace(__array_interface__={**described, "data": (described["data"][0], False)})
    return np.asarray(owner)


def on_gpu(values: Any, where: str, ctx: Any) -> pf.Tensor:
    """A tensor on a GPU backend."""
    tensor = pf.Tensor(values)
    tensor.pin(where, ctx)
    return tensor
