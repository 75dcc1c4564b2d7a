"""The index of a TensorFlow checkpoint: the names, shapes and dtypes of its tensors.

It is a sorted table of LevelDB, without compression: https://github.com/google/leveldb/blob/main/doc/table_format.md.
Its values are messages of tensorflow/core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perframe.conversion.checkpoints import StoredTensor
from perframe.conversion.messages import TEXT, VARINT, fields, varint
from perframe.errors import ConversionError

TABLE_END = bytes.fromhex("57fb808b247547db")
MAX_INDEX = 256 << 20  # bytes
MAX_ENTRIES = 1_000_000
_FOOTER = 48  # bytes
_STRING = 7
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # ends the names of variables of an object
_DTYPES = {  # numbers of tensorflow/core/framework/types.proto
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    _STRING: "string",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    19: "float16",
}


def bundle_content(prefix: Path) -> list[StoredTensor]:
    """The tensors of a checkpoint, without texts such as its graph of objects. Raises ConversionError."""
    path = Path(f"{prefix}.index")
    try:
        if path.stat().st_size > MAX_INDEX:
            raise ValueError("it is too long")
        data = path.read_bytes()
        if data[-len(TABLE_END) :] != TABLE_END or len(data) < _FOOTER:
            raise ValueError("its end is missing")
        found = [_tensor(name, value) for name, value in _entries(data) if name]
    except (OSError, ValueError, IndexError) as error:
        raise ConversionError(f"{path}: the index of a TensorFlow checkpoint is damaged: {error}") from error
    return [tensor for tensor in found if tensor.dtype != "string"]


def _entries(data: bytes) -> Iterator[tuple[str, bytes]]:
    data, footer = data[:-_FOOTER], data[-_FOOTER:]
    at = varint(footer, varint(footer, 0)[1])[1]  # behind the place of the index of metadata
    for _, handle in _block(data, footer, at):
        for name, value in _block(data, handle, 0):
            yield name.decode("utf-8", "replace"), value


def _block(data: bytes, handle: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block, whose place and size are in a handle. A key omits the begin of the last one."""
    begin, at = varint(handle, at)
    size, _ = varint(handle, at)
    if begin + size + 5 > len(data) or size < 4:  # behind a block are a byte and a checksum
        raise ValueError("a block lies behind its end")
    if data[begin + size]:
        raise ValueError("a block is compressed")
    block, key = data[begin : begin + size], b""
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    at, count = 0, 0
    while at < end:
        shared, at = varint(block, at)
        length, at = varint(block, at)
        longer, at = varint(block, at)
        if shared > len(key) or at + length + longer > end or count > MAX_ENTRIES:
            raise ValueError("an entry lies behind its block")
        key = key[:shared] + block[at : at + length]
        yield key, block[at + length : at + length + longer]
        at, count = at + length + longer, count + 1


def _tensor(name: str, value: bytes) -> StoredTensor:
    dtype, shape = 0, list[int]()
    for field in fields(value, len(value)):
        if (field.number, field.wire) == (1, VARINT):
            dtype = varint(field.content, 0)[0]
        elif (field.number, field.wire) == (2, TEXT):
            for dim in fields(field.content, len(field.content)):
                sizes = {one.number: one.content for one in fields(dim.content, len(dim.content))}
                shape.append(varint(sizes[1], 0)[0] if 1 in sizes else 0)
    return StoredTensor(name.removesuffix(_VALUE), _DTYPES.get(dtype, f"dtype {dtype}"), tuple(shape))
