"""Export of models to ONNX: layers that ONNX lacks are spelled out, and bodies become graphs within their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from perframe import __version__
from perframe.errors import ModelError
from perframe.exporters.nodes import (
    LEAST_OPSET,
    element_type,
    least_opset,
    least_outputs,
    node_of,
    operator_of,
    tensor_of,
    value_info,
)
from perframe.exporters.spelling import spelled
from perframe.files.graph import checked_metadata
from perframe.files.tensors import Buffer, encoded
from perframe.ir import Layer, Model, Names, Value
from perframe.ir.declaration import find_declaration
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]

MAX_INSIDE = (1 << 31) - (1 << 26)  # bytes of weights in a file; protobuf reads no message of 2 GB
_LARGE = 1024  # bytes; smaller weights stay in the file
_ALIGNMENT = 4096  # bytes; a page, so that weights can be mapped


@dataclass
class _File:
    """The parts of a file that all its graphs share. No two graphs have a value or a node of one name."""

    names: Names
    used: set[str] = field(default_factory=set)
    titles: Names = field(default_factory=Names)  # of nodes
    opsets: dict[str, int] = field(default_factory=lambda: {"": LEAST_OPSET})
    problems: list[str] = field(default_factory=list)


def to_onnx(model: Model, beside: str = "") -> tuple[onnx.ModelProto, list[Buffer]]:
    """Return a model as an ONNX model, and the bytes of the file `beside` it, where large weights lie.

    Weights of up to MAX_INSIDE bytes lie in the model itself, and there is no other file. Raises ModelError that lists
    every layer that ONNX cannot express, and ModelError if weights need another file, and `beside` does not name one.
    """
    model.verify()
    file = _File(Names(_all_names(model)))
    graph = _GraphWriter(model, file)
    graph.export()
    if file.problems:
        raise ModelError(
            f"{model.name}: ONNX cannot express {len(file.problems)} layer(s):\n  " + "\n  ".join(file.problems)
        )
    outside = _outside(graph.arrays)
    if outside and not beside:
        raise ModelError(
            f"{model.name} has {sum(graph.arrays[name].nbytes for name in outside)} bytes of weights, and an ONNX file "
            f"holds {MAX_INSIDE}: save it to a path, so that a second file can lie beside it"
        )
    tensors, data = [], list[Buffer]()
    for name, array in graph.arrays.items():
        if name in outside:
            tensors.append(_reference(name, array, beside, data))
        else:
            tensors.append(tensor_of(array, name))
    proto = helper.make_model(
        graph.proto("model", tensors),
        producer_name="perframe",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in sorted(file.opsets.items())],
    )
    helper.set_model_props(proto, checked_metadata(model))
    proto.ir_version = helper.find_min_ir_version_for(list(proto.opset_import), ignore_unknown=True)
    return proto, data


def _all_names(model: Model) -> set[str]:
    """Return the names of all values of a model and of its bodies."""
    names = {*model.constants, *(value.name for value in (*model.inputs, *model.outputs))}
    for layer in model.layers:
        names.update(value.name for value in layer.results)
        for body in layer.inner_models.values():
            names |= _all_names(body)
    return names


def _outside(arrays: Mapping[str, Array]) -> set[str]:
    """Return the names of the weights that must lie in another file."""
    if sum(array.nbytes for array in arrays.values()) <= MAX_INSIDE:
        return set()
    return {name for name, array in arrays.items() if array.nbytes >= _LARGE and array.dtype != object}


def _reference(name: str, array: Array, beside: str, data: list[Buffer]) -> onnx.TensorProto:
    """Add the bytes of an array to the other file, and return the tensor that points to them."""
    at = sum(map(len, data))
    data.append(bytes(-at % _ALIGNMENT))
    at += len(data[-1])
    written = DataType.of(array.dtype)
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=element_type(written))
    data.append(encoded(array, name))
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", beside), ("offset", at), ("length", len(data[-1]))):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


class _GraphWriter:
    """Writes one graph of a file. `called` holds the names in the file of outer values."""

    def __init__(
        self, model: Model, file: _File, outer: _GraphWriter | None = None, called: Mapping[Value, str] | None = None
    ) -> None:
        self.model, self._file, self._outer = model, file, outer
        model.infer()
        self._captured = set(called or {})
        self._called = dict(called or {})  # the names in the file
        self._shared: dict[int, str] = {} if outer is None else dict(outer._shared)  # initializers, by the array's id
        self.arrays: dict[str, Array] = {}  # the initializers of this graph, by their names in the file
        self.nodes: list[onnx.NodeProto] = []

    def export(self) -> None:
        """Make the nodes of all layers, and for outputs that no layer makes."""
        if self._outer is None:  # the names of its inputs and outputs are the file's
            self._called |= {value: self._taken(value.name) for value in self.model.inputs}
            self._called |= {value: value.name for value in self.model.outputs}
            self._file.used |= {value.name for value in self._called}
        for value in self.model.constant_values:
            if id(value.constant) in self._shared and not value.is_output:
                self._called[value] = self._shared[id(value.constant)]
            else:
                self._define(value)
        for layer in self.model.layers:
            self._add(layer)
        self._outputs = [self._output(value, index) for index, value in enumerate(self.model.outputs)]

    def proto(self, name: str, tensors: Iterable[onnx.TensorProto] | None = None) -> onnx.GraphProto:
        """Return the graph. `tensors` are its initializers, by default those of `arrays`."""
        if tensors is None:
            tensors = [tensor_of(array, name) for name, array in self.arrays.items()]
        return helper.make_graph(
            self.nodes,
            name,
            [value_info(v.declared or v.spec, self._said(v)) for v in self.model.inputs if v not in self._captured],
            [value_info(_shaped(v), said) for v, said in zip(self.model.outputs, self._outputs, strict=True)],
            list(tensors),
        )

    def _define(self, value: Value) -> None:
        said, array = self._said(value), value.constant
        assert array is not None
        if self._outer is None and value.is_output:  # an output that is an initializer is unusual
            said, target = self._file.names.free(value.name), said
            self.nodes.append(helper.make_node("Identity", [said], [target], name=self._file.titles.free(target)))
        self.arrays[said], self._shared[id(array)] = array, said

    def _output(self, value: Value, index: int) -> str:
        """Return the name of an output. A body's own layer makes each of its outputs, and none is there twice."""
        said = self._said(value)
        if self._outer is None:
            return said
        if value.producer is not None and value not in self.model.outputs[:index]:
            return said
        target = self._file.names.free(value.name)
        self.nodes.append(helper.make_node("Identity", [said], [target], name=self._file.titles.free(target)))
        return target

    def _said(self, value: Value | None) -> str:
        """Return the name that a value has in the file. A constant of the spelling becomes an initializer."""
        if value is None:
            return ""
        if value not in self._called:
            self._called[value] = self._taken(value.name)
            if value.constant is not None:
                self._define(value)
        return self._called[value]

    def _taken(self, name: str) -> str:
        said = self._file.names.free(name) if name in self._file.used else name
        self._file.used.add(said)
        return said

    def _add(self, layer: Layer) -> None:
        try:
            parts = spelled(layer)
        except ModelError as error:
            self._refuse(layer, error)
            return
        if len(parts) != 1 or parts[0] is not layer:
            for part in parts:
                if find_declaration(part.op) is None:  # no shape rule; it makes what the layer made
                    for value in part.results:
                        value.spec = layer.output.spec
                self._add(part)
            return
        try:
            self.nodes.append(self._node(layer))
        except ModelError as error:
            self._refuse(layer, error)

    def _refuse(self, layer: Layer, error: ModelError) -> None:
        self._file.problems.append(f"{layer.name!r} ({layer.op}): {error}")

    def _node(self, layer: Layer) -> onnx.NodeProto:
        given, made = ([None if v is None else v.spec for v in values] for values in (layer.inputs, layer.outputs))
        captures = layer.attributes.get("captures", ())
        own = len(layer.inputs) - len(captures)
        inputs = list(map(self._said, layer.inputs[:own]))
        while inputs and not inputs[-1]:
            inputs.pop()
        around = dict(zip(captures, layer.inputs[own:], strict=True))
        graphs = {name: self._body(body, layer, around, name) for name, body in layer.inner_models.items()}
        title = self._file.titles.free(layer.name)
        outputs = list(map(self._said, layer.outputs))
        least = least_outputs(layer)
        outputs += [""] * (least - len(outputs))  # ONNX requires these outputs, though unread
        free = self._file.names.free
        outputs = [name or (free(f"{title} output {at}") if at < least else "") for at, name in enumerate(outputs)]
        node = node_of(layer, title, inputs, outputs, graphs)
        domain, opset = operator_of(layer)[0], least_opset(layer, node, given[: len(inputs)], made)
        self._file.opsets[domain] = max(opset, self._file.opsets.get(domain, 0))
        return node

    def _body(self, body: Model, layer: Layer, around: Mapping[str, Value | None], name: str) -> onnx.GraphProto:
        """Return a body as a graph. It reads captured values by the names that they have in this graph."""
        called = {value: self._said(around[value.name]) for value in body.inputs if value.name in around}
        graph = _GraphWriter(body, self._file, self, called)
        graph.export()
        return graph.proto(f"{name} of {layer.name}")


def _shaped(value: Value) -> PartialTensor:
    """Return what an output declares, with the inferred shape if it declares none; ONNX wants all that is known."""
    declared = value.declared or value.spec
    if declared.shape is not None:
        return declared
    return PartialTensor(declared.dtype, value.spec.shape, kind=declared.kind, element_kind=declared.element_kind)
