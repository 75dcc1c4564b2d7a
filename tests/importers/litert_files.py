"""LiteRT files that tests write themselves, and what LiteRT's own interpreter computes from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

Array = np.ndarray[Any, Any]
DTYPES = ("f4", "f2", "i4", "u1", "i8", "O", "?", "i2", "c8", "i1", "f8")  # by LiteRT's numbers
KINDS = {np.dtype(dtype).name: number for number, dtype in enumerate(DTYPES)}


def scales(scale: Any, zero: Any = 0, axis: int = 0) -> schema.QuantizationParametersT:
    """How a tensor is quantized: for a whole tensor, or for the indices of an axis."""
    made = schema.QuantizationParametersT()
    made.scale, made.zeroPoint = np.atleast_1d(np.float32(scale)), np.atleast_1d(np.int64(zero))
    made.zeroPoint = np.broadcast_to(made.zeroPoint, made.scale.shape)
    made.quantizedDimension = axis
    return made


@dataclass
class Graph:
    """A subgraph under construction. Values are the indices of tensors."""

    file: File
    tensors: list[Any] = field(default_factory=list)
    operators: list[Any] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(
        self, name: str, shape: Sequence[int], dtype: Any = "float32", quantized: Any = None, buffer: int = 0
    ) -> int:
        made = schema.TensorT()
        made.name, made.type, made.buffer, made.quantization = name, KINDS[np.dtype(dtype).name], buffer, quantized
        made.shape, made.hasRank = np.array([abs(dim) for dim in shape], np.int32), True
        if -1 in shape:
            made.shapeSignature = np.array(shape, np.int32)
        self.tensors.append(made)
        return len(self.tensors) - 1

    def input(self, name: str, shape: Sequence[int], dtype: Any = "float32", quantized: Any = None) -> int:
        self.inputs.append(self.tensor(name, shape, dtype, quantized))
        return self.inputs[-1]

    def constant(self, value: Any, quantized: Any = None, name: str = "") -> int:
        value = np.asarray(value)
        buffer = self.file.buffer(value.tobytes())
        return self.tensor(name or f"constant_{len(self.tensors)}", value.shape, value.dtype, quantized, buffer)

    def op(
        self,
        code: str,
        inputs: Sequence[int],
        options: Mapping[str, Any] | None = None,
        outputs: Sequence[Any] = ("float32",),
        quantized: Any = None,
        kind: str = "",
        custom: bytes = b"",
        shapes: Sequence[Sequence[int]] = (),
    ) -> Any:
        """Add an operator. Returns its output, or a list if it has several. `kind` names the class of its options."""
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs = self.file.code(code), list(inputs)
        listed = [
            self.tensor(f"{code}_{len(self.operators)}_{at}", shapes[at] if shapes else (), dtype, quantized)
            for at, dtype in enumerate(outputs)
        ]
        made.outputs = listed
        if kind:
            self._set(made, kind, options or {})
        if custom:
            made.customOptions = np.frombuffer(custom, np.uint8)
        self.operators.append(made)
        return listed[0] if len(listed) == 1 else listed

    def _set(self, made: Any, kind: str, options: Mapping[str, Any]) -> None:
        table = getattr(schema, f"{kind}T")()
        for name, value in options.items():
            assert hasattr(table, name), f"{kind} has no {name}"
            setattr(table, name, value)
        if hasattr(schema.BuiltinOptions, kind):
            made.builtinOptionsType, made.builtinOptions = getattr(schema.BuiltinOptions, kind), table
        else:
            made.builtinOptions2Type, made.builtinOptions2 = getattr(schema.BuiltinOptions2, kind), table


@dataclass
class File:
    """A file under construction; `graph` is its first graph."""

    graphs: list[Graph] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    codes: list[str] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)  # of operators whose first version is not 1
    signature: tuple[Mapping[str, int], Mapping[str, int]] | None = None
    signatures: dict[str, tuple[int, Mapping[str, int], Mapping[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = self.subgraph()

    def subgraph(self) -> Graph:
        self.graphs.append(Graph(self))
        return self.graphs[-1]

    def buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def code(self, name: str) -> int:
        if name not in self.codes:
            self.codes.append(name)
        return self.codes.index(name)

    def model(self) -> Any:
        model = schema.ModelT()
        model.version, model.description = 3, "a test"
        model.buffers, model.operatorCodes, model.subgraphs = [], [], []
        for data in self.buffers:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data, np.uint8) if data else None
            model.buffers.append(buffer)
        for name in self.codes:
            code = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
            code.deprecatedBuiltinCode, code.builtinCode, code.version = (
                min(number, 127),
                number,
                self.versions.get(name, 1),
            )
            code.customCode = name if number == schema.BuiltinOperator.CUSTOM else None
            model.operatorCodes.append(code)
        for graph in self.graphs:
            made = schema.SubGraphT()
            made.tensors, made.operators = graph.tensors, graph.operators
            made.inputs, made.outputs = graph.inputs, graph.outputs
            model.subgraphs.append(made)
        signatures = dict(self.signatures)
        if self.signature is not None:
            signatures["serving_default"] = (0, *self.signature)
        model.signatureDefs = [] if signatures else None
        for key, (graph_index, *sides) in signatures.items():
            signature = schema.SignatureDefT()
            signature.signatureKey, signature.subgraphIndex = key, graph_index
            signature.inputs, signature.outputs = (
                [_map(name, index) for name, index in names.items()] for names in sides
            )
            model.signatureDefs.append(signature)
        return model

    def data(self, *outputs: int) -> bytes:
        """Return the file with these outputs of its first graph."""
        self.graph.outputs = list(outputs) or self.graph.outputs
        return packed(self.model())


def _map(name: str, index: int) -> Any:
    made = schema.TensorMapT()
    made.name, made.tensorIndex = name, index
    return made


def packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def interpreted(data: bytes, inputs: Sequence[Array]) -> list[Array]:
    """The outputs that LiteRT's reference kernels compute, in the order of the file."""
    interpreter = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    given = interpreter.get_input_details()
    for detail, value in zip(given, inputs, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(given, inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.reset_all_variables()  # their memory is not cleared before
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
