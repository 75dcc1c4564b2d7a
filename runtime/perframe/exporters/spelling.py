"""Layers that ONNX does not have are spelled in layers that it has.

A rule takes a layer and returns the layers that replace it. These may have rules of their own; they are not part of
the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from perframe.exporters.formulas import of_formula
from perframe.ir import Layer, Value
from perframe.ir.channels_last import first, last
from perframe.ir.declaration import find_declaration
from perframe.ir.epilogue import Stage
from perframe.tensor import DataType

Array = NDArray[Any]

# layers that differ from ONNX's in their names alone
_RENAMED = {"Pass": "Identity", "Copy": "Identity", "TrainingDropout": "Dropout"}
_RENAMED["SuppressNonMaxima"] = "NonMaxSuppression"

Rule = Callable[[Layer], list[Layer]]
_RULES: dict[str, Rule] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Declare a rule for these operators. It returns [layer] where it has nothing to change."""

    def declare(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, function))
        return function

    return declare


def spelled(layer: Layer) -> list[Layer]:
    """Return the layers that stand for a layer in ONNX; the layer itself, alone, if nothing replaces it.

    Raises ModelError if ONNX has no operators for its formula.
    """
    if layer.epilogue:
        return _with_stages(layer)
    if layer.channels_last:
        return _channels_second(layer)
    if layer.op in _RENAMED:
        return [layer.changed(op=_RENAMED[layer.op])]
    found = _RULES.get(layer.op)
    if found is not None:
        return found(layer)
    entry = find_declaration(layer.op)
    is_formula = entry is not None and entry.formula is not None
    return of_formula(layer) if is_formula and "::" not in layer.op and not onnx.defs.has(layer.op) else [layer]


def _constant(array: Array, like: Value) -> Value:
    return Value(like.name, constant=array)


def _with_stages(layer: Layer) -> list[Layer]:
    bare = layer.changed(epilogue=(), outputs=[Value(layer.output.name)])
    dtype = layer.infer([None if value is None else value.spec for value in layer.inputs])[0].dtype.numpy
    return [bare, *_stages(layer.epilogue, bare.output, layer.output, layer.name, dtype)]


def _stages(stages: Sequence[Stage], source: Value, target: Value, name: str, dtype: Any) -> list[Layer]:
    """Return the layers of an epilogue on `source`."""
    layers: list[Layer] = []
    for index, stage in enumerate(stages):
        made = target if index == len(stages) - 1 else Value(target.name)
        inputs = []
        for operand in stage.operands:
            if operand is None:
                inputs.append(source)
            elif isinstance(operand, tuple):
                inner = Value(target.name)
                layers += _stages(operand, source, inner, name, dtype)
                inputs.append(inner)
            else:
                inputs.append(_constant(np.array(operand, dtype), target))
        layers.append(Layer(stage.op, f"{name}/{stage.op}", inputs, [made], dict(stage.attributes)))
        source = made
    return layers


def _channels_second(layer: Layer) -> list[Layer]:
    """Transpose the data before the layer, and the results after it."""
    before, after = list[Layer](), list[Layer]()
    inputs, outputs = list[Value | None](), list[Value | None]()
    rank = 0
    for index, value in enumerate(layer.inputs):
        if value is None or not layer.declaration.is_spatial(index):
            inputs.append(value)
            continue
        rank = len(value.spec.shape or ())
        before.append(_transposed(value, Value(value.name), first(range(rank))))
        inputs.append(before[-1].output)
    for value in layer.outputs:
        outputs.append(None if value is None else Value(value.name))
        if value is not None:
            after.append(_transposed(outputs[-1], value, last(range(rank))))
    return [*before, layer.changed(channels_last=False, inputs=inputs, outputs=outputs), *after]


def _transposed(source: Value | None, target: Value, perm: Sequence[int]) -> Layer:
    return Layer("Transpose", f"{target.name}/Transpose", [source], [target], {"perm": tuple(perm)})


