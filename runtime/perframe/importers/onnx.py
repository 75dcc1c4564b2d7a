"""Import of ONNX files. Every node becomes a layer in the newest form of its operator, whatever its opset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from perframe.errors import InferenceError, ModelError, PerframeError, Problem, UnsupportedOperatorError
from perframe.importers.adapters import IGNORED_ATTRIBUTES, adapters_of
from perframe.importers.filling import filling
from perframe.importers.onnx_attributes import odd_attribute
from perframe.importers.onnx_file import OnnxFile, read
from perframe.importers.onnx_functions import Calls, Key, inline, standard_body
from perframe.importers.onnx_loops import inputs_of_body, loosened
from perframe.importers.onnx_messages import Message, NeedsLibrary, is_a
from perframe.importers.onnx_node import Node
from perframe.importers.onnx_schema import MAX_OPSET, fault, misfit, schema_of
from perframe.importers.onnx_values import array_of, attribute_of, declared, dense, joined
from perframe.importers.onnx_walk import MAX_DEPTH, opsets_of
from perframe.ir import Layer, Model, Names, Value
from perframe.ir.declaration import ONNX_DOMAINS, find_declaration, full_name
from perframe.ir.inference import Inference
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]

MAX_TWICE = 4  # a body within this number of others is imported once: each level doubles the imports of those within it
REPORTED = 64  # nodes between two reports of progress
TRAINING = "it is for training, and perframe runs inference only: export the model without it"


def load_onnx(
    source: str | Path | bytes | IO[bytes] | onnx.ModelProto,
    progress: Callable[[str, float], None] = lambda _what, _done: None,
) -> Model:
    """Import an ONNX model. Raises ModelError; UnsupportedOperatorError lists all nodes that cannot be imported."""
    progress("reads the file", 0)
    with filling(Path(source).name if isinstance(source, (str, Path)) else "model"):
        file = read(source)
        try:
            return _imported(file, progress)
        except NeedsLibrary:
            return _imported(file.by_library(), progress)


def _imported(file: OnnxFile, progress: Callable[[str, float], None]) -> Model:
    proto = file.proto
    try:
        importer = Importer(proto.graph, file.name, Names(file.values), opsets_of(proto.opset_import), Calls(proto))
        importer.weights, importer.inference.remembers = file.weights, True
        model = importer.run(partial(progress, f"imports {len(proto.graph.node)} nodes"))
    except InferenceError as error:
        raise InferenceError(f"{file.name}: {error}") from None
    model.producer = f"{proto.producer_name} {proto.producer_version}".strip()
    model.opsets = dict(importer.opsets)
    model.metadata = {entry.key: entry.value for entry in proto.metadata_props}
    return model


class Importer:
    """The import of one graph: the values by the names that the file gives them, and the layers."""

    def __init__(
        self, graph: onnx.GraphProto, name: str, names: Names, opsets: Mapping[str, int], calls: Calls
    ) -> None:
        self.name, self.graph, self.opsets, self.calls = name, graph, opsets, calls
        self.weights: Mapping[int, Array] = {}  # that were read apart, by the index of their initializer
        self.names, self.titles = names, Names()  # names of values, and of layers
        self.outer: Importer | None = None  # of the graph around a body
        self.captures: dict[str, Value] = {}  # the body's inputs for values of outer graphs that it reads
        self.formal: list[PartialTensor | None] = []  # specs of a body's inputs, from the outer graph
        self.values: dict[str, Value] = {}
        self._of_file = set[Value]()  # results of the file's nodes, not of adapters
        self.layers: list[Layer] = []
        self.problems: list[Problem] = []
        self.inference = Inference()  # the passes go on with it
        self.forgets_shapes = False  # of the outer values that it reads
        self._open: list[Key | None] = []  # the calls and graphs that are being imported, from the outside in

    def _define(self, name: str, array: Array) -> None:
        """Add a constant of the file. Raises ModelError if its name is empty or taken."""
        if not name or name in self.values:
            raise ModelError(f"{self.name}: " + (f"{name!r} is made twice" if name else "a constant has no name"))
        self.values[name] = Value(name, constant=array)

    def run(self, progress: Callable[[float], None] = lambda _done: None) -> Model:
        """Import the graph and return the model. Raises ModelError."""
        if not self.opsets:
            raise ModelError(f"{self.name}: the model does not say which opset it uses")
        for domain, version in self.opsets.items():
            if not 0 < version <= MAX_OPSET:
                raise ModelError(f"{self.name}: opset {version} of {domain} does not exist")
        for index, tensor in enumerate(self.graph.initializer):
            read = self.weights.get(index)
            self._define(tensor.name, array_of(tensor, self.name) if read is None else read)
        for sparse in self.graph.sparse_initializer:
            self._define(sparse.values.name, dense(sparse, self.name))
        inputs = [
            self._declared(info) if info.type.WhichOneof("value") else self._untyped(info.name, index)
            for index, info in enumerate(self.graph.input)
            if info.name not in self.values
        ]
        for value in inputs:
            if not value.name or value.name in self.values:
                raise ModelError(f"{self.name}: two inputs are called {value.name!r}, or one has no name")
            self.values[value.name] = value
        for index, proto in enumerate(self.graph.node):
            if index % REPORTED == 0:
                progress(index / len(self.graph.node))
            self._add_proto(proto, proto.name or f"{proto.op_type}_{index}", self.opsets)
        if self.problems:
            raise UnsupportedOperatorError(self.name, self.problems)
        outputs = [self._output(info) for info in self.graph.output]
        self._leave_out_unread(outputs)
        used = {value for layer in self.layers for value in layer.operands} | set(outputs)
        self.captures = {name: value for name, value in self.captures.items() if value in used}
        model = Model([*inputs, *self.captures.values()], outputs, self.layers, name=self.name)
        fixed = (info.name for info in self.graph.input)
        model.fixed_inputs = frozenset(name for name in fixed if self.values[name].constant is not None)
        model.inference = self.inference
        model.verify()
        return model

    def find(self, name: str) -> Value | None:
        """Return the value of this name; None if there is no such value.

        A value of an outer graph becomes an input of this graph, and an outer constant becomes a constant of it.
        """
        if name in self.values or self.outer is None:
            return self.values.get(name)
        found = self.outer.find(name)
        if found is None:
            return None
        if found.constant is not None:
            self._define(name, found.constant)
        else:
            spec = found.spec
            shape = None if self.forgets_shapes else spec.shape
            self.values[name] = Value(name, spec.dtype, shape, spec.kind, spec.element_kind)
            self.captures[name] = self.values[name]
        return self.values[name]

    def _untyped(self, name: str, index: int) -> Value:
        """Return a body's input that has no declared type: the outer graph gives the type. Raises ModelError."""
        spec = self.formal[index] if index < len(self.formal) else None
        if spec is None:
            raise ModelError(f"{self.name}: input {name!r} has no type")
        return Value.of(name, spec)

    def _bodies(self, node: Node) -> bool:
        """Import a node's graphs. The values of this graph that they read become inputs of the node.

        Returns whether all nodes of the graphs could be imported.
        """
        graphs = {k: v for k, v in node.attributes.items() if is_a(v, "GraphProto")}
        if not graphs:
            return True
        before = len(self.problems)
        bodies: dict[str, Model] = {}
        captures: dict[str, Value] = {}  # the values of this graph that the bodies read
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
        node.inputs += captures.values()
        return len(self.problems) == before

    def _body(
        self, node: Node, graph: onnx.GraphProto, name: str, captures: dict[str, Value], forgets_shapes: bool = False
    ) -> Model:
        """Import a node's graph, and add the outer values that it reads (without shapes, if asked) to `captures`."""
        inner = Importer(graph, name, self.names, self.opsets, self.calls)
        inner.outer, inner.titles, inner.forgets_shapes = self, self.titles, forgets_shapes
        given = [None if value is None else value.spec for value in node.inputs]
        inner.formal = inputs_of_body(node.op, given, node.attributes.get("num_scan_inputs", 0))
        inner._open = [*self._open, None]
        made = inner.run()
        for captured in inner.captures:
            value = self.find(captured)
            assert value is not None
            captures[captured] = value
        return made

    def _node(self, proto: onnx.NodeProto, name: str, opsets: Mapping[str, int]) -> Node | None:
        """Return a node with its values; None if it reads a value that is missing because of an earlier problem."""
        attributes = {a.name: attribute_of(a, self.name) for a in proto.attribute if a.name not in IGNORED_ATTRIBUTES}
        domain = "" if proto.domain in ONNX_DOMAINS else proto.domain
        opset = opsets.get(domain or "ai.onnx", 0)
        inputs = [self.find(read) if read else None for read in proto.input]
        outputs = [Value(made) if made else None for made in proto.output]
        self._of_file.update([value for value in outputs if value is not None])
        node = Node(proto.op_type, name, inputs, outputs, attributes, opset, domain, proto)
        if None not in inputs:
            return node
        missing = [read for read, value in zip(proto.input, inputs, strict=True) if read and value is None]
        if not missing:
            return node
        if not self.problems:
            raise ModelError(
                f"{self.name}: node {node.name!r} ({node.op}) reads {missing[0]!r}, which no earlier node makes"
            )
        self._end_shapes(node)
        return None

    def _add_proto(self, proto: onnx.NodeProto, name: str, opsets: Mapping[str, int]) -> None:
        node = self._node(proto, name, opsets)
        if node is not None:
            self.add(node)

    def add(self, node: Node) -> None:
        """Adapt a node to the newest opset, and add its layer, or the layers of its function.

        A node that cannot be imported is noted as a problem and left out.
        """
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
        self._name_constants(node)
        layer = Layer(node.op, self.titles.free(node.name), node.inputs, node.outputs, node.attributes)
        if layer.declaration.on_host or layer.declaration.host:
            node.settle()
        results = self.inference.outputs(layer, [None if value is None else value.spec for value in node.inputs])
        if len(node.outputs) > len(results):
            raise ModelError(
                f"{self.name}: node {node.name!r} ({node.op}) has {len(node.outputs)} outputs, {len(results)} expected"
            )
        for value, spec in zip(node.outputs, results, strict=False):
            if value is not None:
                self._make(value, spec, node)
        self.layers.append(layer)

    def _make(self, value: Value, spec: PartialTensor, node: Node) -> None:
        """Note a value that a layer makes. One of the file keeps its name."""
        if value in self._of_file:
            if value.name in self.values:
                raise ModelError(f"{self.name}: {value.name!r} is made twice, the second time by node {node.name!r}")
            self.values[value.name] = value
        else:
            value.name = self.names.free(value.name)
        value.spec = spec

    def _name_constants(self, node: Node) -> None:
        """Give the constants of adapters free names."""
        for value in node.inputs:
            if value is not None and value.constant is not None and self.values.get(value.name) is not value:
                value.name = self.names.free(value.name)
                self.values[value.name] = value

    def _replaced(self, node: Node) -> bool:
        """Check and adapt a node. True if other nodes replace it now, or it cannot be imported."""
        if node.proto is not None:
            given = [None if value is None else value.spec for value in node.inputs]
            reason = fault(node.proto, node.opset, node.domain) or odd_attribute(node.op, node.domain, node.attributes)
            if not reason and not self.problems:  # after a problem the types of values are not reliable
                reason = misfit(schema_of(node.op, node.opset, node.domain), given)
            if not node.opset and not node.domain:
                reason = "the model does not say which opset of ai.onnx it uses"
            if reason:
                self._problem(node, reason)
                return True
        for adapter in adapters_of(full_name(node.op, node.domain)):
            node.settle()
            replaced = adapter(node)
            if replaced is not None:
                for other in replaced:
                    self.add(other)
                for value in node.outputs:
                    if value is not None and value.constant is not None:  # of a Constant
                        self._define(value.name, value.constant)
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

        Raises ValueError if the call does not fit the function, and NeedsLibrary.
        """
        if node.proto is None:
            return False
        if isinstance(node.proto, Message):
            raise NeedsLibrary
        key, function = self.calls.find(node.proto)
        standard = function is None
        if function is None:
            node.settle()
            function = standard_body(
                node.proto, node.opset, [None if value is None else value.spec for value in node.inputs]
            )
        if function is None:
            return False
        if key in self._open or len(self._open) >= MAX_DEPTH:
            raise ModelError(f"{self.name}: function {node.op!r}, called by node {node.name!r}, calls itself")
        self.calls.count(key, function)
        opsets = {**self.opsets, **opsets_of(function.opset_import)}
        nodes = inline(function, node.proto, node.name, self.names.free, standard, node.opset)
        self._open.append(None if standard else key)
        for inner in nodes:
            self._add_proto(inner, inner.name, opsets)
        self._open.pop()
        return True

    def _leave_out_unread(self, outputs: Sequence[Value]) -> None:
        """Remove optional outputs at the end of a layer's list (a Dropout's mask) that no layer and no output reads."""
        read = {value for layer in self.layers for value in layer.operands} | set(outputs)
        for layer in self.layers:
            while len(layer.outputs) > 1 and layer.outputs[-1] not in read:
                layer.outputs = layer.outputs[:-1]

    def _problem(self, node: Node, reason: str) -> None:
        given = [value for value in node.inputs if value is not None and value.spec.shape is not None]
        known = ", ".join(f"{value.name}: {value.spec}" for value in given)
        self.problems.append(Problem(node.name, node.op, node.domain, node.opset, reason, known))
        self._end_shapes(node)

    def _end_shapes(self, node: Node) -> None:
        """Give the outputs of a node that was not imported an unknown shape, so that the import finds all problems."""
        for value in node.outputs:
            if value is not None:
                value.spec = PartialTensor(DataType.FLOAT32)
                self.values[value.name] = value

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
        value = self.find(info.name)
        if value is None:
            raise ModelError(f"{self.name}: no node makes the output {info.name!r}")
        spec = value.spec
        if value.producer is None and value.constant is None:
            return value  # an input
        if spec.kind == "tensor" and (spec.shape is None or not spec.shape.is_static):
            said = self._declared(info).shape if info.type.HasField("tensor_type") else None
            spec = PartialTensor(spec.dtype, joined(spec.shape, said))
        value.declared = spec.with_shape(spec.shape) if spec.kind == "tensor" else spec
        return value


def _unknown(domain: str) -> str:
    """Return the reason why a node of no known operator cannot be imported."""
    if domain.endswith(".training"):
        return TRAINING
    missing = "perframe has no such layer"
    if domain in ONNX_DOMAINS:
        return missing
    return (
        f"{missing}: declare it by @pf.layers.layer(domain={domain!r}), and import that file before you load the "
        "model; the command line imports the entry points perframe.layers of installed packages"
    )
