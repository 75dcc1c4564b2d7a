"""Tensors: a shape, a dtype, and data over a backend's storage."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from operator import index
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from perframe.errors import ClosedError, InputError
from perframe.tensor.arithmetic import NoArithmetic
from perframe.tensor.cuda_array import CudaArray
from perframe.tensor.dlpack import CPU
from perframe.tensor.dtypes import Array, BackendType, DataType, TensorShape, check_shape
from perframe.tensor.exchange import as_array, capsule_for, converted, require_host, shared_storage
from perframe.tensor.frames import BRIEF, current_frame
from perframe.tensor.placing import places
from perframe.tensor.protocol import Storage
from perframe.tensor.readback import Given, Readback
from perframe.tensor.storage import HostStorage


class Tensor(NoArithmetic):
    """A shape, a dtype, and data that may still be pending on a backend.

    `Tensor(array)` copies an array into host memory. Tensors made by a worker belong to it and are overwritten by its
    next schedule; `readback_and_clone()` gives a copy that stays.
    """

    def __init__(self, data: ArrayLike, dtype: DataType | str | None = None) -> None:
        if data is None:
            raise InputError("a tensor needs values, and got None: Tensor.empty(shape) makes one without")
        array = converted(data, None if dtype is None else DataType.of(dtype))
        if array.dtype.kind in "US":
            array = array.astype(object)
        self.shape = TensorShape(array.shape)
        self.dtype = DataType.of(array.dtype)
        self._storage: Storage | None = HostStorage(self.shape, self.dtype)
        self._storage.upload(array)
        self._request, self._polled, self._released = None, math.nan, False
        self.name = ""

    _request: Readback | Given | None  # the last one, until the values are replaced
    _polled: float  # the storage's `changes` when the request was found done; NaN, which equals nothing, before

    @classmethod
    def over(cls, storage: Storage | None, shape: Sequence[int], dtype: DataType, name: str = "") -> Tensor:
        """Return a tensor over existing storage. With None, the first use decides where the data lies."""
        tensor = cls.__new__(cls)
        tensor.shape = shape if type(shape) is TensorShape else TensorShape(shape)
        tensor.dtype, tensor.name = dtype, name
        tensor._storage, tensor._released = storage, False
        tensor._request, tensor._polled = None, math.nan
        return tensor

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: DataType | str = DataType.FLOAT32) -> Tensor:
        """Return a tensor of undefined values. The backend that first uses it allocates the memory."""
        check_shape(shape)
        return cls.over(None, shape, DataType.of(dtype))

    @classmethod
    def from_dlpack(cls, data: Any, copy: bool | None = None) -> Tensor:
        """Return a tensor over the memory of another library's array on the CPU, without a copy. Change the array only
        while no run uses the tensor. A read-only or strided array is copied; with `copy=False` it raises InputError.
        """
        array, storage = shared_storage(data, copy)
        return cls(array) if storage is None else cls.over(storage, array.shape, storage.dtype)

    @property
    def data_on_backend(self) -> Storage:
        """The storage of the data. A tensor without storage gets host memory. Raises ClosedError after release()."""
        storage = self._storage
        if storage is not None and storage.is_open:
            return storage
        if storage is not None or self._released:
            raise self._closed_error()
        self._storage = HostStorage(self.shape, self.dtype)
        return self._storage

    def _closed_error(self) -> ClosedError:
        named = f"{self.name!r} " if self.name else ""
        return ClosedError(
            f"tensor {named}{self.shape} was released: by you, with its worker, or with the worker's plan for these "
            "input shapes. readback_and_clone() copies what must outlive them"
        )

    @property
    def is_pinned(self) -> bool:
        """Whether the tensor has storage yet."""
        return self._storage is not None

    @property
    def backend_type(self) -> BackendType:
        """The backend of the data; CPU where the tensor has no storage yet."""
        return self._storage.backend_type if self._storage else BackendType.CPU

    def set_storage(self, storage: Storage) -> None:
        """Give storage to a tensor that has none yet. Raises ClosedError after release()."""
        if self._released:
            raise self._closed_error()
        self._storage = storage

    def pin_like(self, storage: Storage) -> Storage:
        """Move the data to `storage`'s backend, unless it is there. Blocks if values must go through the host.

        Raises ClosedError after release().
        """
        if self._released:
            raise self._closed_error()
        if self._storage is not None and storage.is_beside(self._storage):
            return self.data_on_backend
        return self._move(storage.like(self.shape, self.dtype))

    def pin(self, backend: str, ctx: Any = None) -> Storage:
        """Move the data to a backend, unless it is there, and return the storage. Blocks if it comes from a GPU.

        `backend` and `ctx` are those of a Worker: without `ctx`, a GPU means this thread's headless context. Tensors
        that share the storage keep the old one. Raises InputError, BackendError and ClosedError.
        """
        place = places.choose(backend, ctx)
        storage = None if self._released else self._storage
        if place is BackendType.CPU:
            is_there = storage is not None and storage.backend_type is place
            return (
                self.data_on_backend if is_there or self._released else self._move(HostStorage(self.shape, self.dtype))
            )
        return self.pin_like(places.allocate(place, ctx, (), self.dtype))

    def to(self, backend: str, ctx: Any = None) -> Tensor:
        """Return this tensor if its data is on a backend, and otherwise a copy there. Blocks if it comes from a GPU.

        `backend` and `ctx` are those of `pin`.
        """
        copy = Tensor.over(self.data_on_backend, self.shape, self.dtype, self.name)
        copy._request, copy._polled = self._request, self._polled
        return self if copy.pin(backend, ctx) is self._storage else copy

    def on_cuda(self, stream: Any = 0, access: str = "read_write") -> AbstractContextManager[CudaArray]:
        """Give CUDA the values of a tensor on an NVIDIA GPU, for the time of a `with` block: other libraries take the
        array by `from_dlpack`. GL must not use the tensor within. `access` is "read_write", "read" or "write". Raises
        InputError, BackendError, MissingExtraError without cuda-python, and ClosedError if it is released meanwhile.
        """
        return places.share(self, stream, access)

    def copy_from_cuda(self, data: Any, stream: Any = 0) -> None:
        """Copy an array of another library, in CUDA memory, into a tensor on an NVIDIA GPU. Raises as `on_cuda`."""
        places.copy_from_cuda(self, data, stream)

    def _move(self, target: Storage) -> Storage:
        if self._storage is not None:
            target.upload(self.download_to_array())
        self._storage, self._request = target, None
        return target

    def upload(self, array: ArrayLike, at: Sequence[int] | None = None) -> None:
        """Overwrite the values; with `at`, those of the block that begins at this index. Other values stay.

        Raises InputError if the dtype differs from the tensor's, or the shape, or if the block does not fit.
        """
        values = converted(array)
        begin = () if at is None else tuple(at)
        fits = values.shape == tuple(self.shape) if at is None else self._holds(values.shape, begin)
        if not fits or DataType.of(values.dtype) is not self.dtype:
            where = "" if at is None else f" at {begin}"
            then = "convert or reshape the array first" if at is None else "`at` has an index for each dim, from 0"
            raise InputError(
                f"tensor {self.name!r} is {self.dtype} {self.shape}, and cannot take {values.dtype} "
                f"{values.shape}{where}: {then}"
            )
        if at is None:
            self.data_on_backend.upload(values)
        else:
            self.data_on_backend.upload_part(values, begin, self.shape)
        self._request = None

    def _holds(self, part: Sequence[int], at: Sequence[Any]) -> bool:
        """Whether a block lies within the tensor. Both have a number for each dim."""
        if len(part) != len(self.shape) or len(at) != len(self.shape):
            return False
        numbers = all(isinstance(begin, (int, np.integer)) for begin in at)
        return numbers and all(b >= 0 and b + n <= dim for b, n, dim in zip(at, part, self.shape, strict=True))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """Return a tensor that shares this storage and has another shape, given as numbers or as a sequence. One dim
        may be -1.
        """
        dims = [index(dim) for part in shape for dim in ((part,) if isinstance(part, int | np.integer) else part)]
        wanted = tuple(dims)
        if dims.count(-1) == 1:
            rest = -math.prod(dims)
            dims[dims.index(-1)] = self.shape.size // rest if rest else 0
        if math.prod(dims) != self.shape.size or any(dim < 0 for dim in dims):
            raise InputError(f"tensor {self.name!r} {self.shape} cannot be reshaped to {wanted}")
        return Tensor.over(self.data_on_backend, dims, self.dtype, self.name)

    def readback_request(self) -> Readback:
        """Begin a download and return at once; poll `.done`."""
        pending = self.data_on_backend.request(self.shape, self.dtype)
        self._request = made = Readback(pending, self.name, partial(_forget, weakref.ref(self)))
        self._polled = math.nan
        return made

    def is_readback_request_done(self) -> bool:
        """Whether the last `readback_request()` has arrived; False without a request, or after an `upload`.

        Once it returns True, `download_to_array` and `readback_and_clone` return the requested values and never wait,
        until the tensor is written again.
        """
        if self._request is None or not self._request.done:
            return False
        self._request.share()
        self._polled = math.nan if self._storage is None else self._storage.changes
        return True

    def _requested(self, storage: Storage) -> Array | None:
        """The values of a request that was found done, if the storage was not written since."""
        return self._request.shared if self._request is not None and self._polled == storage.changes else None

    def download_to_array(self) -> Array:
        """Return a copy of the values as an ndarray. Blocks until the values exist, unless
        `is_readback_request_done()` has returned True for them.
        """
        storage = self.data_on_backend
        if self._request is not None and (requested := self._requested(storage)) is not None:
            return requested.copy()
        began = perf_counter() if storage.backend_type is BackendType.CPU else -math.inf
        array = storage.download(self.shape, self.dtype)
        if perf_counter() - began > BRIEF:  # by hand, in half of the time of `_reported`
            current_frame().blocking("Tensor.numpy() or download_to_array()")
        return array

    def numpy(self) -> Array:
        """Return a copy of the values as an ndarray, like `download_to_array`. Blocks as that does."""
        return self.download_to_array()

    def download_to_native_array(self, writable: bool = False) -> Array:
        """Return the values of a tensor on the CPU without a copy: an array over its memory, read-only unless
        `writable`. Later runs and uploads change it. Blocks until the values exist, and with `writable` until no job
        uses them; schedule no run with the tensor while you write. Of a tensor on a GPU it is a copy, and `writable`
        raises InputError.
        """
        if self.backend_type is not BackendType.CPU:
            if writable:
                self._require_host("download_to_native_array(writable=True)")
            array = self.download_to_array()
            array.flags.writeable = False
            return array
        with _reported("Tensor.download_to_native_array()"):
            return self._on_host.native(self.shape, self.dtype, writable)

    def readback_and_clone(self) -> Tensor:
        """Return a copy in host memory that the caller owns. Blocks as `download_to_array` does."""
        requested = self._requested(self.data_on_backend)
        return Tensor(self.download_to_array() if requested is None else requested, self.dtype)

    async def readback_and_clone_async(self) -> Tensor:
        """Return a copy in host memory, without blocking: await it in the host's loop or in asyncio."""
        return Tensor(await self.readback_request(), self.dtype)

    def let_go(self) -> None:
        """Leave the storage to other values. Further use raises ClosedError."""
        self._storage, self._released = None, True

    def release(self) -> None:
        """Free the storage. Further use raises ClosedError."""
        if self._storage is not None:
            self._storage.release()
        self._storage, self._request, self._released = None, None, True

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __reduce__(self) -> Any:
        """Pickle a copy of the values, which lies in host memory again. Raises InputError for a tensor on a GPU."""
        self._require_host("pickle")
        return _unpickled, (self.download_to_array(), self.name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        self._require_host("__array__")
        return as_array(self, dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Share the memory of a tensor on the CPU, read-only. Blocks until the values exist, and later runs change
        them; `copy=True` copies them. Raises InputError for a tensor on a GPU, which has `on_cuda()`.
        """
        self._require_host("__dlpack__", "call numpy() to wait, or share it with CUDA: on_cuda()")
        return capsule_for(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._require_host("__dlpack_device__", "call numpy() to wait, or share it with CUDA: on_cuda()")
        return (CPU, 0)

    def _require_host(self, call: str, instead: str = "call numpy() to wait, or readback_request()") -> None:
        require_host(self, call, instead)

    @property
    def _on_host(self) -> HostStorage:
        return cast(HostStorage, self.data_on_backend)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def __len__(self) -> int:
        """The first dim. Raises TypeError for a tensor without dims."""
        if not self.shape:
            raise TypeError(f"{self!r} has no dims, and so no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """Return a copy of items: an ndarray, or a number. Blocks until the values exist.

        Raises InputError for a tensor on a GPU: each access would wait.
        """
        self._require_host("indexing")
        with _reported("indexing of a Tensor"):
            return self._on_host.items(index, self.shape, self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        """Write items, as in an array of NumPy. Blocks until no job uses the old values.

        Raises InputError for a tensor on a GPU, which takes upload(array, at=...), and for values that do not fit.
        """
        self._require_host("assignment to items", "call upload(array, at=index)")
        try:
            self._on_host.assign(index, self._converted(values), self.shape)
        except ValueError as error:
            raise InputError(f"tensor {self.name!r} {self.shape} cannot take these items: {error}") from None
        self._request = None

    def _converted(self, values: Any) -> Array:
        """Values for items, in the tensor's dtype. Floats may be rounded; other values must not change."""
        given, wanted = np.asarray(values), self.dtype
        if wanted is DataType.STRING or given.dtype.kind in "OUSc":
            fits = given.dtype.kind in "US" if wanted is DataType.STRING else given.dtype.kind == wanted.numpy.kind
            converted = given.astype(wanted.numpy) if fits else given
        else:
            with np.errstate(invalid="ignore"):  # NaN as an integer: the comparison finds it
                converted = given.astype(wanted.numpy)
            fits = wanted.is_float or bool(np.array_equal(converted, given))
        if not fits:
            raise InputError(
                f"tensor {self.name!r} is {wanted} {self.shape}, and cannot hold these {given.dtype} items: "
                "convert them first"
            )
        return converted

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dim of a copy. Raises InputError for a tensor on a GPU."""
        self._require_host("iterating")
        return iter(self.download_to_array())

    def _repr_html_(self) -> str:
        """A small picture or a histogram, for notebooks. Blocks until the values exist."""
        from perframe.tensor.drawing import drawn  # imported late: only notebooks need it

        if self._released or self._storage is None or not self._storage.is_open:
            return drawn(repr(self), np.empty(0))
        return drawn(repr(self), self.download_to_array())

    def __repr__(self) -> str:
        is_gone = self._released or (self._storage is not None and not self._storage.is_open)
        where = "released" if is_gone else f"on {self.backend_type}"
        return f"Tensor({self.name + ': ' if self.name else ''}{self.dtype} {self.shape} {where})"


@contextmanager
def _reported(call: str) -> Iterator[None]:
    """Report a call that waited for the CPU within a frame."""
    began = perf_counter()
    yield
    if perf_counter() - began > BRIEF:
        current_frame().blocking(call)


def _forget(tensor: weakref.ref[Tensor], request: Readback) -> None:
    """Let a tensor forget a request whose result the caller has."""
    found = tensor()
    if found is not None and found._request is request:
        found._request = Given()


def _unpickled(array: Array, name: str) -> Tensor:
    tensor = Tensor(array)
    tensor.name = name
    return tensor
