"""Reading of .sentis files: the FlatBuffers become plain objects, with every length and index checked.

A file is a size-prefixed FlatBuffer that describes the network, and one for each segment of its weights.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.importers.flatbuffer import FlatBuffer, TableReader
from perframe.importers.sentis.kinds import DTYPES, NEWEST, OLDEST
from perframe.ir.sizes.partial import Dim, DynamicTensorShape
from perframe.safety.records import dataclass
from perframe.tensor import Array, DataType
from perframe.tensor.checks import too_large

MAX_RANK = 8
ABSENT = -1  # an optional input
_SEGMENTS = 1024
_UNION = ("none", "null", "int", "float", "bool", "byte", "tensor", "text", "ints", "floats", "bools")

Value = None | bool | int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[bool, ...]


@dataclass(frozen=True)
class SentisTensor:
    """A tensor. `shape` is None if its rank is unknown. A constant lies in a segment, from `offset` on."""

    type_number: int
    shape: tuple[Dim, ...] | None
    segment: int | None
    offset: int
    length: int  # bytes, which may be more than the values

    def dtype(self, where: str) -> DataType:
        """Return the dtype. Raises ModelError if there is no such number."""
        if not 0 <= self.type_number < len(DTYPES):
            raise ModelError(f"{where} is of type {self.type_number}, and .sentis files have types 0 to 3")
        return DTYPES[self.type_number]


@dataclass(frozen=True)
class SentisOperation:
    """A layer of the file, with the numbers of its inputs (ABSENT for one that is left out) and outputs."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class SentisFile:
    """A file. Inputs and outputs are pairs of a name and a number of `values`."""

    name: str
    version: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    values: tuple[SentisTensor | Value, ...]
    operations: tuple[SentisOperation, ...]
    segments: tuple[NDArray[np.uint8], ...]

    def tensor(self, number: int, where: str) -> SentisTensor:
        """Return a tensor. Raises ModelError if the number is not that of a tensor."""
        found = self.values[number] if 0 <= number < len(self.values) else None
        if not isinstance(found, SentisTensor):
            raise ModelError(f"{where} names value {number} of {len(self.values)}, which is not a tensor")
        return found

    def constant(self, number: int) -> Array | None:
        """Return a copy of a constant; None for another tensor. Raises ModelError if its bytes do not fit."""
        where = f"{self.name}: constant {number}"
        info = self.tensor(number, where)
        if info.segment is None:
            return None
        dtype, shape = info.dtype(where), [dim for dim in info.shape or () if isinstance(dim, int)]
        if info.shape is None or len(shape) != len(info.shape) or min(shape, default=0) < 0:
            raise ModelError(f"{where} has no whole shape: {info.shape}")
        reason = too_large(shape, dtype)
        if reason:
            raise ModelError(f"{where} is too large: {reason}")
        if info.segment >= len(self.segments):
            raise ModelError(f"{where} lies in segment {info.segment} of {len(self.segments)}")
        size, segment = math.prod(shape) * dtype.numpy.itemsize, self.segments[info.segment]
        if not 0 <= size <= info.length or not 0 <= info.offset <= len(segment) - info.length:
            raise ModelError(
                f"{where} of shape {tuple(shape)} and dtype {dtype} takes {size} bytes; it has {info.length} from "
                f"{info.offset} on, of the {len(segment)} in its segment"
            )
        stored = np.frombuffer(segment[info.offset : info.offset + size].data, dtype.numpy.newbyteorder("<"))
        return stored.astype(dtype.numpy).reshape(shape)


