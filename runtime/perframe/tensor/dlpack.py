"""DLPack capsules: memory that libraries share without a copy. https://dmlc.github.io/dlpack/latest/c_api.html"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perframe.errors import InputError
from perframe.tensor.dtypes import Array, DataType

CPU, CUDA = 1, 2  # device types
VERSION = (1, 0)  # from which a capsule says that its memory is read-only
_READ_ONLY = 1
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
_WITHOUT_VERSION, _WITH_VERSION = b"dltensor", b"dltensor_versioned"


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Described(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("memory", _Described), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("memory", _Described),
    )


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Memory:
    """Memory at an address, for NumPy, which keeps this object and thus `owner`. NumPy does not read the memory."""

    def __init__(
        self,
        owner: Any,
        address: int,
        shape: Sequence[int],
        itemsize: int,
        strides: Any = None,
        read_only: bool = False,
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(shape),
            "strides": strides,
            "typestr": f"<u{itemsize}",
            "data": (address, read_only),
        }


def capsule_of(
    owner: Any,
    address: int,
    shape: Sequence[int],
    dtype: DataType,
    device: tuple[int, int] = (CPU, 0),
    max_version: tuple[int, int] | None = None,
    read_only: bool = False,
) -> Any:
    """Return a capsule over row-major memory that `owner` has. Raises BufferError for read-only memory, if the
    consumer's `max_version` is too old to pass that on.

    NumPy makes the capsule, and frees it in native code: Python's would run while exceptions are raised. Only the dtype
    and the device are then changed.
    """
    array = np.asarray(_Memory(owner, address, shape, dtype.numpy.itemsize, read_only=read_only))
    capsule = array.__dlpack__(max_version=max_version)
    described = _described(capsule).memory
    described.dtype.code = _CODES[dtype.value.rstrip("0123456789")]
    described.device.kind, described.device.number = device
    return capsule


def knows_read_only(max_version: tuple[int, int] | None) -> bool:
    """Whether a consumer with this `max_version` learns that memory is read-only."""
    return max_version is not None and tuple(max_version) >= VERSION


def _described(capsule: Any) -> _Managed | _Versioned:
    """Return what a capsule that no consumer has taken points to."""
    if _is_valid(capsule, _WITH_VERSION):
        return _Versioned.from_address(_pointer(capsule, _WITH_VERSION))
    return _Managed.from_address(_pointer(capsule, _WITHOUT_VERSION))


def array_of(given: Any) -> Array:
    """Return an array over the memory of an object with `__dlpack__` in host memory. Raises InputError.

    NumPy knows most dtypes. It lacks bfloat16.
    """
    kind = type(given).__name__
    if not hasattr(given, "__dlpack__") or not hasattr(given, "__dlpack_device__"):
        raise InputError(f"{kind} has no __dlpack__: pass an array or a tensor of another library")
    try:
        device = int(given.__dlpack_device__()[0])
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"this {kind} cannot be shared: {error}") from error
    if device == CUDA:
        raise InputError(
            f"this {kind} is on a CUDA device: tensor.copy_from_cuda(array) copies it into a tensor of a GPU backend; "
            "or let its library bring it into host memory"
        )
    try:
        return np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        found = _bfloat16(given) if device == CPU else None
        if found is None:
            raise InputError(f"this {kind} cannot be shared: {error}") from error
        return found


def _bfloat16(given: Any) -> Array | None:
    """Return an array over bfloat16 numbers; None for other dtypes, and for an object that cannot be shared."""
    try:
        try:
            capsule = given.__dlpack__(max_version=VERSION)
        except TypeError:  # it knows no versions
            capsule = given.__dlpack__()
    except (BufferError, RuntimeError):
        return None
    found = contents(capsule)
    if found.dtype is not DataType.BFLOAT16:
        return None
    strides = None if found.strides is None else tuple(stride * 2 for stride in found.strides)
    memory = _Memory(capsule, found.address, found.shape, 2, strides, found.is_read_only)
    return np.asarray(memory).view(DataType.BFLOAT16.numpy)


class CapsuleContents(NamedTuple):
    """The memory of a capsule. Strides are in elements; None means row-major."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: DataType | None  # None if no tensor can have it
    device: tuple[int, int]
    is_read_only: bool


def contents(capsule: Any) -> CapsuleContents:
    """Read a capsule that no consumer has taken. The memory lives as long as the capsule."""
    managed = _described(capsule)
    memory = managed.memory
    names = {code: name for name, code in _CODES.items()}
    name = names.get(memory.dtype.code, "")
    name += "" if name == "bool" else str(memory.dtype.bits)
    dtype = DataType(name) if name in set(DataType) and memory.dtype.lanes == 1 else None
    dims = range(memory.rank)
    return CapsuleContents(
        (memory.data or 0) + memory.offset,
        tuple(memory.shape[dim] for dim in dims),
        tuple(memory.strides[dim] for dim in dims) if memory.strides else None,
        dtype,
        (memory.device.kind, memory.device.number),
        not isinstance(managed, _Versioned) or bool(managed.flags & _READ_ONLY),
    )