@rule("Conv")
def _conv(layer: Layer) -> list[Layer]:
    """Factors of the input become a product, and an addend becomes a sum. Integers become bytes."""
    x, w, bias, addend, factor = layer.x, layer.w, layer.b, layer.addend, layer.factor
    if x.spec.dtype is DataType.INT32:
        return _conv_of_bytes(layer)
    if addend is None and factor is None:
        return [layer]
    layers: list[Layer] = []
    if factor is not None:
        layers.append(Layer("Mul", f"{layer.name}/Mul", [x, factor], [x.name]))
        x = layers[-1].output
    made = layer.output if addend is None else Value(layer.output.name)
    layers.append(layer.changed(inputs=[x, w] if bias is None else [x, w, bias], outputs=[made]))
    return layers if addend is None else [*layers, *_sum(layer, made, addend)]


def _sum(layer: Layer, product: Value, addend: Value) -> list[Layer]:
    """Return the addition of a value to a convolution's result. It may have fewer channels: the others are zeros."""
    layers: list[Layer] = []
    shape, channels = addend.spec.shape, layer.w.spec.shape
    assert shape is not None and channels is not None
    missing = (channels[0] or 0) - (shape[1] or 0)  # type: ignore[operator]
    if missing:
        pads = np.zeros(2 * len(shape), np.int64)
        pads[len(shape) + 1] = missing
        layers.append(Layer("Pad", f"{layer.name}/Pad", [addend, _constant(pads, addend)], [addend.name]))
        addend = layers[-1].output
    return [*layers, Layer("Add", f"{layer.name}/Add", [product, addend], layer.outputs)]


def _conv_of_bytes(layer: Layer) -> list[Layer]:
    """ONNX convolves bytes, less a number, to integers; the importer made int32 of them."""
    x, w, bias = _bytes(layer.x), _bytes(layer.w), layer.b
    if x is None or w is None:
        return [layer]
    if bias is None:
        return [layer.changed(op="ConvInteger", inputs=[x[0], w[0], x[1], w[1]])]
    rank = len(layer.x.spec.shape or ())
    conv = layer.changed(op="ConvInteger", inputs=[x[0], w[0], x[1], w[1]], outputs=[Value(layer.output.name)])
    shape = _constant(np.array([-1, *(1,) * (rank - 2)], np.int64), bias)
    column = Layer("Reshape", f"{layer.name}/Reshape", [bias, shape], [bias.name])
    return [conv, column, Layer("Add", f"{layer.name}/Add", [conv.output, column.output], layer.outputs)]


def _bytes(value: Value) -> tuple[Value, Value] | None:
    """Return bytes and one number whose difference a value is; None if there are none."""
    known = _known(value)
    if known is not None:
        least = int(known.min(initial=0))
        if int(known.max(initial=0)) - least > 255:
            return None
        return _constant((known - least).astype(np.uint8), value), _constant(np.array(-least, np.uint8), value)
    maker, zero = value.producer, None
    if maker is not None and maker.op == "Sub":
        zero, maker = maker.input(1), maker.input(0).producer
    if maker is None or maker.op != "Cast":
        return None
    source = maker.input(0)
    dtype = source.spec.dtype
    if dtype not in (DataType.UINT8, DataType.INT8):
        return None
    zeros = np.zeros((), np.int32) if zero is None else _known(zero)
    if zeros is not None and zeros.size == 1:
        return source, _constant(zeros.reshape(()).astype(dtype.numpy), value)
    cast = None if zero is None else zero.producer
    if cast is not None and cast.op == "Reshape":
        cast = cast.input(0).producer
    if cast is None or cast.op != "Cast" or cast.input(0).spec.dtype is not dtype:
        return None
    shape = cast.input(0).spec.shape
    return (source, cast.input(0)) if shape is not None and shape.size == 1 else None


def _known(value: Value) -> Array | None:
    """Return a value of bytes that are known: a model that is not optimized casts, shifts and reshapes its weights."""
    maker = value.producer
    if value.constant is not None or maker is None or maker.op not in ("Cast", "Sub", "Reshape"):
        return value.constant
    given = [_known(other) for other in maker.operands]
    if any(other is None for other in given):
        return None
    first, *others = (other for other in given if other is not None)
    match maker.op:
        case "Cast":
            return first.astype(maker.to.numpy)
        case "Sub":
            return first - others[0]
    return first.reshape(others[0])


