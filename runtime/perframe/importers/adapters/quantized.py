"""Adapters of quantized operators: whole numbers are multiplied as such, and scaled afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perframe.importers.adapters import adapter, node_like
from perframe.tensor import DataType

if TYPE_CHECKING:
    from perframe.importers.onnx import Importer, Node


@adapter("QuantizeLinear", "DequantizeLinear")
def _dtypes(node: Node, graph: Importer) -> None:
    from perframe.importers.onnx import data_type

    for name in ("output_dtype", "precision"):
        number = node.attributes.get(name)
        if isinstance(number, int):
            node.attributes[name] = data_type(number) if number else None


class _Chain:
    """Nodes in the place of one, made one after the other."""

    def __init__(self, node: Node, graph: Importer) -> None:
        self.node, self.graph, self.nodes = node, graph, list[object]()

    def __call__(self, op: str, *inputs: str, **attributes: object) -> str:
        """Add a node; returns its output."""
        name = self.graph.value_name(self.node.outputs[0])
        self.nodes.append(node_like(self.node, op, list(inputs), [name], **attributes))
        return name

    def whole(self, x: str, zero: str, per_axis: int | None = None) -> str:
        """x - zero as int32. Zero points of more than one element lie on the axis that `per_axis` others follow."""
        wide = self("Cast", x, to=DataType.INT32)
        if not zero:
            return wide
        offset = self.column(self("Cast", zero, to=DataType.INT32), per_axis)
        return self("Sub", wide, offset)

    def column(self, values: str, after: int | None) -> str:
        """Values of an axis that is followed by `after` others, so that they broadcast; single ones do anyhow."""
        if not after:
            return values
        return self("Reshape", values, self.graph.constant([-1, *(1,) * after], np.int64))

    def done(self) -> list[Node]:
        """The nodes, the last of which makes the outputs of the one that they replace."""
        nodes: list[Node] = self.nodes  # type: ignore[assignment]
        nodes[-1].outputs = self.node.outputs
        return nodes


def _inputs(node: Node, count: int) -> list[str]:
    return (node.inputs + [""] * count)[:count]


def _rank(graph: Importer, name: str) -> int | None:
    shape = graph.specs[name].shape
    return None if shape is None else len(shape)


def _rows(chain: _Chain, values: str) -> str:
    """Numbers for each row of a matrix, so that they broadcast; single ones and tensors do anyhow."""
    shape = chain.graph.specs[values].shape if values else None
    return chain.column(values, 1) if shape is not None and len(shape) == 1 and shape[0] != 1 else values


@adapter("MatMulInteger")
def _mat_mul_integer(node: Node, graph: Importer) -> list[Node]:
    a, b, a_zero, b_zero = _inputs(node, 4)
    chain = _Chain(node, graph)
    chain("MatMul", chain.whole(a, _rows(chain, a_zero)), chain.whole(b, b_zero))
    return chain.done()


@adapter("ConvInteger")
def _conv_integer(node: Node, graph: Importer) -> list[Node]:
    x, w, x_zero, w_zero = _inputs(node, 4)
    chain, rank = _Chain(node, graph), _rank(graph, w)
    if rank is None:
        raise NotImplementedError("the rank of its weights is unknown")
    chain("Conv", chain.whole(x, x_zero), chain.whole(w, w_zero, rank - 1), **node.attributes)
    return chain.done()


def _requantize(chain: _Chain, result: str, factor: str, zero: str) -> list[Node]:
    """Scale whole numbers to the output's, in float32. More than one zero point are those of rows."""
    scaled = chain("Mul", chain("Cast", result, to=DataType.FLOAT32), factor)
    shape = chain.graph.specs[zero].shape
    count = shape.size if shape else 1
    ones = np.ones((), np.float32) if count == 1 else np.ones(count or 0, np.float32)
    chain("QuantizeLinear", scaled, chain.graph.constant(ones), zero, axis=-2)
    return chain.done()


def _factor(chain: _Chain, first: str, second: str, output: str) -> str:
    wide = [chain("Cast", scale, to=DataType.FLOAT32) for scale in (first, second, output)]
    return chain("Div", chain("Mul", wide[0], wide[1]), wide[2])


@adapter("QLinearMatMul")
def _q_linear_mat_mul(node: Node, graph: Importer) -> list[Node]:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = _inputs(node, 8)
    chain = _Chain(node, graph)
    result = chain("MatMul", chain.whole(a, _rows(chain, a_zero)), chain.whole(b, b_zero))
    factor = _factor(chain, _rows(chain, a_scale), b_scale, _rows(chain, y_scale))
    return _requantize(chain, result, factor, y_zero)


@adapter("QLinearConv")
def _q_linear_conv(node: Node, graph: Importer) -> list[Node]:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = _inputs(node, 9)
    chain, rank = _Chain(node, graph), _rank(graph, w)
    if rank is None:
        raise NotImplementedError("the rank of its weights is unknown")
    given = [chain.whole(x, x_zero), chain.whole(w, w_zero, rank - 1), *([bias] if bias else [])]
    result = chain("Conv", *given, **node.attributes)
    return _requantize(chain, result, _factor(chain, x_scale, chain.column(w_scale, rank - 2), y_scale), y_zero)
