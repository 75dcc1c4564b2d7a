"""The weights of an ONNX file, read one by one into arrays of their own.

If a file is parsed as a whole, its weights are in memory three times: as the file, in the parsed message, and as
arrays. So large weights are left out of the bytes that are parsed. A file is a nest of protobuf messages; this module
walks only the path to the initializers (https://protobuf.dev/programming-guides/encoding, and the field numbers of
onnx.proto).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perframe.importers.filling import fill
from perframe.importers.reads import current
from perframe.safety.records import dataclass
from perframe.tensor.background import take_turns

LARGE = 4096  # bytes; smaller weights are parsed with the rest
_GRAPH, _NODE, _INITIALIZER = 7, 1, 5  # fields of a model and of a graph
_DIMS, _DATA_TYPE, _RAW_DATA, _DATA_LOCATION = 1, 2, 9, 14  # of a tensor
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5  # encodings of a field

_DTYPES = {1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "?", 10: "<f2", 11: "<f8"}
_DTYPES |= {12: "<u4", 13: "<u8"}  # by ONNX's numbers
_BOOL = 9
# where small files list numbers, and the dtype of the list; unsigned numbers may be negative there
_LISTS = {1: ("float_data", "f4"), 6: ("int32_data", "i4"), 7: ("int64_data", "i8"), 11: ("double_data", "f8")}
_LISTS |= dict.fromkeys((2, 3, 4, 5, 9), ("int32_data", "i4"))
ITEM_BYTES = {number: np.dtype(dtype).itemsize for number, dtype in _DTYPES.items()}
_MAX_RANK = 64  # NumPy's
_MAX_VARINT = 10  # bytes


class _Damaged(Exception):
    """The file does not parse here. Protobuf then parses it and gives the reason."""


@dataclass
class _Tensor:
    """The facts needed to read an initializer's weights, and the rest of its message. Without weights `size` is -1."""

    dims: list[int] = field(default_factory=list)
    data_type: int = 0
    at: int = 0
    size: int = -1
    rest: bytearray = field(default_factory=bytearray)


class Split(NamedTuple):
    """A file without its large weights, these by the index of their initializer, and the number of the graph's nodes.

    `size` is that of the whole file. A file that does not parse is kept whole, and its `nodes` are -1.
    """

    data: bytes
    weights: dict[int, NDArray[Any]]
    nodes: int
    size: int


def split(file: IO[bytes], size: int) -> Split:
    """Read a file, and its large weights apart."""
    weights: dict[int, NDArray[Any]] = {}
    try:
        data, nodes = _model(file, size, weights)
    except _Damaged:
        file.seek(0)
        return Split(file.read(), {}, -1, size)
    return Split(data, weights, nodes, size)


def read_array(file: IO[bytes], at: int, size: int, data_type: int, dims: Sequence[int]) -> NDArray[Any] | None:
    """Read a read-only array of `size` bytes; None if it has another size, or an unusual element type. A large one is
    filled later, within a block of `filling`.
    """
    take_turns()
    dtype = _DTYPES.get(data_type)
    if dtype is None or len(dims) > _MAX_RANK or any(dim < 0 for dim in dims):
        return None
    if math.prod(dims) * np.dtype(dtype).itemsize != size:
        return None
    array = np.empty(math.prod(dims), dtype)
    if not fill(file, at, array.view(np.uint8).data):
        return None
    array.flags.writeable = False
    if (noting := current()) is not None:
        noting.filled(file, array, at)
    return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(dims)


