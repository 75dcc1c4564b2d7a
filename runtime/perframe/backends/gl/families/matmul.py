"""Matrix products on GL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.gl.steps import Binding, Call, Tools, epilogue_of
from perframe.backends.gl.texels import SHEETS
from perframe.backends.operand import Operand
from perframe.layers.matmul import Product
from perframe.tensor import DataType

GROUPS = 65_535  # the most work groups along an axis of a grid
TALL, COLUMNS = (8, 4, 1), 8  # the rows of a tile, if there are more than half as many, and its columns
PARTS, LEAST, FULL = 16, 32, 4096  # of a depth, at most; rounds of a part, at least; invocations that fill a GPU
ACROSS = 32  # tiles in a row: fewer do not fill a work group
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
    turned, padding = form.b_strides[rank:] == (1, form.depth), -form.columns % 4
    is_plain = turned or form.b_strides[rank:] == (form.columns, 1)
    if b.is_constant and len(b.shape) == 2 and is_plain and (turned or padding):
        b = b.derived(
            f"rows for columns {turned}, {padding} more columns",
            lambda value: np.ascontiguousarray(np.pad(value.T if turned else value, ((0, 0), (0, padding)))),
        )
        form = replace(form, b_strides=(*(0,) * rank, form.columns + padding, 1))
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
    if tools.stores_anywhere and call.y.dtype is DataType.FLOAT32 and form.batches <= GROUPS:
        return [_tiles(call, form, given, params)]
    kernel = "matmul" if tools.stores_anywhere or not _is_of_strips(form) else "pixel/matmul"
    return [call.bind(kernel, given, call.y, params, functions=epilogue_of(call.layer, call.y.dtype))]


def _tiles(call: Call[Product], form: Product, given: dict[str, Operand], params: dict[str, Any]) -> Binding:
    """The product in tiles of a few rows and columns."""
    across, tall = -(-form.columns // COLUMNS), next(tall for tall in TALL if tall == 1 or form.rows > tall // 2)
    down, parts = -(-form.rows // tall), 1
    while tall == 1 and parts < PARTS and across * parts < FULL and form.depth >= LEAST * parts:
        parts *= 2
    flat = parts == 1 and (across < ACROSS or down > GROUPS)
    grid = (across * down, 1, form.batches) if flat else (across * parts, down, form.batches)
    numbers = {"ROWS": tall, "FLAT": int(flat), "PARTS": parts}
    numbers |= {"A_BY": _texels(form.a_strides), "B_BY": _texels(form.b_strides)}
    defines = {name: str(number) for name, number in numbers.items()}
    if form.columns % 4:
        defines["SCATTERED"] = "1"
    functions = epilogue_of(call.layer, call.y.dtype)
    return call.bind("compute/matmul", given, call.y, params | {"across": across}, defines, functions, grid=grid)


def _texels(strides: Sequence[int]) -> int:
    """What a texel of a factor holds: four of one row (0), or of one column (1), or parts of both (2)."""
    for by, last in ((0, -1), (1, -2)):
        others = [step for axis, step in enumerate(strides) if axis != len(strides) + last]
        if strides[last] == 1 and not any(step % 4 for step in others):
            return by
    return 2


def _is_of_strips(form: Product) -> bool:
    """Whether each strip lies in one row of the result, and in one row of the second factor."""
    *steps, last = form.b_strides
    in_one_row = form.columns % _STRIP == 0 or (form.batches * form.rows == 1 and form.columns % 4 == 0)
    return in_one_row and last == 1 and not any(step % 4 for step in steps)
