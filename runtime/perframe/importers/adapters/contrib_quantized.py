"""Adapters of com.microsoft: quantized operators, computed in floats, and products with packed weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.importers.adapters import adapter
from perframe.importers.adapters.chain import Chain
from perframe.importers.adapters.contrib import MICROSOFT, channels_first, channels_last
from perframe.importers.adapters.quantized import whole
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.tensor import DataType

EIGHT_BITS = 4  # the accuracy_level that lets a product round its left operand to 8 bits


def _real(chain: Chain, x: Value | None, scale: Value | None, zero: Value | None, **attributes: Any) -> Value:
    """Add nodes that turn a quantized value into floats."""
    return chain("DequantizeLinear", x, *_parameters(chain, scale, zero), **attributes)


def _quantized(chain: Chain, x: Value | None, scale: Value | None, zero: Value | None, **attributes: Any) -> Value:
    return chain("QuantizeLinear", x, *_parameters(chain, scale, zero), **attributes)


def _parameters(chain: Chain, scale: Value | None, zero: Value | None) -> list[Value | None]:
    """Return scale and zero point; those of one element are reshaped to scalars."""
    given = [scale, zero] if zero else [scale]
    shape = chain.spec(scale).shape
    if shape is not None and len(shape) and shape.size == 1:
        return [chain("Reshape", name, chain.ints()) for name in given]
    return given


@adapter(f"{MICROSOFT}QuantizeLinear", f"{MICROSOFT}DequantizeLinear")
def _linear(node: Node) -> list[Node]:
    chain = Chain(node)
    x, scale, zero = chain.inputs(3)
    return chain.done(chain(node.op, x, *_parameters(chain, scale, zero), axis=chain.get("axis", 1)))


@adapter(f"{MICROSOFT}QLinearAdd", f"{MICROSOFT}QLinearMul")
def _q_linear_pair(node: Node) -> list[Node]:
    chain = Chain(node)
    given = chain.inputs(8)
    result = chain(node.op.removeprefix("QLinear"), _real(chain, *given[:3]), _real(chain, *given[3:6]))
    return chain.done(_quantized(chain, result, *given[6:]))


@adapter(f"{MICROSOFT}QLinearWhere")
def _q_linear_where(node: Node) -> list[Node]:
    chain = Chain(node)
    condition, *given = chain.inputs(9)
    result = chain("Where", condition, _real(chain, *given[:3]), _real(chain, *given[3:6]))
    return chain.done(_quantized(chain, result, *given[6:]))


@adapter(*(MICROSOFT + op for op in ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")))
def _q_linear_activation(node: Node) -> list[Node]:
    chain, attributes = Chain(node), dict(node.attributes)
    x, scale, zero, y_scale, y_zero = chain.inputs(5)
    real, opset = _real(chain, x, scale, zero), attributes.pop("opset", 13)
    if node.op == "QLinearSoftmax" and opset < 13 and attributes.get("axis", -1) not in (-1, chain.rank(x) - 1):
        raise NotImplementedError(f"opset={opset} with axis={attributes['axis']}: only the last axis is supported")
    result = chain(node.op.removeprefix("QLinear"), real, **attributes)
    return chain.done(_quantized(chain, result, y_scale, y_zero))


@adapter(f"{MICROSOFT}QLinearGlobalAveragePool", f"{MICROSOFT}QLinearAveragePool")
def _q_linear_pool(node: Node) -> list[Node]:
    chain, attributes = Chain(node), dict(node.attributes)
    x, scale, zero, y_scale, y_zero = chain.inputs(5)
    last, result = attributes.pop("channels_last", 0), _real(chain, x, scale, zero)
    rank = chain.rank(x) if last else 0
    result = channels_first(chain, result, rank) if last else result
    result = chain(node.op.removeprefix("QLinear"), result, **attributes)
    result = channels_last(chain, result, rank) if last else result
    return chain.done(_quantized(chain, result, y_scale, y_zero))


@adapter(f"{MICROSOFT}QLinearConcat")
def _q_linear_concat(node: Node) -> list[Node]:
    chain = Chain(node)
    y_scale, y_zero, *rest = node.inputs
    parts = [_real(chain, *rest[index : index + 3]) for index in range(0, len(rest), 3)]
    return chain.done(_quantized(chain, chain("Concat", *parts, axis=node.attributes["axis"]), y_scale, y_zero))


@adapter(f"{MICROSOFT}QLinearConv")
def _q_linear_conv(node: Node) -> list[Node]:
    """ONNX's QLinearConv, and a form with the channels last."""
    chain, attributes = Chain(node), dict(node.attributes)
    last, rank = attributes.pop("channels_last", 0), chain.rank(node.inputs[0])
    x = channels_first(chain, node.inputs[0], rank) if last else node.inputs[0]
    result = chain("QLinearConv", x, *node.inputs[1:], **attributes)
    if not last:
        return chain.done(result)
    return chain.done(channels_last(chain, result, rank))


