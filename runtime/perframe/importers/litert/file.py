"""Reading of LiteRT files: the flatbuffer becomes plain objects, with every length and index checked.

The classes of the `tflite` package read where a file tells them to. So this module alone calls them, in one pass, and
turns all that they raise into a ModelError. What a file makes it read never exceeds a few times the file's size.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import MissingExtraError, ModelError
from perframe.safety.records import dataclass

Array = NDArray[Any]

MAX_RANK = 8
_ROOM = 4096  # what a file may list beyond its own size
_SHARED = 4  # how often, on average, the vectors and names of a file may be shared


@dataclass(frozen=True)
class TensorQuantization:
    """x = (q - zero) * scale, for the whole tensor, or for each index of `axis` if there are several scales."""

    scale: NDArray[np.float32]
    zero: NDArray[np.int64]
    axis: int


@dataclass(frozen=True)
class Sparsity:
    """How the values of a sparse constant lie: for each dim in `order` its size, or (segments, indices)."""

    order: tuple[int, ...]
    block: tuple[int, ...]
    dims: tuple[int | tuple[Array, Array], ...]


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of a graph. An unknown dim is None. `data` is None unless the tensor is a constant."""

    name: str
    shape: tuple[int | None, ...]
    kind: str  # the name of its element type in the schema, such as "FLOAT32"
    data: NDArray[np.uint8] | None
    quantization: TensorQuantization | None
    sparsity: Sparsity | None
    is_variable: bool


@dataclass(frozen=True)
class Operation:
    """An operator of a graph, with the indices of its tensors (-1 for an absent one) and its options by name."""

    code: str  # its name in the schema; for a custom operator "CUSTOM"
    custom: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]
    custom_options: bytes

    @property
    def name(self) -> str:
        """The name by which people know it."""
        return self.custom or self.code


