"""Matrix products on GL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import ROUNDS, Binding, Tools, epilogue_functions, ints
from perframe.layers.epilogue import parameters
from perframe.layers.matmul import Product
from perframe.tensor import DataType


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """No more products than a shader has rounds for; whole numbers are not scaled."""
    form: Product = layer.form(inputs, outputs)
    if outputs[0].dtype is not DataType.FLOAT32 and (form.alpha, form.beta) != (1.0, 1.0):
        return "scaled products of integers have no GL kernel"
    return "" if form.depth <= ROUNDS // 2 else f"{form.depth} products for one element are too many for one shader"


def lower(
    layer: LayerLike,
    form: Product,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel, with bias and epilogue in it; what is fused into products of whole numbers is nothing."""
    a, b, bias = (*inputs, None)[:3]
    assert a is not None and b is not None
    rank = len(form.batch)
    params: dict[str, Any] = {
        "batch": ints(form.batch),
        "a_batch": ints(form.a_strides[:rank]),
        "b_batch": ints(form.b_strides[:rank]),
        "a_step": form.a_strides[rank:],
        "b_step": form.b_strides[rank:],
        "c_step": form.bias_strides,
        "rank": rank,
        "rows": form.rows,
        "columns": form.columns,
        "depth": form.depth,
        "has_bias": int(bias is not None),
        "alpha": form.alpha,
        "beta": form.beta,
        "p": parameters(layer.epilogue),
    }
    given = {"A": a, "B": b, "C": bias or a}
    whole = outputs[0].dtype is not DataType.FLOAT32
    functions = "int epilogue(int x) { return x; }" if whole else epilogue_functions(layer.epilogue)
    return [Binding(layer.name, "matmul", given, outputs[0], params, {}, functions)]