def read(data: bytes, name: str) -> SentisFile:
    """Read a file. Raises ModelError if it is cut, damaged, hostile, or of an unknown version."""
    try:
        return _read(memoryview(data), name)
    except (struct.error, ArithmeticError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{name}: the .sentis file is damaged ({error}); copy it again") from None


def _read(data: memoryview, name: str) -> SentisFile:
    program = FlatBuffer(_part(data, 0, name, "its description"), f"{name}: the description of the .sentis file")
    root = program.root()
    version = root.number(0, "I")
    if not OLDEST <= version <= NEWEST:
        raise ModelError(
            f"{name}: version {version} of the .sentis format is not known: perframe reads {OLDEST} to {NEWEST}. Load "
            "the ONNX file that it was made from"
        )
    at, segments = 4 + len(program.data), list[NDArray[np.uint8]]()
    for _ in root.tables(3):
        if len(segments) == _SEGMENTS:
            raise ModelError(f"{name}: the .sentis file has more than {_SEGMENTS} segments of weights: it is damaged")
        part = _part(data, at, name, f"segment {len(segments)} of its weights")
        found = FlatBuffer(part, f"{name}: segment {len(segments)} of the .sentis file").root().numbers(0, "u1")
        segments.append(np.empty(0, np.uint8) if found is None else found)
        at += 4 + len(part)
    if at != len(data):
        raise ModelError(f"{name}: {len(data) - at} bytes follow the weights of the .sentis file: it is damaged")
    plan = root.needed(1, "the plan")
    dims = plan.texts(9)
    values = tuple(_value(table, dims, name) for table in plan.tables(1))
    kinds = [table.text(0) for table in plan.tables(7)]
    operations = [_operation(chain, kinds, values, name) for chain in plan.tables(6)]
    return SentisFile(
        name,
        version,
        _named(plan, 2, 3, name, "inputs"),
        _named(plan, 4, 5, name, "outputs"),
        values,
        tuple(operation for operation in operations if operation is not None),
        tuple(segments),
    )


def _part(data: memoryview, at: int, name: str, what: str) -> memoryview:
    """Return one of the file's FlatBuffers."""
    size = int.from_bytes(data[at : at + 4], "little", signed=True)
    if at + 4 > len(data) or not 8 <= size <= len(data) - at - 4:
        raise ModelError(
            f"{name}: the .sentis file is truncated or damaged: {what} is cut at {len(data)} bytes; copy it again"
        )
    return data[at + 4 : at + 4 + size]


def _named(plan: TableReader, numbers: int, texts: int, name: str, what: str) -> tuple[tuple[str, int], ...]:
    found, names = _numbers(plan, numbers), plan.texts(texts)
    if len(found) != len(names):
        raise ModelError(f"{name}: the .sentis file has {len(found)} {what} and {len(names)} names of them")
    if "" in names:
        raise ModelError(f"{name}: one of the .sentis file's {what} has no name")
    return tuple(zip(names, found, strict=True))


def _numbers(table: TableReader, slot: int) -> tuple[int, ...]:
    found = table.numbers(slot, "<i4")
    return () if found is None else tuple(found.tolist())


def _operation(
    chain: TableReader, kinds: Sequence[str], values: Sequence[SentisTensor | Value], name: str
) -> SentisOperation | None:
    """Return a chain's layer; None if the chain only names a constant that is an output."""
    steps = list(chain.tables(2))
    if len(steps) != 1:
        raise ModelError(f"{name}: a layer of the .sentis file has {len(steps)} instructions: it is damaged")
    if steps[0].number(0, "B") == 0:
        return None
    call = steps[0].needed(1, "the call of a layer")
    kind = call.number(0, "i")
    if not 0 <= kind < len(kinds):
        raise ModelError(f"{name}: a layer is of kind {kind} of the {len(kinds)} in the .sentis file")
    arguments = []
    for number in _numbers(call, 1):
        value = values[number] if 0 <= number < len(values) else None
        if not 0 <= number < len(values) or isinstance(value, SentisTensor):
            raise ModelError(
                f"{name}: an argument of a layer {kinds[kind]} is value {number}, which is not an argument"
            )
        arguments.append(value)
    return SentisOperation(kinds[kind], _numbers(chain, 0), _numbers(chain, 1), tuple(arguments))


def _value(table: TableReader, dims: Sequence[str], name: str) -> SentisTensor | Value:
    tag = table.number(0, "B")
    if tag >= len(_UNION):
        raise ModelError(f"{name}: a value of the .sentis file has the unknown type {tag}")
    kind = _UNION[tag]
    if kind in ("none", "null"):
        return None
    body = table.needed(1, f"the {kind} of a value")
    match kind:
        case "tensor":
            return _tensor(body, dims, name)
        case "int":
            return int(body.number(0, "i"))
        case "float":
            return float(body.number(0, "f", 0.0))
        case "bool":
            return bool(body.number(0, "B"))
        case "byte":
            return int(body.number(0, "B"))
        case "text":
            return body.text(0)
    found = body.numbers(0, {"ints": "<i4", "floats": "<f4", "bools": "?"}[kind])
    return () if found is None else tuple(found.tolist())


def _tensor(table: TableReader, dims: Sequence[str], name: str) -> SentisTensor:
    segment = table.number(3, "I")
    return SentisTensor(
        table.number(0, "b"),
        _shape(table, dims, name),
        segment - 1 if segment else None,
        table.number(4, "i"),
        table.number(1, "i"),
    )


def _shape(table: TableReader, dims: Sequence[str], name: str) -> tuple[Dim, ...] | None:
    if table.number(5, "b") == 0:
        fixed = table.numbers(2, "<i4")
        shape: list[Dim] | None = None if fixed is None else fixed.tolist()
    else:
        shape = [_dim(dim, dims, name) for dim in table.tables(6)]
        if not shape or table.number(7, "B"):  # Unity forgets to say that an input's rank is unknown
            return None
    if shape is not None and (len(shape) > MAX_RANK or any(isinstance(dim, int) and dim < 0 for dim in shape)):
        raise ModelError(f"{name}: a tensor of the .sentis file has the shape {DynamicTensorShape(shape)}")
    return None if shape is None else tuple(shape)


def _dim(table: TableReader, dims: Sequence[str], name: str) -> Dim:
    """Return a dim. Before version 5 dims with a name have only a number."""
    tag = table.number(0, "B")
    if tag == 0:
        return None
    number = table.needed(1, "the size of a dim").number(0, "i" if tag == 1 else "B")
    if tag > 2:
        raise ModelError(f"{name}: a dim of the .sentis file has the unknown type {tag}")
    if tag == 1:
        return int(number)
    return dims[number] or f"d{number}" if number < len(dims) else f"d{number}"
