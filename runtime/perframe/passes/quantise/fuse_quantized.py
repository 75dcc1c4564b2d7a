"""Products of dequantized operands become 8-bit products.

A model may write such a product in two ways. Either the operands are dequantized, the product is one of floats,
and its result is quantized. Or the operands are int32 without their zero points, and after their product come a cast, a
factor and a quantization.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.epilogue import apply
from perframe.passes.match import constant_of, may_fold
from perframe.passes.quantise.quantization import (
    Numbers,
    is_one,
    is_usual,
    numbers_of,
    quantization,
    whole_constant,
    whole_numbers,
)
from perframe.safety.records import dataclass
from perframe.tensor import DataType

SUMS = 1 << 31  # the first number that int32 sums do not hold
LEAST_DEPTH = 16  # of a group of channels: with fewer, products of floats are as fast or faster
NAMES = {"Conv": "QuantizedConv", "MatMul": "QuantizedMatMul", "Gemm": "QuantizedMatMul"}


@dataclass
class _Operands:
    """A product's operands: quantized data and constant weights, with the axis of their columns."""

    x: Numbers
    w: NDArray[Any]
    w_zero: NDArray[Any] | None
    w_scale: NDArray[Any] | None
    bias: NDArray[Any] | None = None


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of fused products."""
    fused = 0
    for layer in model.walk():
        if layer.op in NAMES and not layer.inputs[3:] and (layer.op != "Conv" or _rank(layer) in (3, 4)):
            whole = layer.output.spec.dtype is DataType.INT32
            fused += _fuse_whole(model, layer) if whole else _fuse_real(model, layer)
    return fused


def _rank(layer: Layer) -> int:
    shape = layer.input(0).spec.shape
    return 0 if shape is None else len(shape)


# --- products of floats ---


def _fuse_real(model: Model, layer: Layer) -> bool:
    operands = _real_operands(layer)
    if operands is None or operands.x.scale is None or operands.w_scale is None:
        return False
    grouped = layer.op == "Conv" and layer.group > 1
    if grouped and 1 < operands.w.shape[1] < LEAST_DEPTH:
        return False
    scale = operands.x.scale * operands.w_scale
    rounds = layer.output.only_user
    to = quantization(rounds) if rounds is not None and rounds.op == "QuantizeLinear" else None
    to = to if to is not None and may_fold(scale, to.scale) else None
    clamps = all(stage.limits is not None for stage in layer.epilogue)
    if rounds is None or to is None or not clamps:
        if grouped and operands.w.shape[1] == 1:
            return False  # the kernel for each channel by itself makes bytes only, and that of floats is faster
        # if the result is not quantized again, the sums become floats
        _rewrite(model, layer, operands, scale)
        return True
    zero = int(to.zero.reshape(()))
    kind = np.iinfo(to.zero.dtype)
    real = apply(layer.epilogue, np.array([-np.inf, np.inf], np.float32))
    low, high = (int(value) for value in np.clip(np.rint(real / to.scale) + zero, kind.min, kind.max))
    layer.epilogue = ()
    if operands.bias is not None and operands.bias.dtype == np.float32:
        operands.bias = operands.bias / to.scale
    _rewrite(model, layer, operands, scale / to.scale, to.zero)
    layer.attributes |= {"low": low, "high": high}
    model.absorb(layer, rounds)
    return True


def _real_operands(layer: Layer) -> _Operands | None:
    x, weights = numbers_of(layer.input(0)), layer.input(1).producer
    if x is None or x.scale is None or weights is None or weights.op != "DequantizeLinear":
        return None
    w, scale, zero = (constant_of(value) for value in (weights.x, weights.scale, weights.zero_point))
    if w is None or scale is None or w.dtype not in (np.int8, np.uint8) or scale.dtype != np.float32:
        return None
    if not is_usual(scale):
        return None
    if weights.block_size or (weights.zero_point is not None and zero is None):
        return None
    axis = _column_axis(layer, w)
    if axis is None or (scale.size > 1 and weights.axis % w.ndim != axis):
        return None
    if layer.op != "Conv" and axis == 0:
        w = np.ascontiguousarray(w.T)
    scale = scale.reshape(-1) if scale.size > 1 else scale.reshape(())
    operands, columns = _Operands(x, w, zero, scale), w.shape[0 if layer.op == "Conv" else 1]
    reach = _reach(layer, w, zero)
    if reach.max(initial=0) >= SUMS or not may_fold(x.scale, scale):
        return None
    added = layer.inputs[2] if layer.inputs[2:] else None
    if added is not None:
        bias = _bias(added, x.scale * scale, reach)
        if bias is None or bias.shape not in ((columns,), (1, columns), (1,), ()):
            return None
        operands.bias = np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), columns))
    return operands


def _reach(layer: Layer, w: NDArray[Any], zero: NDArray[Any] | None) -> NDArray[np.int64]:
    """The largest absolute value that the sum of a column's products with bytes may have."""
    axis = 0 if layer.op == "Conv" else 1
    columns = np.moveaxis(w, axis, -1).reshape(-1, w.shape[axis])
    whole = columns.astype(np.int64) - (0 if zero is None else zero.astype(np.int64).reshape(-1))
    reach: NDArray[np.int64] = np.abs(whole).sum(0) * 255
    return reach


