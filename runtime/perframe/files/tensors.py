"""Arrays as bytes in a file: little-endian and row-major, with a checksum. Numbers of less than a byte are packed."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.tensor import DataType

Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview

_BYTES = "U8"
# the names of dtypes in safetensors; values of other dtypes are stored as bytes
_NAMES = {
    DataType.BOOL: "BOOL",
    DataType.UINT8: _BYTES,
    DataType.INT8: "I8",
    DataType.UINT16: "U16",
    DataType.INT16: "I16",
    DataType.FLOAT16: "F16",
    DataType.BFLOAT16: "BF16",
    DataType.UINT32: "U32",
    DataType.INT32: "I32",
    DataType.FLOAT32: "F32",
    DataType.UINT64: "U64",
    DataType.INT64: "I64",
    DataType.FLOAT64: "F64",
    DataType.FLOAT8E4M3FN: "F8_E4M3",
    DataType.FLOAT8E5M2: "F8_E5M2",
}
_BITS = {DataType.INT4: 4, DataType.UINT4: 4, DataType.FLOAT4E2M1: 4, DataType.INT2: 2, DataType.UINT2: 2}
_WORD, _ROW = 8, 1024  # bytes of a word, words of a row


def stored_form(dtype: DataType, shape: Sequence[int], size: int) -> tuple[str, list[int]]:
    """Return the dtype and the shape under which safetensors lists an array that takes `size` bytes."""
    name = _NAMES.get(dtype)
    return (_BYTES, [size]) if name is None else (name, list(shape))


def stored_bytes(dtype: DataType, shape: Sequence[int]) -> int | None:
    """Return the number of bytes that an array takes in a file; None for strings, whose lengths differ."""
    if dtype is DataType.STRING:
        return None
    bits = _BITS.get(dtype, 8 * dtype.numpy.itemsize)
    return -(-math.prod(shape) * bits // 8)


def encoded(array: Array, where: str) -> Buffer:
    """Return an array as bytes, without a copy if possible. Raises ModelError if it holds other objects than texts."""
    dtype = DataType.of(array.dtype)
    if dtype is DataType.STRING:
        texts = array.reshape(-1).tolist()
        if not all([isinstance(text, str) for text in texts]):
            raise ModelError(f"{where} holds objects that are not texts")
        return json.dumps(texts).encode()
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return (_packed(flat, _BITS[dtype]) if dtype in _BITS else flat).data


def decoded(data: memoryview, dtype: DataType, shape: Sequence[int], where: str) -> Array:
    """Return the read-only array in these bytes, without a copy if possible. Raises ModelError."""
    if dtype is DataType.STRING:
        array = np.array(_texts(data, math.prod(shape), where), object)
    elif dtype in _BITS:
        array = _unpacked(np.frombuffer(data, np.uint8), _BITS[dtype], math.prod(shape)).view(dtype.numpy)
    else:
        array = np.frombuffer(data, dtype.numpy)
    if not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return array.reshape(tuple(shape))


def _texts(data: memoryview, count: int, where: str) -> list[str]:
    try:
        texts = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where} holds no list of texts: {error}") from None
    if not isinstance(texts, list) or len(texts) != count or not all([type(text) is str for text in texts]):
        raise ModelError(f"{where} does not hold {count} texts")
    return texts


def _packed(values: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return numbers of `bits` bits, each in the low bits of a byte, side by side. The first has the lowest bits."""
    each = 8 // bits
    whole = np.zeros(-(-len(values) // each) * each, np.uint8)
    whole[: len(values)] = values & ((1 << bits) - 1)
    made = whole[::each].copy()
    for place in range(1, each):
        made |= whole[place::each] << np.uint8(place * bits)
    return made


def _unpacked(data: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint8]:
    each = 8 // bits
    values = np.empty(len(data) * each, np.uint8)
    for place in range(each):
        values[place::each] = data >> np.uint8(place * bits) & np.uint8((1 << bits) - 1)
    return values[:count]


def checksum(data: Buffer) -> int:
    """Return a checksum of 32 bits: the CRC-32 of the sums of rows of 8 KiB, and of the bytes after the last row.

    Sums of 64-bit words run at the speed of memory, and CRC-32 alone takes six times as long. Chance damage goes
    unnoticed once in 2^32 times. The checksum does not protect from people: encryption does.
    """
    words = len(data) // (_WORD * _ROW) * _ROW
    rows = np.frombuffer(data, "<u8", words).reshape(-1, _ROW)
    return zlib.crc32(data[words * _WORD :], zlib.crc32(np.add.reduce(rows, axis=1).tobytes()))
