"""Import of ONNX files. Every node becomes a layer in the newest form of its operator, whatever its opset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from perframe.errors import InferenceError, ModelError, PerframeError, Problem, UnsupportedOperatorError
from perframe.importers.adapters import IGNORED_ATTRIBUTES, adapters
from perframe.importers.onnx_attributes import odd_attribute
from perframe.importers.onnx_functions import Calls, Key, inline, standard_body
from perframe.importers.onnx_loops import inputs_of_body, loosened
from perframe.importers.onnx_schema import MAX_OPSET, fault, misfit, schema_of
from perframe.importers.onnx_values import declared
from perframe.importers.onnx_walk import MAX_DEPTH
from perframe.layers.base import ONNX_DOMAINS, find_declaration, full_name
from perframe.model import Layer, Model, Names, Value
from perframe.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]

MAX_TWICE = 4  # a body in so many others is imported once: each level doubles the imports of those within it
REPORTED = 64  # nodes between two reports of progress
TRAINING = "it is for training, and perframe runs inference only: export the model without it"


@dataclass
class Node:
    """A node on its way to a layer. Adapters change it in place, or replace it by other nodes."""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 0
    domain: str = ""
    proto: onnx.NodeProto | None = None  # as it stands in the file; None for a node that an adapter made


class Importer:
    """The import of one graph. Adapters get it as their context."""

    def __init__(
        self, proto: onnx.ModelProto, name: str, names: Names, weights: Mapping[int, Array] | None = None
    ) -> None:
        self.name, self.graph, self._weights = name, proto.graph, weights or {}
        self.names, self.titles = names, Names()  # names of values, and of layers
        self.outer: Importer | None = None  # of the graph around a body
        self.captures: dict[str, PartialTensor] = {}  # the values of outer graphs that a body reads
        self.formal: list[PartialTensor | None] = []  # specs of a body's inputs, from the outer graph
        self.opsets = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
        self.constants: dict[str, Array] = {}
        self.specs: dict[str, PartialTensor] = {}
        self.layers: list[Layer] = []
        self.problems: list[Problem] = []
        self.forgets_shapes = False  # of the outer values that it reads
        self.calls = Calls(proto)
        self._open: list[Key | None] = []  # the calls and graphs that are being imported, from the outside in

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Add a constant under a free name, and return that name."""
        return self.define(self.names.free("constant"), np.asarray(value, dtype))

    def define(self, name: str, value: Array) -> str:
        """Add a constant of this name. Raises ModelError if the name is empty or taken."""
        if not name or name in self.specs:
            raise ModelError(f"{self.name}: " + (f"{name!r} is made twice" if name else "a constant has no name"))
        self.constants[name] = value
        self.specs[name] = PartialTensor.of(value)
        return name

    def value_name(self, like: str) -> str:
        """Return a free name for a value between two nodes that replace one."""
        return self.names.free(like)

    def run(self, progress: Callable[[float], None] = lambda _done: None) -> Model:
        """Import the graph and return the model. Raises ModelError."""
        if not self.opsets:
            raise ModelError(f"{self.name}: the model does not say which opset it uses")
        for domain, version in self.opsets.items():
            if not 0 < version <= MAX_OPSET:
                raise ModelError(f"{self.name}: opset {version} of {domain} does not exist")
        for index, tensor in enumerate(self.graph.initializer):
            read = self._weights.get(index)
            self.define(tensor.name, self._array(tensor) if read is None else read)
        for sparse in self.graph.sparse_initializer:
            self.define(sparse.values.name, self._dense(sparse))
        inputs = [
            self._declared(info) if info.type.WhichOneof("value") else self._untyped(info.name, index)
            for index, info in enumerate(self.graph.input)
            if info.name not in self.constants
        ]
        for value in inputs:
            if not value.name or value.name in self.specs:
                raise ModelError(f"{self.name}: two inputs are called {value.name!r}, or one has no name")
            self.specs[value.name] = value.spec
        for index, proto in enumerate(self.graph.node):
            if index % REPORTED == 0:
                progress(index / len(self.graph.node))
            self.add(self._node(proto, proto.name or f"{proto.op_type}_{index}", self.opsets))
        if self.problems:
            raise UnsupportedOperatorError(self.name, self.problems)
        for info in self.graph.output:
            self.find(info.name)
        outputs = [self._output(info) for info in self.graph.output]
        self._leave_out_unread()
        used = {name for layer in self.layers for name in layer.inputs} | {value.name for value in outputs}
        self.captures = {name: spec for name, spec in self.captures.items() if name in used}
        inputs += [
            Value(name, spec.dtype, spec.shape, spec.kind, spec.element_kind) for name, spec in self.captures.items()
        ]
        model = Model(inputs, outputs, self.layers, self.constants, self.name)
        model.fixed_inputs = frozenset(info.name for info in self.graph.input if info.name in self.constants)
        model.verify()
        return model

    def find(self, name: str) -> PartialTensor | None:
        """Return the spec of a value; None if there is no such value.

        A value of an outer graph becomes an input of this graph, and an outer constant becomes a constant of it.
        """
        if name in self.specs or self.outer is None:
            return self.specs.get(name)
        found = self.outer.find(name)
        if found is None:
            return None
        if name in self.outer.constants:
            self.define(name, self.outer.constants[name])
        else:
            shape = None if self.forgets_shapes else found.shape
            self.specs[name] = self.captures[name] = PartialTensor(
                found.dtype, shape, kind=found.kind, element_kind=found.element_kind
            )
        return self.specs[name]

    def _untyped(self, name: str, index: int) -> Value:
        """Return a body's input that has no declared type: the outer graph gives the type. Raises ModelError."""
        spec = self.formal[index] if index < len(self.formal) else None
        if spec is None:
            raise ModelError(f"{self.name}: input {name!r} has no type")
        return Value(name, spec.dtype, spec.shape, spec.kind, spec.element_kind)

    def _bodies(self, node: Node) -> bool:
        """Import a node's graphs. The values of this graph that they read become inputs of the node.

        Returns whether all nodes of the graphs could be imported.
        """
        graphs = {k: v for k, v in node.attributes.items() if isinstance(v, onnx.GraphProto)}
        if not graphs:
            return True
        before = len(self.problems)
        bodies: dict[str, Model] = {}
        captures: dict[str, None] = {}
        for attribute, graph in graphs.items():
            del node.attributes[attribute]
            name = f"{self.name}, {attribute} of {node.name!r}"
            if len(self._open) >= MAX_DEPTH:
                raise ModelError(f"{self.name}: graphs and calls are nested more than {MAX_DEPTH} deep")
            try:
                bodies[attribute] = body = self._body(node, graph, name, captures)
                deep = len(self._open) >= MAX_TWICE
                if node.op == "Loop" and not deep and (other := loosened(graph, body)) is not None:
                    self.titles.release(layer.name for layer in body.layers)
                    bodies[attribute] = self._body(node, other, name, captures)
            except UnsupportedOperatorError as error:
                self.problems += error.problems
            except InferenceError:
                if node.op != "If":
                    raise
                # exporters write branches that never run, and that fit no shape which the values around them have
                bodies[attribute] = self._body(node, graph, name, captures, forgets_shapes=True)
        node.attributes |= {"bodies": bodies, "captures": tuple(captures)}
        node.inputs += captures
        return len(self.problems) == before

    def _body(
        self, node: Node, graph: onnx.GraphProto, name: str, captures: dict[str, None], forgets_shapes: bool = False
    ) -> Model:
        """Import one of a node's graphs, and add the names of outer values that it reads to `captures`. With
        `forgets_shapes`, the graph knows no shapes of these values.
        """
        inner = Importer(onnx.ModelProto(graph=graph), name, self.names)
        inner.forgets_shapes = forgets_shapes
        inner.outer, inner.opsets, inner.calls, inner.titles = self, self.opsets, self.calls, self.titles
        given = [self.find(name) if name else None for name in node.inputs]
        inner.formal = inputs_of_body(node.op, given, node.attributes.get("num_scan_inputs", 0))
        inner._open = [*self._open, None]
        made = inner.run()
        captures |= dict.fromkeys(inner.captures)
        return made

    def _node(self, proto: onnx.NodeProto, name: str, opsets: Mapping[str, int]) -> Node:
        attributes = {a.name: self._attribute(a) for a in proto.attribute if a.name not in IGNORED_ATTRIBUTES}
        domain = "" if proto.domain in ONNX_DOMAINS else proto.domain
        opset = opsets.get(domain or "ai.onnx", 0)
        return Node(proto.op_type, name, list(proto.input), list(proto.output), attributes, opset, domain, proto)

    def add(self, node: Node) -> None:
        """Adapt a node to the newest opset, and add its layer, or the layers of its function.

        A node that cannot be imported is noted as a problem and left out.
        """
        missing = [name for name in node.inputs if name and self.find(name) is None]
        if missing:
            if not self.problems:
                raise ModelError(
                    f"{self.name}: node {node.name!r} ({node.op}) reads {missing[0]!r}, which no earlier node makes"
                )
            self._end_shapes(node)
            return
        try:
            if self._replaced(node):
                return
        except PerframeError:
            raise
        except NotImplementedError as error:
            self._problem(node, str(error))
            return
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a file may say anything
            self._problem(node, f"its inputs or attributes do not fit the operator: {error}")
            return
        if not self._bodies(node):
            self._end_shapes(node)
            return
        if not any(node.outputs):
            return
        layer = Layer(node.op, self.titles.free(node.name), node.inputs, node.outputs, node.attributes)
        results = layer.infer([self.specs[name] if name else None for name in layer.inputs])
        if len(node.outputs) > len(results):
            raise ModelError(
                f"{self.name}: node {node.name!r} ({node.op}) has {len(node.outputs)} outputs, {len(results)} expected"
            )
        for name, spec in zip(node.outputs, results, strict=False):
            if name in self.specs:
                raise ModelError(f"{self.name}: {name!r} is made twice, the second time by node {node.name!r}")
            if name:
                self.specs[name] = spec
        self.layers.append(layer)

    def _replaced(self, node: Node) -> bool:
        """Check and adapt a node. True if other nodes replace it now, or it cannot be imported."""
        if node.proto is not None:
            given = [self.specs[name] if name else None for name in node.inputs]
            reason = fault(node.proto, node.opset, node.domain) or odd_attribute(node.op, node.domain, node.attributes)
            if not reason and not self.problems:  # after a problem the types of values are not reliable
                reason = misfit(schema_of(node.op, node.opset, node.domain), given)
            if not node.opset and not node.domain:
                reason = "the model does not say which opset of ai.onnx it uses"
            if reason:
                self._problem(node, reason)
                return True
        for adapter in adapters().get(full_name(node.op, node.domain), ()):
            replaced = adapter(node, self)
            if replaced is not None:
                for other in replaced:
                    self.add(other)
                return True
        name = full_name(node.op, node.domain)
        if find_declaration(name) is not None:
            node.op = name
            return False
        if not self._inline(node):
            self._problem(node, _unknown(node.domain))
        return True

    def _inline(self, node: Node) -> bool:
        """Import a call by the body of its function, and return whether it has one.

        Raises ValueError if the call does not fit the function.
        """
        if node.proto is None:
            return False
        key, function = self.calls.find(node.proto)
        standard = function is None
        if function is None:
            function = standard_body(
                node.proto, node.opset, [self.find(name) if name else None for name in node.inputs]
            )
        if function is None:
            return False
        if key in self._open or len(self._open) >= MAX_DEPTH:
            raise ModelError(f"{self.name}: function {node.op!r}, called by node {node.name!r}, calls itself")
        self.calls.count(key, function)
        opsets = self.opsets | {entry.domain or "ai.onnx": entry.version for entry in function.opset_import}
        nodes = inline(function, node.proto, node.name, self.names.free, standard, node.opset)
        self._open.append(None if standard else key)
        for inner in nodes:
            self.add(self._node(inner, inner.name, opsets))
        self._open.pop()
        return True

    def _leave_out_unread(self) -> None:
        """Remove optional outputs at the end of a layer's list (a Dropout's mask) that no layer and no output reads."""
        read = {name for layer in self.layers for name in layer.inputs} | {info.name for info in self.graph.output}
        for layer in self.layers:
            while len(layer.outputs) > 1 and layer.outputs[-1] not in read:
                layer.outputs.pop()

    def _problem(self, node: Node, reason: str) -> None:
        specs = {name: self.specs.get(name) for name in node.inputs if name}
        known = ", ".join(
            f"{name}: {spec}" for name, spec in specs.items() if spec is not None and spec.shape is not None
        )
        self.problems.append(Problem(node.name, node.op, node.domain, node.opset, reason, known))
        self._end_shapes(node)

    def _end_shapes(self, node: Node) -> None:
        """Give the outputs of a node that was not imported an unknown shape, so that the import finds all problems."""
        for name in node.outputs:
            self.specs[name] = PartialTensor(DataType.FLOAT32)

    def _array(self, tensor: onnx.TensorProto) -> Array:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:  # `read_external_data` has read all others
            raise ModelError(f"{self.name}: tensor {tensor.name!r} lies in another file")
        if any(dim < 0 for dim in tensor.dims):
            raise ModelError(f"{self.name}: tensor {tensor.name!r} has a negative dim: {list(tensor.dims)}")
        try:
            array = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(f"{self.name}: initializer {tensor.name!r} cannot be read: {error}") from None
        return array.astype(object) if array.dtype.kind in "US" else array

    def _dense(self, sparse: onnx.SparseTensorProto) -> Array:
        """Return a sparse tensor as an array with its zeros. Its indices are flat, or one row of indices a value."""
        name, values, dims = sparse.values.name, self._array(sparse.values), tuple(sparse.dims)
        try:
            indices = self._array(sparse.indices)
            result = np.zeros(dims, values.dtype)
            listed = indices.ndim == 1
            flat = np.ravel_multi_index(*(((indices,), (result.size,)) if listed else (tuple(indices.T), dims)))
            result.reshape(-1)[flat] = values
        except (ValueError, IndexError, TypeError, MemoryError) as error:
            raise ModelError(
                f"{self.name}: sparse tensor {name!r} of dims {list(dims)} cannot be read: {error}"
            ) from None
        return result

    def _attribute(self, attribute: onnx.AttributeProto) -> Any:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, onnx.TensorProto):
            return self._array(value)
        if isinstance(value, onnx.SparseTensorProto):
            return self._dense(value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value)
        return value

    def _declared(self, info: onnx.ValueInfoProto) -> Value:
        """Return a value as the graph declares it.

        A body's named dims stay unknown: they may have other sizes in each run of the body.
        """
        try:
            return declared(info, bare=self.outer is not None)
        except ModelError as error:
            raise ModelError(f"{self.name}: {error}") from None

    def _output(self, info: onnx.ValueInfoProto) -> Value:
        """Return an output with its inferred shape; its declaration adds the dims that are not inferred."""
        spec = self.specs.get(info.name)
        if spec is None:
            raise ModelError(f"{self.name}: no node makes the output {info.name!r}")
        if spec.kind != "tensor" or (spec.shape is not None and spec.shape.is_static):
            return Value(info.name, spec.dtype, spec.shape, spec.kind, spec.element_kind)
        said = self._declared(info).shape if info.type.HasField("tensor_type") else None
        return Value(info.name, spec.dtype, _joined(spec.shape, said))


def _unknown(domain: str) -> str:
    """Return the reason why a node of no known operator cannot be imported."""
    if domain.endswith(".training"):
        return TRAINING
    missing = "perframe has no such layer"
    if domain in ONNX_DOMAINS:
        return missing
    return (
        f"{missing}: declare it by @pf.layers.layer(domain={domain!r}), and import that file before you load the model"
    )


def _joined(inferred: DynamicTensorShape | None, said: DynamicTensorShape | None) -> DynamicTensorShape | None:
    """Return the inferred shape of an output. Where a dim is not a number, the dim that the file declares counts."""
    if inferred is None or said is None:
        return inferred if said is None else said
    if len(inferred) != len(said):
        return inferred
    dims = (know if isinstance(know, int) else say or know for know, say in zip(inferred, said, strict=True))
    return DynamicTensorShape(dims)