def _column_axis(layer: Layer, w: NDArray[Any]) -> int | None:
    """Return the axis of the weights' columns; None for a product that cannot be fused."""
    if layer.op == "Conv":
        return 0
    if w.ndim != 2 or layer.transA or (layer.op == "Gemm" and (layer.alpha != 1 or layer.beta != 1)):
        return None
    return 0 if layer.transB else 1


def _bias(value: Value, unit: NDArray[Any], reach: NDArray[np.int64]) -> NDArray[Any] | None:
    """Return a constant bias: int32 if its scale is `unit`, the scale of the sums, and if int32 holds its sum with
    values up to `reach`; else float32. None if it has no usable form.
    """
    found = value.constant
    if found is not None:
        return found if found.dtype == np.float32 else None
    made = value.producer
    if made is None or made.op != "DequantizeLinear":
        return None
    values, scale = made.x.constant, made.scale.constant
    zero = np.zeros((), np.int32) if made.zero_point is None else made.zero_point.constant
    if values is None or scale is None or zero is None or zero.any() or values.dtype != np.int32 or values.ndim > 1:
        return None
    fits = (reach + np.abs(values.astype(np.int64))).max(initial=0) < SUMS if values.size in (1, reach.size) else False
    is_whole = fits and np.allclose(scale, unit, 1e-5, 0)
    made_of: NDArray[Any] = values if is_whole else (values.astype(np.float32) * scale).astype(np.float32)
    return made_of


# --- products of integers ---


def _fuse_whole(model: Model, layer: Layer) -> bool:
    x, weights = whole_numbers(model, layer.input(0)), layer.input(1).constant
    w = None if weights is None else whole_constant(weights, 0 if layer.op == "Conv" else -1)
    bias = constant_of(layer.inputs[2] if layer.inputs[2:] else None)
    if x is None or w is None or (layer.op != "Conv" and w[0].ndim != 2) or (layer.inputs[2:] and bias is None):
        return False
    operands = _Operands(x, w[0], w[1], None, bias)
    factor = _take_factor(model, layer, operands)
    if factor is None:
        _rewrite(model, layer, operands, None)
        return True
    dynamic, scale = factor
    rounds = layer.output.only_user
    to = quantization(rounds) if rounds is not None and rounds.op == "QuantizeLinear" else None
    if rounds is None or to is None or not is_one(to.scale):
        _take_bias(model, layer, operands)
        _rewrite(model, layer, operands, scale, x_scale=dynamic)
        return True
    _rewrite(model, layer, operands, scale, to.zero, dynamic)
    model.absorb(layer, rounds)
    return True


