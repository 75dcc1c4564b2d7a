"""Tensors in host memory, and the arrays of other libraries: DLPack and `__array__`, without copies."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from perframe.errors import InputError, PerframeError
from perframe.tensor.dlpack import CPU, CUDA, VERSION, array_of, capsule_of, knows_read_only
from perframe.tensor.dtypes import Array, BackendType, DataType
from perframe.tensor.storage import HostStorage, address_of


class HostValues(Protocol):
    """A tensor, as this module sees it."""

    dtype: DataType

    @property
    def backend_type(self) -> BackendType:
        """The backend of the data."""

    def download_to_array(self) -> Array:
        """Return a copy of the values."""

    def download_to_native_array(self, writable: bool = False) -> Array:
        """Return the values without a copy."""


def converted(data: Any, dtype: DataType | None = None) -> Array:
    """Return data as an array, without a copy if possible. Raises InputError with the reason of another library."""
    try:
        return np.asarray(data, None if dtype is None else dtype.numpy)
    except (RuntimeError, TypeError, BufferError) as error:
        if isinstance(error, PerframeError) or not hasattr(data, "__dlpack__"):
            raise
        hint = ""
        if "bfloat16" in str(error).lower():
            hint = "; pf.Tensor.from_dlpack takes its bfloat16 numbers"
        elif _is_on_cuda(data):
            hint = "; tensor.copy_from_cuda(array) copies it into a tensor of a GPU backend"
        raise InputError(f"{type(data).__name__} is not an array in host memory: {error}{hint}") from error


def _is_on_cuda(data: Any) -> bool:
    """Whether an object with `__dlpack__` says that it lies in CUDA memory."""
    try:
        return int(data.__dlpack_device__()[0]) == CUDA
    except (AttributeError, RuntimeError, TypeError, ValueError):  # a device without a number
        return False


def shared_storage(data: Any, copy: bool | None) -> tuple[Array, HostStorage | None]:
    """Return an array over another library's memory, and storage over that memory. There is no storage if the values
    must be copied; with `copy=False` that raises InputError.
    """
    array = array_of(data)
    flags = array.flags
    reason = (
        "it is read-only"
        if not flags.writeable
        else "its elements do not follow each other in row-major order"
        if not flags.c_contiguous
        else "its address is not a multiple of the size of an element"
        if not flags.aligned
        else ""
    )
    if reason and copy is False:
        raise InputError(
            f"{type(data).__name__} of shape {array.shape} cannot be shared, because {reason}: leave out copy=False"
        )
    if reason or copy:
        return array, None
    storage = HostStorage(array.shape, DataType.of(array.dtype), array.reshape(-1).view(np.uint8))
    storage.changes = math.nan  # the other library may write at any time
    return array, storage


def as_array(tensor: HostValues, dtype: Any, copy: bool | None) -> Array:
    """Return a tensor's values for `np.asarray`: a copy, and with `copy=False` a read-only view."""
    if copy is not False:
        array = tensor.download_to_array()
        return array if dtype is None else array.astype(dtype)
    array = tensor.download_to_native_array()
    if dtype is not None and np.dtype(dtype) != array.dtype:
        raise ValueError(f"{tensor!r} cannot become {np.dtype(dtype)} without a copy")  # as NumPy's own arrays say
    return array


def capsule_for(
    tensor: HostValues,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule over a tensor's memory, read-only, or over a copy. Raises InputError."""
    if stream is not None:
        raise InputError(f"{tensor!r} is in host memory, which has no streams: stream is None, not {stream!r}")
    if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != (CPU, 0):
        raise InputError(f"{tensor!r} is in host memory and cannot be exported to the device {tuple(dl_device)}")
    views = knows_read_only(max_version)
    if copy is False and not views:
        raise InputError(f"{tensor!r} is shared read-only, which needs DLPack {VERSION[0]}.{VERSION[1]}: allow a copy")
    copies = copy or not views
    array = tensor.download_to_array() if copies else tensor.download_to_native_array()
    if tensor.dtype is DataType.BFLOAT16:
        return capsule_of(
            array, address_of(array), array.shape, tensor.dtype, max_version=max_version, read_only=not copies
        )
    try:
        return array.__dlpack__(max_version=max_version)
    except BufferError as error:
        raise InputError(f"{tensor!r} cannot be exported by DLPack: {error}") from error


def require_host(tensor: HostValues, call: str, instead: str) -> None:
    """Raise InputError for a tensor on a GPU: the call would block."""
    if tensor.backend_type is not BackendType.CPU:
        raise InputError(f"{call} would block on {tensor.backend_type}: {instead}")
