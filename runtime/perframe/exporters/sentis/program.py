"""The content of a .sentis file: what its tables list, and its bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perframe import __version__
from perframe.errors import ModelError
from perframe.exporters.flatbuffer import FlatTable, Number, Vector, size_prefixed
from perframe.files.tensors import Buffer
from perframe.importers.sentis.file import ABSENT
from perframe.importers.sentis.kinds import DTYPES, ENUMERATIONS, KindArgument, kinds
from perframe.ir import Value
from perframe.tensor import Array, DataType

MAX_SEGMENT = 2**31 - 1 - 64  # bytes of weights behind one size, which is an int32
MOST_DIMS = 256  # open dims, which have a byte as their number
OLDEST_WRITTEN = 2
NAMED_DIMS, COUNTED_PIECES = 5, 6  # versions from which dims have names, and every Split its number of outputs


@dataclass
class Record:
    """A layer of the file: a kind, its inputs (None for an absent one) and outputs, and its arguments by name."""

    kind: str
    inputs: Sequence[Value | None]
    outputs: Sequence[Value]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The oldest version that has the kind with these arguments."""
        found = kinds()[self.kind]
        version = found.since
        for one in found.arguments:
            if one.since <= version or one.name not in self.arguments:
                continue
            if encoded(one, self.arguments[one.name]) != one.default:
                version = one.since
        if self.arguments.get("reduction") in ("max", "min"):
            version = max(version, 5)
        return version


def encoded(argument: KindArgument, value: Any) -> Any:
    """Return an argument as the file has it. Raises ModelError if it cannot."""
    names: Sequence[Any] | None = DTYPES if argument.code == "t" else ENUMERATIONS.get(argument.code)
    if names is not None:
        if value not in names:
            said = ", ".join(map(str, names[:2] if argument.code == "t" else names))
            raise ModelError(f"its {argument.name} is {value}, and .sentis files have {said}")
        return names.index(value)
    if argument.code in "iI":
        numbers = value if argument.code == "I" else [value]
        if any(not -(2**31) <= number < 2**31 for number in numbers):
            raise ModelError(f"its {argument.name} is {value}, and .sentis files have int32")
    return value


@dataclass
class SentisProgram:
    """A network that is to be written. Inputs come with their shapes; every record reads what was made before it."""

    inputs: Sequence[Value]
    outputs: Sequence[tuple[str, Value]]
    records: Sequence[Record]

    def buffers(self, version: int | None = None, most: int = MAX_SEGMENT) -> list[Buffer]:
        """Return the bytes of the file, in the oldest version that has all layers, or a given one.

        A segment of weights has at most `most` bytes.
        """
        return _FileWriter(self, version or self.version, most).buffers()

    @property
    def version(self) -> int:
        """The oldest version that has all layers, and the names of dims."""
        dims = (dim for value in self.inputs for dim in value.shape or ())
        named = NAMED_DIMS if any(isinstance(dim, str) for dim in dims) else OLDEST_WRITTEN
        return max([named, *(record.version for record in self.records)])


