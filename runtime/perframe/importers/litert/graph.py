"""Import of a LiteRT file: the operators of its first graph become the layers of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError, ModelError, PerframeError, Problem, UnsupportedOperatorError
from perframe.importers.litert.builder import Builder
from perframe.importers.litert.constants import constant_of, data_type
from perframe.importers.litert.dilated import with_dilations
from perframe.importers.litert.file import GraphInfo, LiteRTFile, Operation, TensorQuantization, read
from perframe.importers.litert.node import LiteRTNode, plain_name
from perframe.importers.litert.table import ImportRule, table
from perframe.ir import Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]

REPORTED = 64  # operators between two reports of progress
MAX_DEPTH = 32  # subgraphs within subgraphs
MAX_OPERATIONS = 50_000  # operators after subgraphs that are called several times are written out
QUANTIZED = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.INT32, DataType.INT64)


def load_litert(data: bytes, name: str, progress: Callable[[str, float], None] = lambda _what, _done: None) -> Model:
    """Import a LiteRT model. Raises ModelError; UnsupportedOperatorError lists all that cannot be imported."""
    progress("reads the file", 0)
    file = read(data, name)
    try:
        return _Import(file, progress).run()
    except InferenceError as error:
        raise InferenceError(f"{name}: {error}") from None


class _Import:
    """The import of one file, and what its scopes share."""

    def __init__(self, file: LiteRTFile, progress: Callable[[str, float], None]) -> None:
        self.file, self.progress = file, progress
        self.problems: list[Problem] = []
        self.open: list[int] = []  # the subgraphs that are being imported, from the outside in
        self.operations = 0
        self.arrays: dict[tuple[int, int], Array] = {}

    def run(self) -> Model:
        graph, builder = self.file.graphs[0], Builder()
        scope = Scope(self, 0, builder)
        inputs = [self._named(graph, index, self.file.input_names) for index in graph.inputs]
        outputs = [self._named(graph, index, self.file.output_names) for index in graph.outputs]
        outputs = [f"{name}:output" if name in inputs else name for name in outputs]
        for what, names in (("inputs", inputs), ("outputs", outputs)):
            twice = [name for name in names if names.count(name) > 1]
            if twice or len(set(graph.inputs)) < len(graph.inputs):
                raise ModelError(f"{self.file.name}: two {what} are called {(twice or names)[0]!r}")
        for name in (*inputs, *outputs):
            builder.names.free(name)
        values = []
        for index, name in zip(graph.inputs, inputs, strict=True):
            values.append(Value(name, scope.dtype(index), DynamicTensorShape(graph.tensors[index].shape)))
            scope.values[index] = values[-1]
        scope.run()
        if self.problems:
            raise UnsupportedOperatorError(self.file.name, self.problems, "version")
        made = [scope.output(index, name) for index, name in zip(graph.outputs, outputs, strict=True)]
        model = Model(values, made, builder.layers, name=self.file.name)
        model.verify()
        return model

    def _named(self, graph: GraphInfo, index: int, names: Mapping[int, str]) -> str:
        name = names.get(index) or graph.tensors[index].name if index >= 0 else ""
        if not name:
            raise ModelError(f"{self.file.name}: an input or output of the model has no name (tensor {index})")
        return name


class Scope:
    """A graph that is being imported into a builder: the value of each of its tensors."""

    def __init__(self, around: _Import, index: int, builder: Builder) -> None:
        if index in around.open or len(around.open) >= MAX_DEPTH:
            raise ModelError(
                f"{around.file.name}: subgraph {index} contains itself, or lies more than {MAX_DEPTH} deep"
            )
        if not 0 <= index < len(around.file.graphs):
            raise ModelError(f"{around.file.name}: there is no subgraph {index}")
        self.around, self.index, self.builder = around, index, builder
        self.graph = around.file.graphs[index]
        self.values: dict[int, Value] = {}

    def run(self) -> None:
        """Import all operators of the graph."""
        self.around.open.append(self.index)
        listed = with_dilations(self.graph, lambda tensor: self.array(tensor) if tensor >= 0 else None)
        for number, operation in enumerate(listed):
            self.around.operations += 1
            if number % REPORTED == 0 and len(self.around.open) == 1:
                self.around.progress(f"imports {len(listed)} operators", number / len(listed))
            if self.around.operations > MAX_OPERATIONS:
                raise ModelError(f"{self.around.file.name}: its subgraphs call each other too often")
            self._add(operation, f"{operation.name}_{number}")
        self.around.open.pop()

    def inline(self, index: int, inputs: Sequence[Value], builder: Builder | None = None) -> list[Value]:
        """Import another subgraph for these inputs, which are stored values, and return its outputs."""
        inner = Scope(self.around, index, builder or self.builder)
        if len(inner.graph.inputs) != len(inputs) or -1 in (*inner.graph.inputs, *inner.graph.outputs):
            raise ModelError(
                f"{self.around.file.name}: subgraph {index} takes {len(inner.graph.inputs)} inputs, and gets "
                f"{len(inputs)}"
            )
        inner.values.update(zip(inner.graph.inputs, inputs, strict=True))
        inner.run()
        return [inner.stored(tensor) for tensor in inner.graph.outputs]

    def _add(self, operation: Operation, name: str) -> None:
        """Import an operator. One that cannot be imported is noted as a problem, so that all problems are found."""
        entry = table().get(operation.name)
        reason = _reason(operation)
        if entry is not None:
            try:
                self._import(operation, entry)
                return
            except InferenceError as error:
                reason = str(error)
                if not self.around.problems:
                    raise InferenceError(f"operator {name!r}: {reason}") from None
            except PerframeError:
                raise
            except NotImplementedError as error:
                reason = str(error)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                reason = f"its inputs or options do not fit the operator: {error}"
        given = [self.graph.tensors[index] for index in operation.inputs if index >= 0]
        listed = ", ".join(f"{one.name}: {one.kind.lower()} {DynamicTensorShape(one.shape)}" for one in given)
        self.around.problems.append(Problem(name, operation.name, "LiteRT", operation.version, reason, listed))
        for tensor in operation.outputs:
            if tensor >= 0:
                info = self.graph.tensors[tensor]
                shape = DynamicTensorShape(info.shape)
                self.values[tensor] = self.builder.input(info.name or name, self.dtype(tensor), shape)

    def _import(self, operation: Operation, entry: ImportRule) -> None:
        node = LiteRTNode(self, operation, entry.moves and self._is_exact(operation))
        results = entry.adapter(node)
        listed = [results] if isinstance(results, Value) else list(results)
        if entry.family not in ("recurrent", "control"):  # there the activation lies within
            listed[:1] = [node.activated(value) for value in listed[:1]]
        if len(listed) < len(operation.outputs):
            raise NotImplementedError(f"it has {len(operation.outputs)} outputs, and {len(listed)} are expected")
        for tensor, made in zip(operation.outputs, listed, strict=False):
            if tensor in self.values or (tensor >= 0 and self.graph.tensors[tensor].data is not None):
                raise ModelError(f"{self.around.file.name}: {self.graph.tensors[tensor].name!r} is made twice")
            if tensor >= 0:
                self.values[tensor] = self._kept(node, tensor, made)

    def _kept(self, node: LiteRTNode, tensor: int, value: Value) -> Value:
        """Return the stored form of an operator's result: quantized if the tensor is, and of its dtype."""
        spec, scales = value.spec, self.quantization(tensor)
        if scales is not None and spec.dtype is DataType.FLOAT32:
            zero = self._zero(scales, tensor)
            return node("QuantizeLinear", value, self._scale(scales), zero, axis=scales.axis)
        dtype = self.dtype(tensor)
        complexes = (DataType.COMPLEX64, DataType.COMPLEX128)  # they are pairs of floats in layers
        return value if spec.dtype is dtype or dtype in complexes else node.cast(value, dtype)

    # --- the tensors of the graph ---

    def dtype(self, tensor: int) -> DataType:
        """Return the dtype of a tensor."""
        return data_type(self.graph.tensors[tensor], self.around.file.name)

    def quantization(self, tensor: int) -> TensorQuantization | None:
        """Return how a tensor is quantized; None if it is not."""
        info = self.graph.tensors[tensor] if tensor >= 0 else None
        if info is None or info.quantization is None or self.dtype(tensor) not in QUANTIZED:
            return None
        return info.quantization

    def _is_exact(self, operation: Operation) -> bool:
        """Whether an operator that only moves elements may move quantized numbers. An activation needs real ones."""
        if operation.options.get("FusedActivationFunction"):
            return not any(self.quantization(i) is not None for i in operation.inputs if i >= 0)
        scales = [self.quantization(i) for i in (*operation.inputs, *operation.outputs) if i >= 0]
        found = [one for one in scales if one is not None]
        made = [self.quantization(i) for i in operation.outputs]
        if not found or made[0] is None:
            return not found
        return all(
            one.scale.size == 1
            and np.array_equal(one.scale, found[0].scale)
            and np.array_equal(one.zero, found[0].zero)
            for one in found
        )

    def array(self, tensor: int) -> Array | None:
        """Return the value of a constant tensor; None for any other."""
        key = self.index, tensor
        if key not in self.around.arrays:
            found = constant_of(self.graph.tensors[tensor], self.dtype(tensor), self.around.file.name)
            if found is None:
                return None
            self.around.arrays[key] = found
        return self.around.arrays[key]

    def stored(self, tensor: int) -> Value:
        """Return a tensor's value as the file stores it. Raises ModelError if nothing makes it."""
        found = self.values.get(tensor)
        if found is None:
            value, info = self.array(tensor), self.graph.tensors[tensor]
            if value is None:
                raise ModelError(f"{self.around.file.name}: {info.name!r} is read, and no earlier operator makes it")
            copied = np.array(value)  # not a view, which would keep the whole file in memory
            found = self.values[tensor] = self.builder.constant(copied, like=plain_name(info.name) or "constant")
        return found

    def real(self, tensor: int) -> Value:
        """Return a tensor's floats."""
        info, scales = self.graph.tensors[tensor], self.quantization(tensor)
        return (
            self.stored(tensor) if scales is None else self._dequantized(self.stored(tensor), info.name, scales, tensor)
        )

    def arranged(self, tensor: int, perm: tuple[int, ...]) -> Value:
        """Return a tensor's floats with its dims in another order."""
        info, value, scales = self.graph.tensors[tensor], self.array(tensor), self.quantization(tensor)
        if tensor in self.values and self.values[tensor].constant is None:
            value = None
        if value is None:
            return self.builder.layer("Transpose", info.name, [self.real(tensor)], 1, info.name, {"perm": perm})[0]
        if len(perm) != value.ndim:
            raise ValueError(f"{info.name!r} of shape {value.shape} must have {len(perm)} dims")
        key = ("arranged", self.index, tensor, perm)
        if key not in self.builder.made:
            moved = np.array(value.transpose(perm), order="C")
            made = self.builder.constant(moved, like=plain_name(info.name) or "constant")
            if scales is not None:
                turned = TensorQuantization(
                    scales.scale, scales.zero, perm.index(scales.axis) if scales.scale.size > 1 else 0
                )
                made = self._dequantized(made, info.name, turned, tensor)
            self.builder.made[key] = made
        return self.builder.made[key]

    def _dequantized(self, value: Value, like: str, scales: TensorQuantization, tensor: int) -> Value:
        key = ("real", value, scales.scale.tobytes(), scales.zero.tobytes(), scales.axis)
        if key not in self.builder.made:
            inputs = [value, self._scale(scales), self._zero(scales, tensor)]
            name = f"{plain_name(like)}:real"
            made = self.builder.layer("DequantizeLinear", name, inputs, 1, name, {"axis": scales.axis})
            self.builder.made[key] = made[0]
        return self.builder.made[key]

    def _scale(self, scales: TensorQuantization) -> Value:
        return self.builder.constant(_whole(scales.scale))

    def _zero(self, scales: TensorQuantization, tensor: int) -> Value:
        dtype = self.dtype(tensor).numpy
        kind = np.iinfo(dtype)
        if scales.zero.min() < kind.min or scales.zero.max() > kind.max:
            raise ModelError(
                f"{self.around.file.name}: {self.graph.tensors[tensor].name!r} has zero points outside of {dtype}"
            )
        return self.builder.constant(_whole(scales.zero).astype(dtype))

    def output(self, tensor: int, name: str) -> Value:
        """Give the value of an output tensor its name, and return it as an output of the model."""
        info, builder = self.graph.tensors[tensor], self.builder
        value = self.stored(tensor)
        if self.dtype(tensor) in (DataType.COMPLEX64, DataType.COMPLEX128):
            raise ModelError(f"{self.around.file.name}: output {name!r} is complex, which no layer makes")
        captured = any(value in layer.operands for layer in builder.layers if "captures" in layer.attributes)
        taken = [other for other in self.graph.outputs if self.values.get(other) is value]
        if value.producer is None or len(taken) > 1 or captured:
            (value,) = builder.layer("Identity", name, [value], 1, name, {})
            self.values[tensor] = value
        value.name, spec = name, value.spec
        open_ = any(None in self.graph.tensors[index].shape for index in self.graph.inputs)
        value.declared = spec.with_shape(spec.shape if open_ else _joined(spec, info.shape))
        return value


def _whole(values: Array) -> Array:
    """Return numbers for the axes of a tensor: a bare number if there is only one."""
    return values.reshape(()) if values.size == 1 else values


def _joined(spec: PartialTensor, said: Sequence[int | None]) -> DynamicTensorShape:
    """Return the inferred shape of an output. Where a dim is not inferred, the dim that the file declares counts."""
    if spec.shape is None:
        return DynamicTensorShape(said)
    if len(spec.shape) != len(said):
        return spec.shape
    return DynamicTensorShape(know if know is not None else say for know, say in zip(spec.shape, said, strict=True))


def _reason(operation: Operation) -> str:
    if operation.custom.startswith("Flex"):
        return "it needs TensorFlow itself (a Flex operator): convert the model without SELECT_TF_OPS"
    if operation.custom:
        return "perframe does not know this custom operator"
    return "perframe has no such operator"
