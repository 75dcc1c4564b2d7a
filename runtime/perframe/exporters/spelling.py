"""Layers that ONNX does not have are spelled in layers that it has.

A rule takes a layer and the graph around it, and returns the layers that replace it. These may have rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.layers.channels_last import first, is_data, last
from perframe.layers.epilogue import Stage
from perframe.model import Layer
from perframe.sizes.partial import PartialTensor
from perframe.tensor import DataType

Array = NDArray[Any]


class Graph(Protocol):
    """The graph in which a layer is replaced."""

    def spec(self, name: str) -> PartialTensor:
        """What is known of a value that is made before the layer."""

    def constant(self, value: Array, like: str) -> str:
        """Add a constant, and return its name."""

    def free(self, like: str) -> str:
        """Return a free name for a value."""

    def maker(self, name: str) -> Layer | None:
        """The layer that makes a value."""

    def value(self, name: str) -> Array | None:
        """The value of a constant; None if the name is not that of a constant."""


Rule = Callable[[Layer, Graph], list[Layer]]
_RULES: dict[str, Rule] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Declare a rule for these operators. It returns [layer] where it has nothing to change."""

    def declare(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return declare


def spelled(layer: Layer, graph: Graph) -> list[Layer]:
    """Return the layers that stand for a layer in ONNX; the layer itself, alone, if nothing replaces it."""
    if layer.epilogue:
        return _with_stages(layer, graph)
    if layer.channels_last:
        return _channels_second(layer, graph)
    found = _RULES.get(layer.op)
    return [layer] if found is None else found(layer, graph)


def _with_stages(layer: Layer, graph: Graph) -> list[Layer]:
    middle = graph.free(layer.outputs[0])
    bare = replace(layer, epilogue=(), outputs=[middle])
    dtype = layer.infer([graph.spec(name) if name else None for name in layer.inputs])[0].dtype.numpy
    return [bare, *_stages(layer.epilogue, middle, layer.outputs[0], layer.name, dtype, graph)]


def _stages(stages: Sequence[Stage], source: str, target: str, name: str, dtype: Any, graph: Graph) -> list[Layer]:
    """Return the layers of an epilogue on `source`."""
    layers: list[Layer] = []
    for index, stage in enumerate(stages):
        made = target if index == len(stages) - 1 else graph.free(target)
        inputs = []
        for operand in stage.operands:
            if operand is None:
                inputs.append(source)
            elif isinstance(operand, tuple):
                inner = graph.free(target)
                layers += _stages(operand, source, inner, name, dtype, graph)
                inputs.append(inner)
            else:
                inputs.append(graph.constant(np.array(operand, dtype), target))
        layers.append(Layer(stage.op, f"{name}/{stage.op}", inputs, [made], dict(stage.attributes)))
        source = made
    return layers


def _channels_second(layer: Layer, graph: Graph) -> list[Layer]:
    """Transpose the data before the layer, and the results after it."""
    before, after, inputs, outputs = [], [], [], []
    rank = 0
    for index, name in enumerate(layer.inputs):
        if not name or not is_data(layer.declaration, index):
            inputs.append(name)
            continue
        rank = len(graph.spec(name).shape or ())
        inputs.append(graph.free(name))
        before.append(_transposed(name, inputs[-1], first(range(rank))))
    for name in layer.outputs:
        outputs.append(graph.free(name) if name else "")
        if name:
            after.append(_transposed(outputs[-1], name, last(range(rank))))
    return [*before, replace(layer, channels_last=False, inputs=inputs, outputs=outputs), *after]


def _transposed(source: str, target: str, perm: Sequence[int]) -> Layer:
    return Layer("Transpose", f"{target}/Transpose", [source], [target], {"perm": tuple(perm)})


@rule("Conv")
def _conv(layer: Layer, graph: Graph) -> list[Layer]:
    """Factors of the input become a product, and an addend becomes a sum. Integers become bytes."""
    x, w, *others = layer.inputs
    bias, addend, factor = [*others, "", "", ""][:3]
    if graph.spec(x).dtype is DataType.INT32:
        return _conv_of_bytes(layer, graph)
    if not (addend or factor):
        return [layer]
    layers: list[Layer] = []
    if factor:
        layers.append(Layer("Mul", f"{layer.name}/Mul", [x, factor], [graph.free(x)]))
        x = layers[-1].outputs[0]
    conv = replace(layer, inputs=[x, w, bias] if bias else [x, w])
    layers.append(conv)
    if addend:
        conv.outputs = [graph.free(layer.outputs[0])]
        layers += _sum(layer, conv, addend, graph)
    return layers


def _sum(layer: Layer, conv: Layer, addend: str, graph: Graph) -> list[Layer]:
    """Return the addition of a value to a convolution's result. It may have fewer channels: the others are zeros."""
    layers: list[Layer] = []
    shape, channels = graph.spec(addend).shape, graph.spec(layer.inputs[1]).shape
    assert shape is not None and channels is not None
    missing = (channels[0] or 0) - (shape[1] or 0)  # type: ignore[operator]
    if missing:
        pads = np.zeros(2 * len(shape), np.int64)
        pads[len(shape) + 1] = missing
        padded = graph.free(addend)
        layers.append(Layer("Pad", f"{layer.name}/Pad", [addend, graph.constant(pads, padded)], [padded]))
        addend = padded
    return [*layers, Layer("Add", f"{layer.name}/Add", [conv.outputs[0], addend], layer.outputs)]


def _conv_of_bytes(layer: Layer, graph: Graph) -> list[Layer]:
    """ONNX convolves bytes, less a number, to integers; the importer made int32 of them."""
    x, w = (_bytes(name, graph) for name in layer.inputs[:2])
    if x is None or w is None:
        return [layer]
    conv = replace(layer, op="ConvInteger", inputs=[x[0], w[0], x[1], w[1]])
    if not any(layer.inputs[2:]):
        return [conv]
    rank = len(graph.spec(layer.inputs[0]).shape or ())
    conv.outputs, column = [graph.free(layer.outputs[0])], graph.free(layer.inputs[2])
    shape = graph.constant(np.array([-1, *(1,) * (rank - 2)], np.int64), column)
    return [
        conv,
        Layer("Reshape", f"{layer.name}/Reshape", [layer.inputs[2], shape], [column]),
        Layer("Add", f"{layer.name}/Add", [conv.outputs[0], column], layer.outputs),
    ]


def _bytes(name: str, graph: Graph) -> tuple[str, str] | None:
    """Return the names of bytes and of one number whose difference a value is; None if there are none."""
    value = _known(name, graph)
    if value is not None:
        least = int(value.min(initial=0))
        if int(value.max(initial=0)) - least > 255:
            return None
        return (
            graph.constant((value - least).astype(np.uint8), name),
            graph.constant(np.array(-least, np.uint8), name),
        )
    maker, zero = graph.maker(name), ""
    if maker is not None and maker.op == "Sub":
        zero, maker = maker.inputs[1], graph.maker(maker.inputs[0])
    if maker is None or maker.op != "Cast":
        return None
    dtype = graph.spec(maker.inputs[0]).dtype
    if dtype not in (DataType.UINT8, DataType.INT8):
        return None
    zeros = _known(zero, graph) if zero else np.zeros((), np.int32)
    if zeros is not None and zeros.size == 1:
        return maker.inputs[0], graph.constant(zeros.reshape(()).astype(dtype.numpy), name)
    cast = graph.maker(zero)
    if cast is not None and cast.op == "Reshape":
        cast = graph.maker(cast.inputs[0])
    if cast is None or cast.op != "Cast" or graph.spec(cast.inputs[0]).dtype is not dtype:
        return None
    shape = graph.spec(cast.inputs[0]).shape
    return (maker.inputs[0], cast.inputs[0]) if shape is not None and shape.size == 1 else None


def _known(name: str, graph: Graph) -> Array | None:
    """Return a value of bytes that are known: a model that is not optimized casts, shifts and reshapes its weights."""
    value, maker = graph.value(name), graph.maker(name)
    if value is not None or maker is None or maker.op not in ("Cast", "Sub", "Reshape"):
        return value
    given = [_known(other, graph) for other in maker.inputs]
    if any(other is None for other in given):
        return None
    first, *others = (other for other in given if other is not None)
    match maker.op:
        case "Cast":
            return first.astype(maker.attributes["to"].numpy)
        case "Sub":
            return first - others[0]
    return first.reshape(others[0])


@rule("MatMul")
def _mat_mul(layer: Layer, graph: Graph) -> list[Layer]:
    """Transposed operands are transposed before the product, and a bias is added after it."""
    operands, bias = list(layer.inputs[:2]), (*layer.inputs, "")[2]
    before: list[Layer] = []
    for index, flag in enumerate(("transA", "transB")):
        rank = len(graph.spec(operands[index]).shape or ())
        if layer.attributes.get(flag) and rank > 1:
            turned = graph.free(operands[index])
            before.append(_transposed(operands[index], turned, (*range(rank - 2), rank - 1, rank - 2)))
            operands[index] = turned
    if not before and not bias and not layer.attributes:
        return [layer]
    product = graph.free(layer.outputs[0]) if bias else layer.outputs[0]
    plain = replace(layer, inputs=operands, outputs=[product], attributes={})
    after = [Layer("Add", f"{layer.name}/Add", [product, bias], layer.outputs)] if bias else []
    return [*before, plain, *after]


@rule("MultiplyAdd")
def _multiply_add(layer: Layer, graph: Graph) -> list[Layer]:
    x, scale, shift = layer.inputs
    product = graph.free(layer.outputs[0])
    return [
        Layer("Mul", layer.name, [x, scale], [product]),
        Layer("Add", f"{layer.name}/Add", [product, shift], layer.outputs),
    ]


@rule("RotatePairs")
def _rotate_pairs(layer: Layer, graph: Graph) -> list[Layer]:
    """x * cos + turned * sin, where `turned` joins -b and a of all pairs (a, b)."""
    x, *tables = layer.inputs
    interleaved, output = layer.attributes.get("interleaved", 0), layer.outputs[0]
    layers: list[Layer] = []

    def then(op: str, *inputs: str, made: Sequence[str] = (), **attributes: Any) -> str:
        names = list(made or [graph.free(output)])
        layers.append(Layer(op, f"{layer.name}/{names[0]}", list(inputs), names, attributes))
        return names[0]

    def numbers(*values: int) -> str:
        return graph.constant(np.array(values, np.int64), output)

    def joined(one: str, other: str, dims: int) -> str:
        """Join the first and the second numbers of all pairs. `dims` come before them."""
        if not interleaved:
            return then("Concat", one, other, axis=-1)
        both = [then("Unsqueeze", name, numbers(-1)) for name in (one, other)]
        return then("Reshape", then("Concat", *both, axis=-1), numbers(*(0,) * dims, size))

    shape = graph.spec(x).shape
    assert shape is not None and isinstance(shape[-1], int)
    size = shape[-1]
    if interleaved:
        a, b = (then("Slice", x, numbers(k), numbers(size), numbers(-1), numbers(2)) for k in range(2))
    else:
        a, b = graph.free(output), graph.free(output)
        then("Split", x, made=[a, b], axis=-1, num_outputs=2)
    turned = joined(then("Neg", b), a, len(shape) - 1)
    for index, table in enumerate(tables):
        known = graph.spec(table).shape
        if known is not None and known[-1] != size:
            tables[index] = joined(table, table, len(known) - 1)
    then("Add", then("Mul", x, tables[0]), then("Mul", turned, tables[1]), made=[output])
    return layers


@rule("Pass", "Copy")
def _identity(layer: Layer, graph: Graph) -> list[Layer]:
    return [replace(layer, op="Identity")]


@rule("TrainingDropout")
def _dropout(layer: Layer, graph: Graph) -> list[Layer]:
    return [replace(layer, op="Dropout")]


@rule("SuppressNonMaxima")
def _non_max_suppression(layer: Layer, graph: Graph) -> list[Layer]:
    """ONNX's operator makes no empty rows, so FilledRows has nothing to drop."""
    return [replace(layer, op="NonMaxSuppression")]


@rule("FilledRows")
def _filled_rows(layer: Layer, graph: Graph) -> list[Layer]:
    maker = graph.maker(layer.inputs[0])
    if maker is not None and maker.op == "SuppressNonMaxima":
        return [replace(layer, op="Identity")]
    column, empty, filled = (graph.free(layer.outputs[0]) for _ in range(3))
    index, sign = (graph.constant(np.array(number, np.int64), column) for number in (0, -1))
    return [
        Layer("Gather", f"{layer.name}/Gather", [layer.inputs[0], index], [column], {"axis": 1}),
        Layer("Equal", f"{layer.name}/Equal", [column, sign], [empty]),
        Layer("Not", f"{layer.name}/Not", [empty], [filled]),
        Layer("Compress", layer.name, [layer.inputs[0], filled], layer.outputs, {"axis": 0}),
    ]


@rule("Split")
def _split(layer: Layer, graph: Graph) -> list[Layer]:
    """Outputs that no layer reads get names, because ONNX counts them."""
    missing = [""] * (layer.attributes["num_outputs"] - len(layer.outputs))
    if not missing and "" not in layer.outputs:
        return [layer]
    return [replace(layer, outputs=[name or graph.free(layer.outputs[0]) for name in (*layer.outputs, *missing)])]
