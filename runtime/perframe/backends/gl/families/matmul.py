"""Matrix products on GL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.gl.steps import Binding, Call, Tools, epilogue_of
from perframe.backends.gl.texels import SHEETS
from perframe.layers.matmul import Product
from perframe.tensor import DataType

_STRIP = 4 * SHEETS  # elements that one pixel shader computes


def supports(call: Call[Product]) -> str | None:
    """Supports as many products as fit a shader's rounds, and integers if they are not scaled."""
    form = call.form
    if call.y.dtype is not DataType.FLOAT32 and (form.alpha, form.beta) != (1.0, 1.0):
        return "scaled products of integers have no GL kernel"
    fits = form.depth <= call.rounds // 2
    return None if fits else f"{form.depth} products for one element are too many for one shader"


def dims(form: Product) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.batch]


def lower(call: Call[Product], tools: Tools) -> list[Binding]:
    """One kernel, with bias and epilogue in it. Products of integers have no epilogue."""
    form, a, b, bias = call.form, call.x, call.input(1), call.optional(2)
    rank = len(form.batch)
    if b.is_constant and len(b.shape) == 2 and form.b_strides == (*(0,) * rank, 1, form.depth):
        b = b.derived("rows for columns", lambda value: np.ascontiguousarray(value.T))
        form = replace(form, b_strides=(*(0,) * rank, form.columns, 1))
    params: dict[str, Any] = {
        "a_batch": form.a_strides[:rank],
        "b_batch": form.b_strides[:rank],
        "a_step": form.a_strides[rank:],
        "b_step": form.b_strides[rank:],
        "c_step": form.bias_strides,
        "rank": rank,
        "has_bias": bias is not None,
    }
    given = {"A": a, "B": b, "C": bias or a}
    kernel = "matmul" if tools.stores_anywhere or not _is_of_strips(form) else "pixel/matmul"
    return [call.bind(kernel, given, call.y, params, functions=epilogue_of(call.layer, call.y.dtype))]


def _is_of_strips(form: Product) -> bool:
    """Whether each strip lies in one row of the result, and in one row of the second factor."""
    *steps, last = form.b_strides
    in_one_row = form.columns % _STRIP == 0 or (form.batches * form.rows == 1 and form.columns % 4 == 0)
    return in_one_row and last == 1 and not any(step % 4 for step in steps)