@rule("MatMul")
def _mat_mul(layer: Layer) -> list[Layer]:
    """Transposed operands are transposed before the product, and a bias is added after it."""
    operands, bias = list(layer.operands[:2]), layer.bias
    before: list[Layer] = []
    for index, is_turned in enumerate((layer.transA, layer.transB)):
        value = operands[index]
        rank = len(value.spec.shape or ())
        if is_turned and rank > 1:
            before.append(_transposed(value, Value(value.name), (*range(rank - 2), rank - 1, rank - 2)))
            operands[index] = before[-1].output
    if not before and bias is None and not layer.attributes:
        return [layer]
    product = layer.output if bias is None else Value(layer.output.name)
    plain = layer.changed(inputs=operands, outputs=[product], attributes={})
    after = [] if bias is None else [Layer("Add", f"{layer.name}/Add", [product, bias], layer.outputs)]
    return [*before, plain, *after]


@rule("RotatePairs")
def _rotate_pairs(layer: Layer) -> list[Layer]:
    """x * cos + turned * sin, where `turned` joins -b and a of all pairs (a, b)."""
    x, *tables = layer.operands
    interleaved, output = layer.interleaved, layer.output
    layers: list[Layer] = []

    def then(op: str, *inputs: Value, made: Sequence[Value] = (), **attributes: Any) -> Value:
        layers.append(Layer(op, f"{layer.name}/{op}", inputs, made or [output.name], attributes))
        return layers[-1].output

    def numbers(*values: int) -> Value:
        return _constant(np.array(values, np.int64), output)

    def joined(one: Value, other: Value, dims: int) -> Value:
        """Join the first and the second numbers of all pairs. `dims` come before them."""
        if not interleaved:
            return then("Concat", one, other, axis=-1)
        both = [then("Unsqueeze", value, numbers(-1)) for value in (one, other)]
        return then("Reshape", then("Concat", *both, axis=-1), numbers(*(0,) * dims, size))

    shape = x.spec.shape
    assert shape is not None and isinstance(shape[-1], int)
    size = shape[-1]
    if interleaved:
        a, b = (then("Slice", x, numbers(k), numbers(size), numbers(-1), numbers(2)) for k in range(2))
    else:
        a, b = Value(output.name), Value(output.name)
        then("Split", x, made=[a, b], axis=-1, num_outputs=2)
    turned = joined(then("Neg", b), a, len(shape) - 1)
    for index, table in enumerate(tables):
        known = table.spec.shape
        if known is not None and known[-1] != size:
            tables[index] = joined(table, table, len(known) - 1)
    then("Add", then("Mul", x, tables[0]), then("Mul", turned, tables[1]), made=[output])
    return layers


@rule("FilledRows")
def _filled_rows(layer: Layer) -> list[Layer]:
    """ONNX's NonMaxSuppression makes no empty rows, so that there is nothing to drop behind it."""
    rows: Value = layer.input(0)
    if rows.producer is not None and rows.producer.op == "SuppressNonMaxima":
        return [layer.changed(op="Identity")]
    column, empty, filled = (Value(layer.output.name) for _ in range(3))
    index, sign = (_constant(np.array(number, np.int64), column) for number in (0, -1))
    return [
        Layer("Gather", f"{layer.name}/Gather", [rows, index], [column], {"axis": 1}),
        Layer("Equal", f"{layer.name}/Equal", [column, sign], [empty]),
        Layer("Not", f"{layer.name}/Not", [empty], [filled]),
        Layer("Compress", layer.name, [rows, filled], layer.outputs, {"axis": 0}),
    ]


@rule("Split")
def _split(layer: Layer) -> list[Layer]:
    """Outputs that no layer reads get names, because ONNX counts them."""
    count = layer.num_outputs - len(layer.outputs)
    if not count and None not in layer.outputs:
        return [layer]
    outputs = [value or Value(f"{layer.name} unread") for value in (*layer.outputs, *(None,) * count)]
    return [layer.changed(outputs=outputs)]