@dataclass(frozen=True)
class GraphInfo:
    """A subgraph."""

    name: str
    tensors: tuple[TensorInfo, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Signature:
    """What callers may run: a graph by its index, and the names of its inputs and outputs by tensor."""

    key: str
    graph: int
    input_names: Mapping[int, str]
    output_names: Mapping[int, str]


@dataclass(frozen=True)
class LiteRTFile:
    """A file: its graphs, the first of which is the model by default, and its signatures."""

    name: str
    graphs: tuple[GraphInfo, ...]
    signatures: tuple[Signature, ...]

    def signature(self, key: str | None) -> Signature:
        """The signature of this name; for None that of the first graph, or the graph itself. Raises ModelError."""
        if key is None:
            return next((one for one in self.signatures if one.graph == 0), Signature("", 0, {}, {}))
        for one in self.signatures:
            if one.key == key:
                return one
        known = ", ".join(repr(one.key) for one in self.signatures)
        raise ModelError(
            f"{self.name} has no signature {key!r}: " + (f"its signatures are {known}" if known else "it has none")
        )


def read(data: bytes, name: str) -> LiteRTFile:
    """Read a file. Raises ModelError if it is cut, damaged or hostile, and MissingExtraError without `tflite`."""
    schema = _schema(f"{name}: a LiteRT (TensorFlow Lite) model")
    try:
        return _FileReader(schema, data, name).file()
    except ModelError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
        raise ModelError(
            f"{name}: not a whole LiteRT file: a table or a vector lies outside of its {len(data)} bytes, or is "
            f"malformed ({error}); copy or convert the model again"
        ) from None


def builtin_operators() -> list[str]:
    """Return the names of the operators in the schema. Raises MissingExtraError without `tflite`."""
    return list(_names(_schema("the list of LiteRT's operators").BuiltinOperator).values())


def _schema(purpose: str) -> Any:
    try:
        import tflite
    except ImportError:
        raise MissingExtraError("tflite", "litert", purpose) from None
    return tflite


class _FileReader:
    """One pass over a file. `budget` is what it may still list."""

    def __init__(self, schema: Any, data: bytes, name: str) -> None:
        self.schema, self.data, self.name = schema, data, name
        self.bytes: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.budget = _SHARED * len(data) + _ROOM

    def file(self) -> LiteRTFile:
        model = self.schema.Model.GetRootAs(self.data, 0)
        if model.Version() != 3:
            raise ModelError(f"{self.name}: version {model.Version()} of the LiteRT format does not exist; 3 is known")
        codes = [self.code(model.OperatorCodes(i)) for i in self.indices(model.OperatorCodesLength())]
        buffers = [self.buffer(model.Buffers(i), i) for i in self.indices(model.BuffersLength())]
        graphs = [self.graph(model.Subgraphs(i), codes, buffers) for i in self.indices(model.SubgraphsLength())]
        if not graphs:
            raise ModelError(f"{self.name}: the file has no graph")
        signatures = [self.signature(model.SignatureDefs(i)) for i in self.indices(model.SignatureDefsLength())]
        return LiteRTFile(self.name, tuple(graphs), tuple(signatures))

    # --- the parts of a file ---

    def code(self, code: Any) -> tuple[str, str, int]:
        number = max(code.DeprecatedBuiltinCode(), code.BuiltinCode())
        name = _names(self.schema.BuiltinOperator).get(number, f"builtin operator {number}")
        return name, self.text(code.CustomCode()) if name == "CUSTOM" else "", code.Version()

    def buffer(self, buffer: Any, index: int) -> NDArray[np.uint8] | None:
        """Return a buffer's bytes, which may lie behind the flatbuffer; None if it has none."""
        begin, size = buffer.Offset(), buffer.Size()
        if begin > 1:
            if begin + size > len(self.data):
                raise ModelError(
                    f"{self.name}: buffer {index} has {size} bytes from {begin} on, and the file has {len(self.data)}: "
                    "it is truncated"
                )
            return self.bytes[begin : begin + size]
        return self.vector(buffer, "Data", np.uint8) if buffer.DataLength() else None

    def graph(self, graph: Any, codes: list[tuple[str, str, int]], buffers: list[Any]) -> GraphInfo:
        tensors = tuple(self.tensor(graph.Tensors(i), buffers) for i in self.indices(graph.TensorsLength()))
        operations = tuple(
            self.operation(graph.Operators(i), codes, len(tensors)) for i in self.indices(graph.OperatorsLength())
        )
        inputs, outputs = (self.tensor_indices(graph, which, len(tensors), False) for which in ("Inputs", "Outputs"))
        return GraphInfo(self.text(graph.Name()), tensors, inputs, outputs, operations)

    def tensor(self, tensor: Any, buffers: list[Any]) -> TensorInfo:
        name = self.text(tensor.Name())
        shape = self.numbers(tensor, "Shape")
        signature = self.numbers(tensor, "ShapeSignature") or shape
        if len(signature) != len(shape) or len(shape) > MAX_RANK:
            raise ModelError(f"{self.name}: tensor {name!r} has the shape {list(shape)} and the signature {signature}")
        dims = tuple(None if wanted == -1 else dim for dim, wanted in zip(shape, signature, strict=True))
        if any(dim is not None and dim < 0 for dim in dims):
            raise ModelError(f"{self.name}: tensor {name!r} has a negative dim: {list(shape)}")
        kind = _names(self.schema.TensorType).get(tensor.Type(), f"type {tensor.Type()}")
        if not tensor.Buffer() < max(len(buffers), 1):
            raise ModelError(f"{self.name}: tensor {name!r} lies in buffer {tensor.Buffer()} of {len(buffers)}")
        data = buffers[tensor.Buffer()] if buffers and tensor.Buffer() else None
        quantization = tensor.Quantization()
        scales = None if quantization is None else self.quantization(quantization, name, dims)
        sparsity = None if tensor.Sparsity() is None else self.sparsity(tensor.Sparsity(), name, dims)
        return TensorInfo(name, dims, kind, data, scales, sparsity, bool(tensor.IsVariable()))

    def quantization(self, table: Any, name: str, dims: tuple[int | None, ...]) -> TensorQuantization | None:
        if not table.ScaleLength():
            return None
        scale = self.vector(table, "Scale", np.float32)
        zero = self.vector(table, "ZeroPoint", np.int64) if table.ZeroPointLength() else np.zeros(1, np.int64)
        axis = table.QuantizedDimension()
        if zero.size not in (1, scale.size) or (scale.size > 1 and not 0 <= axis < len(dims)):
            raise ModelError(
                f"{self.name}: tensor {name!r} of shape {list(dims)} has {scale.size} scales and {zero.size} zero "
                f"points for axis {axis}"
            )
        if scale.size > 1 and dims[axis] != scale.size:
            raise ModelError(
                f"{self.name}: tensor {name!r} of shape {list(dims)} has {scale.size} scales for axis {axis}"
            )
        return TensorQuantization(scale.copy(), np.broadcast_to(zero, scale.shape).copy(), axis)

    def sparsity(self, table: Any, name: str, dims: tuple[int | None, ...]) -> Sparsity:
        order, block = self.numbers(table, "TraversalOrder"), self.numbers(table, "BlockMap")
        parts: list[int | tuple[Array, Array]] = []
        for index in self.indices(table.DimMetadataLength()):
            part = table.DimMetadata(index)
            if part.Format() == self.schema.DimensionType.DENSE:
                parts.append(part.DenseSize())
            else:
                segments = self.union(part.ArraySegmentsType(), part.ArraySegments())
                parts.append((segments, self.union(part.ArrayIndicesType(), part.ArrayIndices())))
        if sorted(order) != list(range(len(dims) + len(block))) or len(parts) != len(order):
            raise ModelError(f"{self.name}: sparse tensor {name!r} of shape {list(dims)} has the order {order}")
        return Sparsity(order, block, tuple(parts))

    def union(self, kind: int, table: Any) -> Array:
        """Return a vector of int32, uint16 or uint8 in a union."""
        name, dtype = {1: ("Int32Vector", "<i4"), 2: ("Uint16Vector", "<u2"), 3: ("Uint8Vector", "u1")}[kind]
        found = getattr(self.schema, name)()
        found.Init(table.Bytes, table.Pos)
        return self.vector(found, "Values", dtype).astype(np.int64)

    def operation(self, operator: Any, codes: list[tuple[str, str, int]], tensors: int) -> Operation:
        if not operator.OpcodeIndex() < len(codes):
            raise ModelError(f"{self.name}: an operator has the code {operator.OpcodeIndex()} of {len(codes)}")
        code, custom, version = codes[operator.OpcodeIndex()]
        inputs, outputs = (self.tensor_indices(operator, which, tensors, True) for which in ("Inputs", "Outputs"))
        options: dict[str, Any] = {}
        for kinds, kind, table in (
            (self.schema.BuiltinOptions, operator.BuiltinOptionsType(), operator.BuiltinOptions()),
            (self.schema.BuiltinOptions2, operator.BuiltinOptions2Type(), operator.BuiltinOptions2()),
        ):
            found = getattr(self.schema, _names(kinds).get(kind, ""), None)
            if kind and table is not None and found is not None:
                decoded = found()
                decoded.Init(table.Bytes, table.Pos)
                options |= self.options(decoded)
        data = b""
        if operator.CustomOptionsLength():
            data = self.vector(operator, "CustomOptions", np.uint8).tobytes()
        return Operation(code, custom, version, inputs, outputs, options, data)

    def options(self, table: Any) -> dict[str, Any]:
        """Return the fields of a table of options by name."""
        found: dict[str, Any] = {}
        kind: Any = type(table)
        for field, is_vector in _fields(kind):
            if is_vector:
                found[field] = self.numbers(table, field)
                continue
            value = getattr(table, field)()
            if isinstance(value, bytes):
                value = self.text(value)
            if value is None or isinstance(value, (bool, int, float, str)):
                found[field] = value
        return found

    def signature(self, signature: Any) -> Signature:
        given, made = (
            {entry(i).TensorIndex(): self.text(entry(i).Name()) for i in self.indices(length)}
            for entry, length in (
                (signature.Inputs, signature.InputsLength()),
                (signature.Outputs, signature.OutputsLength()),
            )
        )
        return Signature(self.text(signature.SignatureKey()), signature.SubgraphIndex(), given, made)

    # --- vectors and texts, whose lengths are checked ---

    def indices(self, length: int, size: int = 4) -> range:
        """Return the indices of a vector. Raises ModelError if the file is too small for it."""
        self.budget -= length * size
        if length < 0 or self.budget < 0:
            raise ModelError(
                f"{self.name}: the vectors and names in the file are longer than its {len(self.data)} bytes: it is "
                "truncated or damaged"
            )
        return range(length)

    def vector(self, table: Any, field: str, dtype: Any) -> Array:
        """Return a vector of numbers, over the file's bytes."""
        length = getattr(table, f"{field}Length")()
        self.indices(length, np.dtype(dtype).itemsize)
        found = getattr(table, f"{field}AsNumpy")() if length else np.empty(0, dtype)
        if not isinstance(found, np.ndarray) or found.size != length:
            raise ModelError(f"{self.name}: the vector {field!r} of {length} entries lies outside of the file")
        return found.view(dtype)

    def numbers(self, table: Any, field: str) -> tuple[Any, ...]:
        """Return a short vector as a tuple."""
        length = getattr(table, f"{field}Length")()
        self.indices(length)
        found = getattr(table, f"{field}AsNumpy")() if length else ()
        return tuple(found.tolist()) if isinstance(found, np.ndarray) else ()

    def tensor_indices(self, table: Any, field: str, tensors: int, optional: bool) -> tuple[int, ...]:
        found = self.numbers(table, field)
        if any(not -optional <= index < tensors for index in found):
            raise ModelError(f"{self.name}: {field.lower()} {found[:16]} lie outside of a graph of {tensors} tensors")
        return found

    def text(self, value: bytes | None) -> str:
        self.indices(len(value or b""), 1)
        return (value or b"").decode("utf-8", "replace")


@functools.cache
def _names(kinds: Any) -> dict[int, str]:
    """Return the names of an enumeration by number."""
    return {number: name for name, number in vars(kinds).items() if isinstance(number, int)}


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a table as (name, whether it is a vector)."""
    methods = [name for name, method in vars(kind).items() if callable(method) and name[0].isupper()]
    vectors = {name.removesuffix("Length") for name in methods if name.endswith("Length")}
    own = (name for name in methods if not name.endswith(("Length", "IsNone", "AsNumpy")))
    return tuple((name, name in vectors) for name in own if name != "Init")


def dense(values: Array, sparsity: Sparsity, shape: tuple[int, ...], most: int) -> Array:
    """Return a sparse constant as an array with its zeros. Raises ValueError if its parts do not fit."""
    rank, order = len(shape), sparsity.order
    sizes = list(shape)
    for index, axis in enumerate(sparsity.block):
        dim = sparsity.dims[order.index(rank + index)]
        block = dim if isinstance(dim, int) else 0
        if not 0 <= axis < rank or block < 1 or sizes[axis] % block:
            raise ValueError(f"blocks of {block} on axis {axis} of {shape}")
        sizes[axis] //= block
        sizes.append(block)
    if math.prod(sizes) > most or math.prod(sizes) != math.prod(shape):
        raise ValueError(f"{math.prod(sizes)} values for the shape {shape}")
    nodes = np.zeros((1, 0), np.int64)  # the coordinates of each branch so far, in the order of the traversal
    at = np.zeros(1, np.int64)  # the position of each branch in its level
    for axis, dim in zip(order, sparsity.dims, strict=True):
        size = sizes[axis]
        if isinstance(dim, int):
            if dim != size or len(nodes) * size > most:
                raise ValueError(f"{dim} entries in an axis of {size}")
            here = np.tile(np.arange(size), len(nodes))
            nodes, at = np.repeat(nodes, size, 0), np.repeat(at, size) * size + here
        else:
            segments, indices = dim
            begin, end = segments[at], segments[at + 1]
            counts = end - begin
            if (counts < 0).any() or end.max(initial=0) > indices.size or counts.sum() > most:
                raise ValueError("segments outside of their indices")
            if ((indices < 0) | (indices >= size)).any():
                raise ValueError(f"indices outside of an axis of {size}")
            first = np.cumsum(counts) - counts
            at = np.arange(counts.sum()) - np.repeat(first, counts) + np.repeat(begin, counts)
            nodes, here = np.repeat(nodes, counts, 0), indices[at]
        nodes = np.concatenate([nodes, here[:, None]], 1)
    if at.size and (at.min() < 0 or at.max() >= values.size):
        raise ValueError(f"{values.size} values for {at.size} positions")
    made = np.zeros(sizes, values.dtype)
    made[tuple(nodes[:, order.index(axis)] for axis in range(len(sizes)))] = values[at]
    for index, axis in reversed(list(enumerate(sparsity.block))):
        made = np.moveaxis(made, rank + index, axis + 1)
        joined = [*made.shape[:axis], made.shape[axis] * made.shape[axis + 1], *made.shape[axis + 2 :]]
        made = made.reshape(joined)
    return np.ascontiguousarray(made)