def _take_factor(model: Model, layer: Layer, operands: _Operands) -> tuple[Value | None, NDArray[Any]] | None:
    """Fuse the cast and the multiplication after the layer, and return their factors; None if there are none.

    The factors are (a value of one number, the constants of the columns).
    """
    cast = layer.output.only_user
    if cast is None or cast.op != "Cast" or cast.output.spec.dtype is not DataType.FLOAT32 or cast.epilogue:
        return None
    scales = cast.output.only_user
    if scales is None or scales.op != "Mul" or scales.epilogue:
        return None
    other = scales.input(1) if scales.inputs[0] is cast.output else scales.input(0)
    shapes = [value.spec.shape for value in (cast.output, scales.output)]
    if other is cast.output or None in shapes or len({len(shape or ()) for shape in shapes}) != 1:
        return None
    found = _factor(other, layer, operands)
    if found is not None:
        model.absorb(layer, cast)
        model.absorb(layer, scales)
    return found


def _take_bias(model: Model, layer: Layer, operands: _Operands) -> None:
    """Fuse an addition of a number to each column after the layer, if there is one."""
    adds = layer.output.only_user
    if operands.bias is not None or layer.op == "Conv" or adds is None or adds.op != "Add":
        return
    other = adds.input(1) if adds.inputs[0] is layer.output else adds.input(0)
    value, columns = other.constant, operands.w.shape[-1]
    if value is not None and value.dtype == np.float32 and value.shape == (columns,):
        operands.bias, layer.epilogue = value, adds.epilogue
        model.absorb(layer, adds)


def _factor(number: Value, layer: Layer, operands: _Operands) -> tuple[Value | None, NDArray[Any]] | None:
    columns = operands.w.shape[0 if layer.op == "Conv" else -1]
    after = operands.w.ndim - 2 if layer.op == "Conv" else 0
    value = number.constant
    if value is not None:
        return (None, value.reshape(-1)) if _is_of_columns(value, columns, after) else None
    made = number.producer
    for one, others in (made.operands, made.operands[::-1]) if made is not None and made.op == "Mul" else ():
        value, shape = others.constant, one.spec.shape
        if value is not None and shape is not None and shape.size == 1 and _is_of_columns(value, columns, after):
            return one, value.reshape(-1)
    whole = number.spec.shape
    return (number, np.ones((), np.float32)) if whole is not None and whole.size == 1 else None


def _is_of_columns(value: NDArray[Any], columns: int, after: int) -> bool:
    """Whether a constant holds one number, or one for each column, which `after` dims follow."""
    if value.dtype != np.float32:
        return False
    shape = value.shape[: value.ndim - after]
    return value.size == 1 or (value.size == columns and value.ndim > after and shape[-1] == columns)


# --- the new layer ---


def _rewrite(
    model: Model,
    layer: Layer,
    operands: _Operands,
    scale: NDArray[Any] | None,
    y_zero: NDArray[Any] | None = None,
    x_scale: Value | None = None,
) -> None:
    """Turn the layer into one that multiplies quantized numbers."""

    def constant(name: str, value: NDArray[Any] | None) -> Value | None:
        return None if value is None else model.add_constant(f"{name} of {layer.name}", value)

    w_zero = operands.w_zero if operands.w_zero is not None and operands.w_zero.any() else None
    scales = None if scale is None else np.asarray(scale, np.float32)
    bias = None if operands.bias is None else np.ascontiguousarray(operands.bias)
    inputs = [operands.x.bytes, constant("weights", operands.w), constant("bias", bias), operands.x.zero]
    inputs += [constant("zero points", w_zero), x_scale, constant("scales", scales), constant("zero", y_zero)]
    while inputs[-1] is None:
        inputs.pop()
    layer.inputs = inputs
    attributes = layer.attributes if layer.op == "Conv" else {}
    layer.op, layer.attributes = NAMES[layer.op], dict(attributes)