@adapter(f"{MICROSOFT}QGemm")
def _q_gemm(node: Node) -> list[Node]:
    """alpha * A B + C. C has integers in the scale of the products. Without a scale of Y the result is real."""
    chain = Chain(node)
    a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero = chain.inputs(9)
    columns = chain.get("transB", 0)
    left, right = _real(chain, a, a_scale, a_zero), _real(chain, b, b_scale, b_zero, axis=0 if columns else 1)
    given = [left, right]
    alpha, flips = chain.get("alpha", 1.0), {name: chain.get(name, 0) for name in ("transA", "transB")}
    if c:
        unit = chain("Mul", chain("Mul", a_scale, b_scale), chain.number(alpha))
        given.append(chain("Mul", chain("Cast", c, to=DataType.FLOAT32), unit))
    result = chain("Gemm", *given, alpha=alpha, **flips)
    return chain.done(_quantized(chain, result, y_scale, y_zero) if y_scale else result)


@adapter(f"{MICROSOFT}MatMulIntegerToFloat")
def _mat_mul_integer_to_float(node: Node) -> list[Node]:
    chain = Chain(node)
    a, b, a_scale, b_scale, a_zero, b_zero, bias = chain.inputs(7)
    product = chain("MatMul", whole(chain, a, a_zero), whole(chain, b, b_zero))
    real = chain("Cast", product, to=chain.spec(a_scale).dtype)
    return chain.done(chain.sum(chain("Mul", real, chain("Mul", a_scale, b_scale)), bias))


@adapter(f"{MICROSOFT}DynamicQuantizeMatMul")
def _dynamic_quantize_mat_mul(node: Node) -> list[Node]:
    """A is quantized to 0…255 by its own range, which contains 0."""
    chain = Chain(node)
    a, b, b_scale, b_zero, bias = chain.inputs(5)
    quantized, step, zero = chain.several(3, "DynamicQuantizeLinear", a)
    product = chain("MatMul", whole(chain, quantized, zero), whole(chain, b, b_zero))
    real = chain("Cast", product, to=DataType.FLOAT32)
    return chain.done(chain.sum(chain("Mul", real, chain("Mul", step, b_scale)), bias))


@adapter(f"{MICROSOFT}DynamicQuantizeLSTM")
def _dynamic_quantize_lstm(node: Node) -> list[Node]:
    """An LSTM whose weights are bytes, (directions, depth, gates). Each product quantizes its other side by its own
    range: all inputs at once, and the state step by step.
    """
    chain = Chain(node)
    x, w, r, *others = chain.inputs(12)
    w_scale, w_zero, r_scale, r_zero = others[5:]
    rounded = chain("DequantizeLinear", *chain.several(3, "DynamicQuantizeLinear", x))
    weights = [_rows(chain, w, w_scale, w_zero), _rows(chain, r, r_scale, r_zero)]
    outputs = chain.several(len(node.outputs), "QuantizedLSTM", rounded, *weights, *others[:5], **node.attributes)
    return chain.done(*outputs)


def _rows(chain: Chain, weights: Value | None, scale: Value | None, zero: Value | None) -> Value:
    """Return weights as floats, (directions, gates, depth). A direction has a scale, or one for each gate."""
    scales, zeros = (chain("Reshape", name, chain.ints(0, 1, -1)) if name else None for name in (scale, zero))
    whole_numbers = chain("Cast", weights, to=DataType.FLOAT32)
    if zeros:
        whole_numbers = chain("Sub", whole_numbers, chain("Cast", zeros, to=DataType.FLOAT32))
    return chain("Transpose", chain("Mul", whole_numbers, scales), perm=[0, 2, 1])


