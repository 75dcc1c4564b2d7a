"""Tensors: a shape, a dtype, and data over a backend's storage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from perframe.errors import ClosedError, InputError
from perframe.tensor.arithmetic import NoArithmetic
from perframe.tensor.drawing import drawn
from perframe.tensor.dtypes import Array, BackendType, DataType, TensorShape
from perframe.tensor.frames import BRIEF, current_frame
from perframe.tensor.protocol import Storage
from perframe.tensor.readback import Readback
from perframe.tensor.storage import HostStorage


class Tensor(NoArithmetic):
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
        self._request, self._polled, self._released = None, math.nan, False
        self.name = ""

    _request: Readback | None  # the last one, until the values are replaced
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
        if any(int(dim) < 0 for dim in shape):
            raise InputError(f"a tensor's dims must not be negative: {tuple(shape)}")
        return cls.over(None, shape, DataType.of(dtype))

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
        return ClosedError(
            f"tensor {self.name!r} {self.shape} was released, or its worker was, or the worker's plan for these input "
            "shapes: call readback_and_clone() on what must outlive them"
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
        """Move the data to `storage`'s backend. Blocks if values must go from a GPU through the host.

        Raises ClosedError after release().
        """
        if self._released:
            raise self._closed_error()
        target = storage.like(self.shape, self.dtype)
        if self._storage is not None:
            target.upload(self.download_to_array())
        self._storage = target
        return target

    def upload(self, array: ArrayLike) -> None:
        """Overwrite the values. Raises InputError where the array's shape or dtype differs from the tensor's."""
        values = np.asarray(array)
        if values.shape != tuple(self.shape) or DataType.of(values.dtype) is not self.dtype:
            raise InputError(
                f"tensor {self.name!r} is {self.dtype} {self.shape}, and cannot take {values.dtype} {values.shape}: "
                "convert or reshape the array first"
            )
        self.data_on_backend.upload(values)
        self._request = None

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """Return a tensor that shares this storage and has another shape (one dim may be -1)."""
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
        self._polled = math.nan
        return self._request

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
        storage, call = self.data_on_backend, "Tensor.download_to_array()"
        requested = self._requested(storage)
        if requested is not None:
            return requested.copy()
        if storage.backend_type is not BackendType.CPU:
            current_frame().blocking(call)
            return storage.download(self.shape, self.dtype)
        began = perf_counter()
        array = storage.download(self.shape, self.dtype)
        if perf_counter() - began > BRIEF:
            current_frame().blocking(call)
        return array

    def numpy(self) -> Array:
        """Return a copy of the values as an ndarray, like `download_to_array`. Blocks as that does."""
        return self.download_to_array()

    def readback_and_clone(self) -> Tensor:
        """Return a copy in host memory that the caller owns. Blocks as `download_to_array` does."""
        requested = self._requested(self.data_on_backend)
        return Tensor(self.download_to_array() if requested is None else requested, self.dtype)

    async def readback_and_clone_async(self) -> Tensor:
        """Return a copy in host memory, without blocking: await it in the host's loop or in asyncio."""
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

    def __reduce__(self) -> Any:
        """Pickle a copy of the values, which lies in host memory again. Raises InputError for a tensor on a GPU."""
        self._require_host("pickle")
        return _unpickled, (self.download_to_array(), self.name)

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
                f"{protocol} would block on {self.backend_type}: call numpy() to wait, or readback_request()"
            )

    def __len__(self) -> int:
        """The first dim. Raises TypeError for a tensor without dims."""
        if not self.shape:
            raise TypeError(f"{self!r} has no dims, and so no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        """True: there is a tensor. Its values are not looked at."""
        return True

    def __getitem__(self, index: Any) -> Any:
        """Return items as an ndarray or a number. Raises InputError for a tensor on a GPU: each access would wait."""
        self._require_host("indexing")
        return self.download_to_array()[index]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dim of a copy. Raises InputError for a tensor on a GPU."""
        self._require_host("iterating")
        return iter(self.download_to_array())

    def _repr_html_(self) -> str:
        """A small picture or a histogram, for notebooks. Blocks until the values exist."""
        if self._released or self._storage is None or not self._storage.is_open:
            return drawn(repr(self), np.empty(0))
        return drawn(repr(self), self.download_to_array())

    def __repr__(self) -> str:
        return f"Tensor({self.name + ': ' if self.name else ''}{self.dtype} {self.shape} on {self.backend_type})"


def _unpickled(array: Array, name: str) -> Tensor:
    tensor = Tensor(array)
    tensor.name = name
    return tensor
