"""Data types, shapes, and tensors over a backend's storage."""

from __future__ import annotations

import enum
import math
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.errors import ClosedError, InputError
from perframe.readback import FrameState, Pending, Readback

Array = NDArray[Any]


class BackendType(enum.StrEnum):
    """Where a worker runs, and where a tensor's data lies."""

    CPU = "cpu"
    GPU_COMPUTE = "gpu_compute"
    GPU_PIXEL = "gpu_pixel"


class DataType(enum.StrEnum):
    """The element type of a tensor: ONNX's, by NumPy's names."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    STRING = "object"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0 = "float8_e8m0fnu"
    FLOAT4E2M1 = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @classmethod
    def of(cls, dtype: Any) -> DataType:
        """The data type of a NumPy dtype, or of its name. Raises InputError."""
        if isinstance(dtype, DataType):
            return dtype
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = str(dtype)
        if name.startswith("str"):
            name = "object"
        try:
            return cls(name)
        except ValueError:
            raise InputError(f"dtype {dtype!r} is none that a tensor can have: {', '.join(cls)}") from None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; ml_dtypes' where NumPy has none."""
        try:
            return np.dtype(self.value)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.value))

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating point type."""
        return "float" in self.value


class TensorShape(tuple[int, ...]):
    """A concrete shape: a tuple of ints with a few names."""

    def __new__(cls, dims: Iterable[int] = ()) -> TensorShape:
        return super().__new__(cls, (int(d) for d in dims))

    @property
    def rank(self) -> int:
        """How many dims."""
        return len(self)

    @property
    def size(self) -> int:
        """How many elements."""
        return math.prod(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """Row-major strides, in elements."""
        strides, step = [], 1
        for dim in reversed(self):
            strides.append(step)
            step *= dim
        return tuple(reversed(strides))

    def __repr__(self) -> str:
        return f"({', '.join(map(str, self))})"


@runtime_checkable
class Fence(Protocol):
    """Something that will be finished: a job, a GL fence."""

    @property
    def done(self) -> bool:
        """Whether it is. Never blocks."""

    def wait(self) -> None:
        """Block until it is."""


class Storage(Protocol):
    """A tensor's data on a backend."""

    @property
    def backend_type(self) -> BackendType:
        """Where the data lies."""

    @property
    def max_capacity(self) -> int:
        """How many elements fit."""

    def upload(self, array: Array) -> None:
        """Write the values of `array`; later work on this backend sees them."""

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """The values; blocks. Without a shape, all of the storage, flat."""

    def request(self, shape: Sequence[int], dtype: DataType) -> Pending:
        """Begin a download; never blocks."""

    def like(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """New storage on the same backend."""

    def pin(self, tensor: Tensor) -> Storage:
        """Move `tensor`'s data to this storage's backend and return its new storage there."""

    def release(self) -> None:
        """Free the memory."""


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """`size` bytes that begin at a multiple of 64, what the widest vector load wants."""
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


class HostStorage:
    """A tensor's data in host memory. `write` is the last job that writes it, `reads` those that read it since."""

    backend_type = BackendType.CPU

    def __init__(self, shape: Sequence[int], dtype: DataType) -> None:
        self.dtype = dtype
        self.size = math.prod(shape)
        if dtype is DataType.STRING:
            self.memory: Array = np.full(self.size, "", object)
        else:
            self.memory = aligned_bytes(max(1, self.size * dtype.numpy.itemsize))
        self.write: Fence | None = None
        self.reads: list[Fence] = []

    @property
    def max_capacity(self) -> int:
        """How many elements of its own dtype fit."""
        return self.size

    @property
    def address(self) -> int:
        """Where the data begins."""
        return int(self.memory.ctypes.data)

    @property
    def fences(self) -> list[Fence]:
        """All that must be finished before the data may be written."""
        pending = [*self.reads, *([self.write] if self.write else [])]
        return [fence for fence in pending if not fence.done]

    def view(self, shape: Sequence[int], dtype: DataType) -> Array:
        """The memory as an array, without waiting for whom writes it."""
        if dtype is DataType.STRING:
            return self.memory[: math.prod(shape)].reshape(shape)
        size = math.prod(shape) * dtype.numpy.itemsize
        return self.memory[:size].view(dtype.numpy).reshape(shape)

    def upload(self, array: Array) -> None:
        """Write the values of `array`; waits for work that still uses the old ones."""
        for fence in self.fences:
            fence.wait()
        self.reads, self.write = [], None
        np.copyto(self.view(array.shape, self.dtype), array)

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """A copy of the values; waits for them."""
        if self.write:
            self.write.wait()
        return self.view((self.size,) if shape is None else shape, dtype or self.dtype).copy()

    def request(self, shape: Sequence[int], dtype: DataType) -> Pending:
        """A download that is taken when whoever writes has finished, and before anyone writes again."""
        pending = HostPending(self, shape, dtype)
        self.reads = [fence for fence in self.reads if not fence.done]
        if not pending.done:
            self.reads.append(pending)
        return pending

    def like(self, shape: Sequence[int], dtype: DataType) -> HostStorage:
        """New host memory."""
        return HostStorage(shape, dtype)

    def pin(self, tensor: Tensor) -> Storage:
        """Move `tensor`'s data into host memory; blocks if it lies on a GPU."""
        return tensor.pin_like(self)

    def release(self) -> None:
        """Forget the memory; NumPy frees it with its last view."""
        self.memory = np.empty(0, np.uint8)
        self.size = 0


class HostPending:
    """A snapshot of host memory once `write` is done. It is itself a fence that the next writer waits for."""

    def __init__(self, storage: HostStorage, shape: Sequence[int], dtype: DataType) -> None:
        self._storage, self._shape, self._dtype = storage, tuple(shape), dtype
        self._write = storage.write
        self._values: Array | None = None
        self._lock = threading.Lock()  # the next writer's thread may ask while the user polls
        self.poll()

    def poll(self) -> bool:
        """Whether the writer has finished; takes the snapshot when it has."""
        with self._lock:
            if self._values is None and (self._write is None or self._write.done):
                self._values = self._storage.view(self._shape, self._dtype).copy()
                self._write = None
            return self._values is not None

    @property
    def done(self) -> bool:
        """The same, as a fence."""
        return self.poll()

    def wait(self) -> None:
        """Block until the snapshot is taken."""
        write = self._write
        if write is not None:
            write.wait()
        self.poll()

    def take(self) -> Array:
        """The snapshot."""
        assert self._values is not None, "take() before poll()"
        return self._values


class Tensor:
    """A shape, a dtype, and data that may still be pending on a backend.

    `Tensor(array)` copies an array into host memory. Tensors made by a worker belong to it and are overwritten by its
    next schedule; `readback_and_clone()` gives a copy that stays.
    """

    def __init__(self, data: ArrayLike, dtype: DataType | str | None = None) -> None:
        array = np.asarray(data, None if dtype is None else DataType.of(dtype).numpy)
        if array.dtype.kind in "US":
            array = array.astype(object)
        self.shape = TensorShape(array.shape)
        self.dtype = DataType.of(array.dtype)
        self._storage: Storage | None = HostStorage(self.shape, self.dtype)
        self._storage.upload(array)
        self._request: Readback | None = None
        self._released = False
        self.name = ""

    @classmethod
    def over(cls, storage: Storage | None, shape: Sequence[int], dtype: DataType, name: str = "") -> Tensor:
        """A tensor over existing storage; None means that the first who uses it decides where it lies."""
        tensor = cls.__new__(cls)
        tensor.shape, tensor.dtype, tensor.name = TensorShape(shape), dtype, name
        tensor._storage, tensor._request, tensor._released = storage, None, False
        return tensor

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: DataType | str = DataType.FLOAT32) -> Tensor:
        """A tensor of undefined values. It gets its memory from the backend that first uses it."""
        if any(int(dim) < 0 for dim in shape):
            raise InputError(f"a tensor's dims must not be negative: {tuple(shape)}")
        return cls.over(None, shape, DataType.of(dtype))

    @property
    def data_on_backend(self) -> Storage:
        """The storage; host memory is made if there is none yet. Raises ClosedError after release()."""
        if self._released:
            raise ClosedError(f"tensor {self.name!r} {self.shape} was released")
        if self._storage is None:
            self._storage = HostStorage(self.shape, self.dtype)
        return self._storage

    @property
    def is_pinned(self) -> bool:
        """Whether it has storage yet."""
        return self._storage is not None

    @property
    def backend_type(self) -> BackendType:
        """Where its data lies; CPU where that is undecided."""
        return self._storage.backend_type if self._storage else BackendType.CPU

    def place(self, storage: Storage) -> None:
        """Give a tensor that has no data yet its storage."""
        self._storage = storage

    def pin_like(self, storage: Storage) -> Storage:
        """Move the data to `storage`'s backend. Blocks when values must go from a GPU through the host."""
        target = storage.like(self.shape, self.dtype)
        if self._storage is not None:
            target.upload(self.download_to_array())
        self._storage = target
        return target

    def upload(self, array: ArrayLike) -> None:
        """Overwrite the values. Raises InputError where shape or dtype differ."""
        values = np.asarray(array)
        if values.shape != tuple(self.shape) or DataType.of(values.dtype) is not self.dtype:
            raise InputError(
                f"tensor {self.name!r} is {self.dtype} {self.shape}, and cannot take {values.dtype} {values.shape}: "
                "convert or reshape the array first"
            )
        self.data_on_backend.upload(values)

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """The same data with another shape (one dim may be -1); both tensors share the storage."""
        dims = list(shape)
        if dims.count(-1) == 1:
            rest = -math.prod(dims)
            dims[dims.index(-1)] = self.shape.size // rest if rest else 0
        if math.prod(dims) != self.shape.size or any(dim < 0 for dim in dims):
            raise InputError(f"tensor {self.name!r} {self.shape} cannot be reshaped to {tuple(shape)}")
        return Tensor.over(self.data_on_backend, dims, self.dtype, self.name)

    def readback_request(self) -> Readback:
        """Begin a download and return at once; poll `.done`."""
        self._request = Readback(self.data_on_backend.request(self.shape, self.dtype), self.name)
        return self._request

    def is_readback_request_done(self) -> bool:
        """Whether the last `readback_request()` has arrived; False when none was made."""
        return self._request is not None and self._request.done

    def download_to_array(self) -> Array:
        """A copy of the values as an ndarray. Blocks until they exist."""
        if self.backend_type is not BackendType.CPU:
            FrameState.blocking("Tensor.download_to_array()")
        return self.data_on_backend.download(self.shape, self.dtype)

    def readback_and_clone(self) -> Tensor:
        """A copy in host memory that this caller owns. Blocks until the values exist."""
        return Tensor(self.download_to_array(), self.dtype)

    async def readback_and_clone_async(self) -> Tensor:
        """A copy in host memory, without blocking: await it in the host's loop or in asyncio."""
        return Tensor(await self.readback_request(), self.dtype)

    def release(self) -> None:
        """Free the storage. Further use raises ClosedError."""
        if self._storage is not None:
            self._storage.release()
        self._storage, self._released = None, True

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._require_host("__array__")
        array = self.download_to_array()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        self._require_host("__dlpack__")
        return self.download_to_array().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._require_host("__dlpack_device__")
        return (1, 0)  # kDLCPU

    def _require_host(self, protocol: str) -> None:
        if self.backend_type is not BackendType.CPU:
            raise InputError(
                f"{protocol} would block on {self.backend_type}: call readback_and_clone() or readback_request() first"
            )

    def __repr__(self) -> str:
        return f"Tensor({self.name + ': ' if self.name else ''}{self.dtype} {self.shape} on {self.backend_type})"