@adapter(f"{MICROSOFT}MatMulNBits")
def _mat_mul_n_bits(node: Node) -> list[Node]:
    """Weights of 2, 4 or 8 bits. Each block of them along K has a scale; blocks in any order are dequantized here."""
    chain = Chain(node)
    chain.refuse("weight_prepacked")
    a, packed, scales, zeros, groups, bias = chain.inputs(6)
    bits, block = chain.get("bits", 4), node.attributes["block_size"]
    rows, depth = node.attributes["N"], node.attributes["K"]
    if bits not in (2, 4, 8):
        raise NotImplementedError(f"bits={bits} is not supported: weights have 2, 4 or 8")
    shape = rows, -(-depth // block)
    codes = _unpack(chain.value(packed).reshape(rows, -1), bits)[:, :depth]
    block_of = chain.value(groups) if groups else np.arange(depth) // block
    scale, zero = chain.value(scales).reshape(shape), chain.value(zeros) if zeros else None
    if zero is not None:
        zero = _unpack(zero.reshape(rows, -1), bits)[:, : shape[1]] if zero.dtype == np.uint8 else zero
        zero = zero.reshape(shape)
    in_order, middle = (block_of == np.arange(depth) // block).all(), 1 << (bits - 1)
    is_whole = zero is None or zero.dtype == np.uint8
    if in_order and is_whole and scale.dtype == chain.spec(a).dtype.numpy:
        weights = _in_blocks(chain, codes, scale, zero, bits, block)
        turned, rounds = chain("Transpose", weights, perm=[1, 0]), int(chain.get("accuracy_level", 0) == EIGHT_BITS)
        return chain.done(chain.sum(chain("MatMul", a, turned, rounds=rounds), bias))
    given = middle if zero is None else zero.astype(np.float32)[:, block_of]
    real = (codes.astype(np.float32) - given) * scale.astype(np.float32)[:, block_of]
    right = chain.number(np.ascontiguousarray(real.T), a)
    return chain.done(chain.sum(chain("MatMul", a, right), bias))


@adapter(f"{MICROSOFT}GatherBlockQuantized")
def _gather_block_quantized(node: Node) -> list[Node]:
    """Rows of a table whose last axis has blocks of small numbers. Bytes hold one, two or four of them."""
    chain = Chain(node)
    data, indices, scales, zeros = chain.inputs(4)
    codes, scale, zero = chain.value(data), chain.value(scales), chain.value(zeros) if zeros else None
    bits, block, axis = chain.get("bits", 4), chain.get("block_size", 128), chain.get("quantize_axis", 1)
    if chain.get("gather_axis", 0) or axis not in (-1, codes.ndim - 1):
        raise NotImplementedError("only a table whose rows are gathered, with blocks on its last axis, is supported")
    if codes.dtype == np.uint8:
        zero = None if zero is None else _unpack(zero, bits)[..., : scale.shape[-1]]
        table = _in_blocks(chain, _unpack(codes, bits), scale, zero, bits, block)
    else:
        points = constant(zero) if zeros else None
        table = chain(
            "DequantizeLinear", constant(codes), constant(scale), points, axis=codes.ndim - 1, block_size=block
        )
    return chain.done(chain("Gather", table, indices, axis=0))


def _in_blocks(
    chain: Chain, codes: NDArray[Any], scale: NDArray[Any], zero: NDArray[Any] | None, bits: int, block: int
) -> Value:
    """Return weights of these codes, with a scale for each block on the last axis. Without a zero point, it is the
    middle of the codes.
    """
    middle = 1 << (bits - 1)
    signed = codes.astype(np.int8) - np.int8(middle) if bits < 8 else (codes ^ np.uint8(middle)).view(np.int8)
    kind = DataType(f"{'int' if zero is None else 'uint'}{bits}").numpy
    whole = constant(signed if zero is None else codes, kind)
    points = None if zero is None else constant(zero, kind)
    return chain("DequantizeLinear", whole, constant(scale), points, axis=codes.ndim - 1, block_size=block)


def _unpack(packed: NDArray[Any], bits: int) -> NDArray[Any]:
    """Unpack numbers of a few bits. The first number of a byte is in its lowest bits."""
    parts = packed[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)