class _FileWriter:
    """Writes one file: each value gets a number in the order in which layers need it, as Unity's own files have it."""

    def __init__(self, program: SentisProgram, version: int, most: int) -> None:
        self.program, self.version, self.most = program, version, most
        self.values: list[FlatTable] = []
        self.numbers: dict[Value, int] = {}
        self.constants: dict[tuple[int, str], int] = {}  # by the array's id and dtype
        self.segments: list[list[Array]] = [[]]
        self.sizes = [0]  # of segments, in bytes
        self.operators: dict[str, int] = {}
        self.dims: dict[Any, int] = {}

    def buffers(self) -> list[Buffer]:
        """Return the bytes of the file."""
        for value in self.program.inputs:
            self.numbers[value] = self._tensor(value.dtype, {5: Number("b", 1)} | self._shape(value))
        chains = [self._chain(record) for record in self.program.records]
        sizes = self.sizes
        outputs = [(name, self.numbers[value]) for name, value in self.program.outputs]
        plan: dict[int, Any] = {
            0: f"perframe {__version__}",
            1: self.values,
            2: Vector("i", [self.numbers[value] for value in self.program.inputs]),
            3: [value.name for value in self.program.inputs],
            4: Vector("i", [number for _, number in outputs]),
            5: [name for name, _ in outputs],
            6: chains,
            7: [FlatTable({0: name}) for name in self.operators],
            8: FlatTable({0: Vector("i")}),
        }
        if self.version >= NAMED_DIMS:
            plan[9] = [dim if isinstance(dim, str) else "" for dim in self.dims]
        listed = [FlatTable({0: Number("Q", sum(sizes)), 1: Number("Q", size)}) for size in sizes]
        buffers: list[Buffer] = [
            size_prefixed(FlatTable({0: Number("I", self.version), 1: FlatTable(plan), 3: listed})),
        ]
        for size, arrays in zip(sizes, self.segments, strict=True):
            buffers += _weights(size, arrays)
        return buffers

    def _chain(self, record: Record) -> FlatTable:
        inputs = [ABSENT if value is None else self._read(value) for value in record.inputs]
        stored = kinds()[record.kind].stored(self.version)
        arguments = [self._argument(one, record.arguments.get(one.name)) for one in stored]
        if record.kind == "Split" and record.inputs[1] is not None and self.version < COUNTED_PIECES:
            arguments[-1] = self._value(2, FlatTable({}))
        for value in record.outputs:
            self.numbers[value] = self._tensor(value.dtype, {})
        operator = self.operators.setdefault(record.kind, len(self.operators))
        call = FlatTable({0: Number("i", operator), 1: Vector("i", arguments)})
        made = [self.numbers[value] for value in record.outputs]
        step = FlatTable({0: Number("B", 1), 1: call})
        return FlatTable({0: Vector("i", inputs), 1: Vector("i", made), 2: [step]})

    def _read(self, value: Value) -> int:
        """Return the number of a value. A constant gets one where a layer first reads it."""
        found = self.numbers.get(value)
        if found is not None:
            return found
        array = value.constant
        assert array is not None, value.name
        key = (id(array), str(array.dtype))
        if key not in self.constants:
            self.constants[key] = self._constant(array, value.name)
        self.numbers[value] = self.constants[key]
        return self.numbers[value]

    def _constant(self, array: Array, name: str) -> int:
        stored = as_stored(array, name)
        size = _padded(stored)
        if self.sizes[-1] + size > self.most and self.segments[-1]:
            self.segments.append([])
            self.sizes.append(0)
        place = {1: Number("i", size), 2: Vector("i", stored.shape), 3: Number("I", len(self.segments))}
        place[4] = Number("i", self.sizes[-1])
        self.segments[-1].append(stored)
        self.sizes[-1] += size
        return self._tensor(DataType.of(stored.dtype), place)

    def _tensor(self, dtype: DataType, fields: dict[int, Any]) -> int:
        kind = DTYPES.index(dtype) if dtype in DTYPES else DTYPES.index(DataType.INT32)
        return self._value(6, FlatTable({0: Number("b", kind)} | fields))

    def _shape(self, value: Value) -> dict[int, Any]:
        """Return the fields of a shape."""
        shape = value.shape
        if shape is None:
            raise ModelError(f"input {value.name!r} has no known rank: Unity cannot load it; declare its shape")
        if shape.is_static:
            return {5: Number("b", 0), 2: Vector("i", shape.to_shape())}
        return {6: [self._dim(dim, (value.name, axis)) for axis, dim in enumerate(shape)]}

    def _dim(self, dim: Any, place: tuple[str, int]) -> FlatTable:
        """Return a dim. Before names came, an unknown dim too had a number."""
        if isinstance(dim, int):
            return FlatTable({0: Number("B", 1), 1: FlatTable({0: Number("i", dim)})})
        if dim is None and self.version >= NAMED_DIMS:
            return FlatTable({})
        number = self.dims.setdefault(place if dim is None else dim, len(self.dims))
        if number >= MOST_DIMS:
            raise ModelError(f"the inputs have more than {MOST_DIMS} open dims: fix some with dims=")
        return FlatTable({0: Number("B", 2), 1: FlatTable({0: Number("B", number)})})

    def _argument(self, argument: KindArgument, value: Any) -> int:
        if value is None:
            if argument.code not in "IF" and argument.default is None:
                raise ModelError(f"its {argument.name} is missing")
            if argument.code in "IF":
                return self._value(0, None)
            value = argument.default
        else:
            value = encoded(argument, value)
        match argument.code:
            case "f":
                return self._value(3, FlatTable({0: Number("f", value)}))
            case "b":
                return self._value(4, FlatTable({0: Number("B", int(bool(value)))}))
            case "s":
                return self._value(7, FlatTable({0: value}))
            case "I":
                return self._value(8, FlatTable({0: Vector("i", list(value))}))
            case "F":
                return self._value(9, FlatTable({0: Vector("f", list(value))}))
        return self._value(2, FlatTable({0: Number("i", value)}))

    def _value(self, tag: int, content: FlatTable | None) -> int:
        self.values.append(FlatTable({0: Number("B", tag)} if content is None else {0: Number("B", tag), 1: content}))
        return len(self.values) - 1


def as_stored(array: Array, name: str) -> Array:
    """Return an array in a dtype of the file. Raises ModelError for integers beyond int32, and for other dtypes."""
    dtype = DataType.of(array.dtype)
    if dtype in (DataType.INT64, DataType.BOOL):
        small = array.astype(np.int32)
        if not np.array_equal(small, array):
            raise ModelError(f"its constant {name!r} has integers beyond int32, the only type of .sentis files")
        array, dtype = small, DataType.INT32
    if dtype not in DTYPES:
        raise ModelError(f"its constant {name!r} is {dtype}, and .sentis files have float32 and int32")
    if array.nbytes > MAX_SEGMENT:
        raise ModelError(f"its constant {name!r} has {array.nbytes} bytes, and .sentis files hold {MAX_SEGMENT}")
    return np.ascontiguousarray(array, dtype.numpy.newbyteorder("<")).reshape(array.shape)


def _padded(array: Array) -> int:
    """The bytes that a constant takes."""
    return array.nbytes + -array.nbytes % 4


def _weights(size: int, arrays: Sequence[Array]) -> list[Buffer]:
    """Return a segment's bytes. Its vector of bytes, the last item of its FlatBuffer, is too large to copy."""
    head = size_prefixed(FlatTable({0: Vector("B")}))
    struct.pack_into("<i", head, 0, len(head) - 4 + size)
    struct.pack_into("<I", head, len(head) - 4, size)
    found: list[Buffer] = [head]
    for array in arrays:
        found += [array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % 4)]
    return found
