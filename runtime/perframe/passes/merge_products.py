"""Two consecutive products with constant weights become one, if that takes no more multiplications.

x A B is x (AB). The first product's bias goes through the second one's weights.
"""

from __future__ import annotations

import numpy as np

from perframe.model import Array, Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph, in_float32, may_fold


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers that were removed."""
    graph, merged = Graph(model), 0
    for layer in list(model.layers):
        if layer.family == "matmul":
            before = graph.producer_for(layer.inputs[0], "matmul")
            merged += before is not None and _merge(graph, before, layer)
    return merged


def _merge(graph: Graph, before: Layer, layer: Layer) -> bool:
    one, other = _linear(graph, before), _linear(graph, layer)
    if one is None or other is None or not graph.all_float32(before, layer):
        return False
    if before.epilogue:
        refuse(layer, f"the product {before.name!r} before it has an activation")
        return False
    (first, shift), (second, bias) = one, other
    inner, middle, outer = *first.shape, second.shape[1]
    if inner * outer > middle * (inner + outer):
        refuse(layer, f"one product of {inner} x {outer} weights takes more multiplications than two by {middle}")
        return False
    model = graph.model
    total = np.zeros(outer) if bias is None else bias.astype(np.float64)
    if shift is not None:
        total = total + shift.astype(np.float64) @ second.astype(np.float64)
    made = in_float32(first.astype(np.float64) @ second.astype(np.float64), total) if may_fold(first, second) else None
    if made is None:
        refuse(layer, f"its weights and those of {before.name!r} are too large or too small to be multiplied")
        return False
    names = [model.add_constant(f"{before.inputs[1]} {layer.inputs[1]}", made[0])]
    if shift is not None or bias is not None:
        names.append(model.add_constant(f"{layer.name} bias", made[1]))
    before.op, before.inputs, before.attributes, before.epilogue = (
        "MatMul",
        [before.inputs[0], *names],
        {},
        layer.epilogue,
    )
    graph.absorb(before, layer)
    return True


def _linear(graph: Graph, layer: Layer) -> tuple[Array, Array | None] | None:
    """The weights (inner, outer) and the bias vector of a product with constant weights, else None."""
    weights, attributes = graph.constant(layer.inputs[1]), layer.attributes
    named = layer.inputs[2] if len(layer.inputs) > 2 else ""
    bias = graph.constant(named) if named else None
    if layer.op not in ("MatMul", "Gemm") or weights is None or weights.ndim != 2 or (named and bias is None):
        return None
    if attributes.get("transA") or {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)} != {1.0}:
        return None
    if attributes.get("transB"):
        weights = weights.T
    if bias is not None:
        if bias.size not in (1, weights.shape[1]) or (bias.ndim and bias.shape[-1] != bias.size):
            return None
        bias = np.broadcast_to(bias.reshape(-1), weights.shape[1:])
    return weights, bias
