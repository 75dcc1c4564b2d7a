"""Access of CUDA to a tensor on a GL backend, for the time of a block."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from perframe.backends.gl.cuda.calls import stream_number
from perframe.backends.gl.cuda.registration import ACCESS_FLAGS, Registration, register
from perframe.backends.gl.lowering.steps import kind_of
from perframe.backends.gl.storage.storage import GLStorage
from perframe.errors import BackendError, ClosedError, InputError
from perframe.tensor import DataType, Tensor, TensorShape
from perframe.tensor.cuda_array import LEGACY, CudaArray
from perframe.tensor.dlpack import CUDA, VERSION, contents

_ALL_BARRIERS = 0xFFFFFFFF
_DTYPES = {"float": DataType.FLOAT32, "int": DataType.INT32}


class CudaMapping:
    """The block in which CUDA has a tensor. GL must not use the tensor within."""

    def __init__(self, tensor: Tensor, stream: Any, access: str) -> None:
        if access not in ACCESS_FLAGS:
            raise InputError(f"access is one of {', '.join(ACCESS_FLAGS)}, not {access!r}")
        storage = tensor.data_on_backend if tensor.is_pinned else None
        if not isinstance(storage, GLStorage):
            raise InputError(
                f"{tensor!r} is not on a GPU: move it there by tensor.pin('gpu_compute', ctx), or share host memory by "
                "DLPack"
            )
        self._tensor, self._storage, self._access = tensor, storage, access
        self._stream, self._streams = stream_number(stream), list[int]()
        self._registration: Registration | None = None
        self._kept: list[Any] | None = None  # the objects of a storage that was released within the block
        self._array: CudaArray | None = None

    def __enter__(self) -> CudaArray:
        storage, tensor = self._storage, self._tensor
        if self._array is not None:
            raise BackendError("this block has begun before: call on_cuda() for each")
        if storage.mapping is not None:
            raise BackendError(f"{tensor!r} is mapped by CUDA already: one block at a time")
        assert storage.glo  # it is open
        with storage.device.using() as gl:
            if storage.device.has_compute:
                gl.glMemoryBarrier(_ALL_BARRIERS)
            self._registration = registration = register(storage)
            elements, size = tensor.shape.size, storage.element_bytes
            address = registration.map(self._stream, self._access, elements, size)
        storage.mapping = self
        storage.device.mapped.add(storage)
        held, device = held_dtype(tensor), registration.device
        self._array = CudaArray(address, tensor.shape, held, device, self._stream, self._access, self._order)
        return self._array

    def _order(self, stream: int) -> None:
        """Let a consumer's stream wait for ours, and note it: ours waits for it at the end."""
        assert self._registration is not None  # an array exists
        if stream != (self._stream or LEGACY):
            self._registration.order(self._stream, stream)
            self._streams.append(stream)

    def copy(self, source: _Source, array: CudaArray) -> None:
        """Copy an array into ours, within the block."""
        assert self._registration is not None  # an array exists
        if source.stream is not None and source.stream != (self._stream or LEGACY):
            self._registration.order(source.stream, self._stream)
        size = array.shape.size * array.dtype.numpy.itemsize
        cuda = self._registration.cuda
        if size:
            cuda.call("cudaMemcpyAsync", array.address, source.address, size, cuda.on_device, self._stream)

    def keep(self, objects: Sequence[Any]) -> None:
        """Free the objects of a released storage when the block ends."""
        self._kept = list(objects)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None and self._array is not None  # the block began
        storage, registration = self._storage, self._registration
        with storage.device.using():
            self._array.close()
            if self._kept is None:
                storage.mapping = None
                storage.device.mapped.discard(storage)
                storage.changes += self._access != "read"
            try:
                for stream in dict.fromkeys(self._streams):
                    registration.order(stream, self._stream)
            finally:
                registration.unmap(self._stream, self._access)
                if self._kept is not None:
                    storage.device.drop(*self._kept)
        if self._kept is not None and error is None:
            raise ClosedError(
                f"tensor {self._tensor.name!r} {self._tensor.shape} was released, or its worker was, while CUDA had it "
                "mapped, and what CUDA wrote is lost: release it after the block"
            )


class _Source(NamedTuple):
    """An array in CUDA memory that is copied."""

    address: int
    shape: tuple[int, ...]
    dtype: DataType
    stream: int | None  # whose work must come first; None if the library has seen to it
    owner: Any  # keeps the memory


def copy_from(tensor: Tensor, data: Any, stream: Any) -> None:
    """Copy an array in CUDA memory into a tensor, on the device. Raises InputError, and then copies nothing."""
    mapping = CudaMapping(tensor, stream, "write")
    number, held, shape = stream_number(stream), held_dtype(tensor), tuple(tensor.shape)
    source = _dlpack(data, number) if hasattr(data, "__dlpack__") else _array_interface(data)
    if source.shape != shape or source.dtype is not held:
        why = "" if held is tensor.dtype else f"; a GPU holds {tensor.dtype} as {held}"
        raise InputError(f"{tensor!r} takes {held} {shape} from CUDA, not {source.dtype} {source.shape}{why}")
    with mapping as array:
        mapping.copy(source, array)


def held_dtype(tensor: Tensor) -> DataType:
    """The dtype of a tensor's elements in the memory of the GPU."""
    storage = tensor.data_on_backend
    assert isinstance(storage, GLStorage)  # a mapping has checked it
    return DataType.FLOAT16 if storage.is_half else _DTYPES[kind_of(tensor.dtype)]


def _dlpack(data: Any, stream: int) -> _Source:
    """An array with `__dlpack__`, whose library lets our stream wait for its own work."""
    kind = type(data).__name__
    if int(data.__dlpack_device__()[0]) != CUDA:
        raise InputError(f"this {kind} is not in CUDA memory: upload(array) takes those of the host")
    try:
        try:
            capsule = data.__dlpack__(stream=stream or LEGACY, max_version=VERSION)
        except TypeError:  # it knows no versions
            capsule = data.__dlpack__(stream=stream or LEGACY)
    except (BufferError, RuntimeError) as error:
        raise InputError(f"this {kind} cannot be shared: {error}") from error
    found = contents(capsule)
    if found.dtype is None:
        raise InputError(f"this {kind} has a dtype that no tensor can have")
    _require_order(kind, found.shape, found.strides)
    return _Source(found.address, found.shape, found.dtype, None, capsule)


def _array_interface(data: Any) -> _Source:
    """An array with `__cuda_array_interface__`."""
    described, kind = getattr(data, "__cuda_array_interface__", None), type(data).__name__
    if described is None:
        raise InputError(f"{kind} has neither __dlpack__ nor __cuda_array_interface__: pass an array in CUDA memory")
    dtype, shape = np.dtype(described["typestr"]), tuple(described["shape"])
    strides = described.get("strides")
    if strides is not None:
        strides = tuple(stride // dtype.itemsize for stride in strides)
    _require_order(kind, shape, strides)
    return _Source(described["data"][0], shape, DataType.of(dtype), described.get("stream"), data)


def _require_order(kind: str, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    """Raise InputError unless elements follow each other in row-major order. A dim of one has any stride."""
    wanted = TensorShape(shape).strides
    if strides is not None and any(
        size > 1 and stride != right for size, stride, right in zip(shape, strides, wanted, strict=True)
    ):
        raise InputError(f"this {kind} is not in row-major order: make it contiguous, as by tensor.contiguous()")
