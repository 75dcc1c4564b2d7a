"""Two consecutive products with constant weights become one, if that takes no more multiplications.

x A B is x (AB). The first product's bias goes through the second one's weights.
"""

from __future__ import annotations

import numpy as np

from perframe.ir import Array, Layer, Model
from perframe.passes.match import all_float32, constant_of, in_float32, may_fold
from perframe.passes.patterns import Op, Rules

run = Rules()


@run.rule(Op("", Op(family="matmul", name="before", epilogue=True), family="matmul", epilogue=True))
def _merge(model: Model, root: Layer, before: Layer) -> int | str:
    one, other = _linear(before), _linear(root)
    if one is None or other is None or not all_float32(before, root):
        return 0
    if before.epilogue:
        return f"the product {before.name!r} before it has an activation"
    (first, shift), (second, bias) = one, other
    inner, middle, outer = *first.shape, second.shape[1]
    if inner * outer > middle * (inner + outer):
        return f"one product of {inner} x {outer} weights takes more multiplications than two by {middle}"
    total = np.zeros(outer) if bias is None else bias.astype(np.float64)
    if shift is not None:
        total = total + shift.astype(np.float64) @ second.astype(np.float64)
    made = in_float32(first.astype(np.float64) @ second.astype(np.float64), total) if may_fold(first, second) else None
    if made is None:
        return f"its weights and those of {before.name!r} are too large or too small to be multiplied"
    given = [model.add_constant(f"{before.input(1).name} {root.input(1).name}", made[0])]
    if shift is not None or bias is not None:
        given.append(model.add_constant(f"{root.name} bias", made[1]))
    before.op, before.inputs, before.attributes, before.epilogue = (
        "MatMul",
        [before.input(0), *given],
        {},
        root.epilogue,
    )
    model.absorb(before, root)
    return 1


def _linear(layer: Layer) -> tuple[Array, Array | None] | None:
    """The weights (inner, outer) and the bias vector of a product with constant weights, else None."""
    if layer.op not in ("MatMul", "Gemm"):
        return None
    weights, added = layer.b.constant, layer.bias if layer.op == "MatMul" else layer.c
    bias = constant_of(added)
    if weights is None or weights.ndim != 2 or (added is not None and bias is None):
        return None
    if layer.transA or (layer.op == "Gemm" and (layer.alpha != 1 or layer.beta != 1)):
        return None
    if layer.transB:
        weights = weights.T
    if bias is not None:
        if bias.size not in (1, weights.shape[1]) or (bias.ndim and bias.shape[-1] != bias.size):
            return None
        bias = np.broadcast_to(bias.reshape(-1), weights.shape[1:])
    return weights, bias