def plain_array(data: bytes, data_type: int, dims: Sequence[int]) -> NDArray[Any] | None:
    """Return the raw data of a tensor as a read-only array; None if it has another size, or an unusual element type."""
    dtype = _DTYPES.get(data_type)
    if not data or dtype is None or len(dims) > _MAX_RANK or math.prod(dims) * ITEM_BYTES[data_type] != len(data):
        return None
    array = np.frombuffer(data, dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(dims)


def listed_array(tensor: Any, data_type: int, dims: Sequence[int]) -> NDArray[Any] | None:
    """Return the listed numbers of a tensor as an array; None if their count is wrong, or the element type unusual."""
    name, stored = _LISTS.get(data_type, ("", ""))
    numbers = getattr(tensor, name, ())
    if not name or len(dims) > _MAX_RANK or math.prod(dims) != len(numbers):
        return None
    try:
        array = np.array(numbers, stored)
    except OverflowError:
        return None
    if data_type == _BOOL and ((array < 0) | (array > 1)).any():
        return None
    return array.astype(_DTYPES[data_type]).reshape(dims)


def _model(file: IO[bytes], size: int, weights: dict[int, NDArray[Any]]) -> tuple[bytes, int]:
    kept = bytearray()
    graphs = nodes = 0
    for number, written, at, whole in _fields(file, 0, size):
        if number == _GRAPH and written == _LENGTH:
            graphs += 1
            begin, end = at
            graph, nodes = _graph(file, begin, end, weights)
            kept += _message(_GRAPH, graph)
        else:
            kept += _copied(file, *whole)
    if graphs != 1:  # parsing would join them
        raise _Damaged
    return bytes(kept), nodes


def _graph(file: IO[bytes], begin: int, end: int, weights: dict[int, NDArray[Any]]) -> tuple[bytes, int]:
    kept = bytearray()
    nodes, count, copied = 0, 0, begin  # the initializers, and the end of the bytes that are kept or left out so far
    for number, written, at, whole in _fields(file, begin, end):
        nodes += number == _NODE
        if number != _INITIALIZER or written != _LENGTH:
            continue
        if at[1] - at[0] >= LARGE:
            tensor = _tensor(file, *at)
            array = read_array(file, tensor.at, tensor.size, tensor.data_type, tensor.dims)
            if array is not None:
                weights[count] = array
                kept += _copied(file, copied, whole[0]) + _message(_INITIALIZER, tensor.rest)
                copied = whole[1]
        count += 1
    return bytes(kept + _copied(file, copied, end)), nodes


def _tensor(file: IO[bytes], begin: int, end: int) -> _Tensor:
    tensor = _Tensor()
    for number, written, at, whole in _fields(file, begin, end):
        if number == _RAW_DATA and written == _LENGTH:
            tensor.at, tensor.size = at[0], at[1] - at[0]
            continue
        tensor.rest += _copied(file, *whole)
        if number == _DATA_LOCATION and at[0]:  # the weights are in another file, even if there is raw data here
            return _Tensor()
        if number == _DATA_TYPE and written == _VARINT:
            tensor.data_type = at[0]
        elif number == _DIMS and written == _VARINT:
            tensor.dims.append(at[0])
        elif number == _DIMS and written == _LENGTH:
            file.seek(at[0])
            packed, position = file.read(min(at[1] - at[0], _MAX_RANK * _MAX_VARINT)), 0
            while position < len(packed) and len(tensor.dims) <= _MAX_RANK:
                dim, position = _decoded(packed, position)
                tensor.dims.append(dim)
    return tensor


def _fields(file: IO[bytes], begin: int, end: int) -> Iterator[tuple[int, int, tuple[int, int], tuple[int, int]]]:
    """Yield (number, encoding, range of its content, range of the field) of each field of a message, as bytes of the
    file. A varint has (value, 0) in place of the content.
    """
    at = begin
    while at < end:
        file.seek(at)
        first, head = at, file.read(2 * _MAX_VARINT)
        key, used = _decoded(head)
        number, written = key >> 3, key & 7
        if written == _VARINT:
            value, used = _decoded(head, used)
            at += used
            content = (value, 0)
        else:
            if written == _LENGTH:
                length, used = _decoded(head, used)
            elif written in (_FIXED64, _FIXED32):
                length = 8 if written == _FIXED64 else 4
            else:
                raise _Damaged
            content = (at + used, at + used + length)
            at = content[1]
        if at > end:
            raise _Damaged
        yield number, written, content, (first, at)


def _copied(file: IO[bytes], begin: int, end: int) -> bytes:
    """Return a range of the file."""
    file.seek(begin)
    data = file.read(end - begin)
    if len(data) != end - begin:
        raise _Damaged
    return data


def _message(number: int, content: bytes | bytearray) -> bytes:
    """Return a field that holds a message."""
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _decoded(data: bytes, at: int = 0) -> tuple[int, int]:
    """Return a number in some bytes, and the position after it."""
    value = 0
    for count, byte in enumerate(data[at : at + _MAX_VARINT]):
        value |= (byte & 127) << 7 * count
        if byte < 128:
            return value, at + count + 1
    raise _Damaged


def _varint(value: int) -> bytes:
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    text.append(value)
    return bytes(text)
