"""Adapters of quantized operators: they multiply integers, and scale the results afterwards."""

from __future__ import annotations

import numpy as np

from perframe.importers.adapters import adapter, to_data_types
from perframe.importers.adapters.chain import Chain
from perframe.importers.onnx_node import Node, constant
from perframe.ir import Value
from perframe.tensor import DataType

MAX_ZERO_POINTS = 1 << 20  # no product has more rows


@adapter("QuantizeLinear", "DequantizeLinear")
def _dtypes(node: Node) -> None:
    for name in ("output_dtype", "precision"):
        if node.attributes.get(name) == 0:  # the dtype of the other inputs
            del node.attributes[name]
    to_data_types(node, "output_dtype", "precision")


def whole(chain: Chain, x: Value | None, zero: Value | None, per_axis: int | None = None) -> Value:
    """Compute x - zero in int32. Several zero points belong to the axis that `per_axis` other axes follow."""
    wide = chain("Cast", x, to=DataType.INT32)
    return chain("Sub", wide, _column(chain, chain("Cast", zero, to=DataType.INT32), per_axis)) if zero else wide


def _column(chain: Chain, values: Value, after: int | None) -> Value:
    """Reshape values of an axis that `after` other axes follow, so that they broadcast; a single value always does."""
    return chain("Reshape", values, chain.ints(-1, *(1,) * after)) if after else values


def _rows(chain: Chain, values: Value | None) -> Value | None:
    """Reshape one number for each row of a matrix, so that they broadcast; a single number and a tensor always do."""
    shape = values.spec.shape if values else None
    return _column(chain, values, 1) if values and shape and len(shape) == 1 and shape[0] != 1 else values


@adapter("MatMulInteger")
def _mat_mul_integer(node: Node) -> list[Node]:
    chain = Chain(node)
    a, b, a_zero, b_zero = chain.inputs(4)
    return chain.done(chain("MatMul", whole(chain, a, _rows(chain, a_zero)), whole(chain, b, b_zero)))


@adapter("ConvInteger")
def _conv_integer(node: Node) -> list[Node]:
    chain = Chain(node)
    x, w, x_zero, w_zero = chain.inputs(4)
    given = whole(chain, x, x_zero), whole(chain, w, w_zero, chain.rank(w) - 1)
    return chain.done(chain("Conv", *given, **node.attributes))


def _requantize(chain: Chain, result: Value | None, factor: Value | None, zero: Value | None) -> list[Node]:
    """Scale integers to those of the output, in float32. Several zero points belong to rows."""
    scaled = chain("Mul", chain("Cast", result, to=DataType.FLOAT32), factor)
    shape = chain.spec(zero).shape
    count = shape.size if shape else 1
    if (count or 0) > MAX_ZERO_POINTS:
        raise NotImplementedError(f"{count} zero points are not supported")
    ones = np.ones((), np.float32) if count == 1 else np.ones(count or 0, np.float32)
    return chain.done(chain("QuantizeLinear", scaled, constant(ones), zero, axis=-2))


def _factor(chain: Chain, first: Value | None, second: Value | None, output: Value | None) -> Value:
    wide = [chain("Cast", scale, to=DataType.FLOAT32) for scale in (first, second, output)]
    return chain("Div", chain("Mul", wide[0], wide[1]), wide[2])


@adapter("QLinearMatMul")
def _q_linear_mat_mul(node: Node) -> list[Node]:
    chain = Chain(node)
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = chain.inputs(8)
    result = chain("MatMul", whole(chain, a, _rows(chain, a_zero)), whole(chain, b, b_zero))
    factor = _factor(chain, _rows(chain, a_scale), b_scale, _rows(chain, y_scale))
    return _requantize(chain, result, factor, y_zero)


@adapter("QLinearConv")
def _q_linear_conv(node: Node) -> list[Node]:
    chain = Chain(node)
    x, x_scale, x_zero, w, _, w_zero, y_scale, y_zero, bias = chain.inputs(9)
    rank = chain.rank(w)
    given = [whole(chain, x, x_zero), whole(chain, w, w_zero, rank - 1), *([bias] if bias else [])]
    result = chain("Conv", *given, **node.attributes)
    return _requantize(chain, result, _factor(chain, x_scale, _column(chain, node.input(4), rank - 2), y_scale), y_zero)
