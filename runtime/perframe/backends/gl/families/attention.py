"""Attention on GL. Over the keys of all tokens: the scores of the queries that fit, their softmax, the sum of values.
Linear attention: each token computes the change, the new state, and the result of the queries on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.gl.families import matmul, norm
from perframe.backends.gl.families.join import joined
from perframe.backends.gl.lowering.steps import Binding, Call, Tools, on_gl
from perframe.backends.operand import Operand
from perframe.ir.geometry import View, row_major
from perframe.ir.sizes.size import specialized
from perframe.layers.attention import Attention, LinearState
from perframe.layers.matmul import Product
from perframe.layers.norm import Softmaxing
from perframe.tensor import DataType

_PARTS = ("CHANGE", "STATE", "READ")
_TOKENS = 4096  # the most tokens; each takes three launches


MOST_SCORES = 1 << 20  # the most scores that are held at once, unless those of a tile are more


def dims(form: Attention | LinearState) -> list[Sequence[int]]:
    """The dims that kernels hold in arrays of a fixed length."""
    return [(*form.batch, form.rows, form.columns)] if isinstance(form, Attention) else []


def supports(call: Call[Attention | LinearState]) -> str | None:
    """Supports as many keys as fit a shader's rounds, and of linear attention a limited number of tokens, because each
    takes launches.
    """
    form = call.form
    if isinstance(form, Attention):
        deepest = max(form.size, form.keys)
        fits = deepest <= call.rounds // 2
        return None if fits else f"{deepest} keys, or numbers of a key, are too many for a shader"
    if form.tokens > _TOKENS:
        return f"{form.tokens} tokens are too many launches"
    return None if 4 * form.keys <= call.rounds else f"keys of {form.keys} are too long for one shader"


def lower(call: Call[Any], tools: Tools) -> list[Binding]:
    """The kernels of the form."""
    return (_attention if isinstance(call.form, Attention) else _linear)(call, tools)


def _attention(call: Call[Attention], tools: Tools) -> list[Binding]:
    """The scores of some queries, their softmax, and the sum of values; then those of the next, in the same storage. So
    `MOST_SCORES` are held at once, and not the product of all queries and keys.
    """
    form, bindings, made = call.form, list[Binding](), list[Operand]()
    batches, contiguous = math.prod(form.batch), row_major((*form.batch, form.rows, form.columns))
    if not form.keys:
        return [call.copy(tools.constant(np.zeros(1, np.float32)), call.y, step=0)]
    is_plain = form.out == contiguous
    starts, most = [0], form.rows
    if batches * form.rows * form.keys > MOST_SCORES and form.rows > matmul.ROWS:
        most = specialized(max(matmul.ROWS, MOST_SCORES // (batches * form.keys) // matmul.ROWS * matmul.ROWS))
        starts = list(range(0, specialized(form.rows), most))
    reused = _Reused(tools)
    for first in starts:
        rows = most if len(starts) == 1 else min(most, form.rows - first)
        whole = len(starts) == 1 and is_plain
        result = call.y if whole else tools.scratch((batches * rows * form.columns,), DataType.FLOAT32)
        made.append(result)
        bindings += _rows(call, first, rows, result, reused.tools())
    all_rows = joined(call, made, batches, tools, bindings)
    return bindings if all_rows is call.y else [*bindings, _arranged(call, all_rows)]


class _Reused:
    """The scratch storage of a series of kernels, which later ones of its kind use again."""

    def __init__(self, tools: Tools) -> None:
        self._tools, self._made = tools, list[Operand]()

    def tools(self) -> Tools:
        """Tools for the next series, which is at most as large as the first."""
        before = iter(list(self._made))

        def scratch(shape: Sequence[int], dtype: DataType) -> Operand:
            found = next(before, None)
            if found is not None:
                return Operand("", shape, dtype, storage=found.storage)
            self._made.append(self._tools.scratch(shape, dtype))
            return self._made[-1]

        return replace(self._tools, scratch=scratch)


def _rows(call: Call[Attention], first: int, rows: int, result: Operand, tools: Tools) -> list[Binding]:
    """The kernels for `rows` queries from `first` on. The result is (batch..., row, column)."""
    form, batches = call.form, math.prod(call.form.batch)
    query, key, value = form.query, form.key, form.value
    shape = (batches * rows * form.keys,)
    scores, weights = (tools.scratch(shape, DataType.FLOAT32) for _ in range(2))
    product = Product(form.batch, rows, form.keys, form.size, query.strides, key.strides, (0, 0), form.scale)
    base = query.offset + first * query.strides[-2], key.offset
    bindings = matmul.lower(Call(call.layer, product, [call.x, call.input(1)], [scores]), tools, base)
    changed = _changed_scores(call, first, rows, scores, weights)
    if changed is not None:
        bindings.append(changed)
        scores, weights = weights, scores
    rowwise = Softmaxing(batches * rows, form.keys, 1, False)
    bindings += norm.lower(Call(call.layer, rowwise, [scores], [weights]), tools)
    if form.dropped is not None:
        zeros = {"fill": 0.0, "keeps": 0}
        bindings.append(_masked(call, first, rows, weights, scores, {"K": (5, form.dropped)}, zeros))
        weights = scores
    strides = row_major((*form.batch, rows, form.keys))
    product = Product(form.batch, rows, form.columns, form.keys, strides, value.strides, (0, 0))
    return bindings + matmul.lower(
        Call(call.layer, product, [weights, call.input(2)], [result]), tools, (0, value.offset)
    )


def _changed_scores(call: Call[Attention], first: int, rows: int, x: Operand, y: Operand) -> Binding | None:
    """The kernel that caps and masks scores, if anything does."""
    form = call.form
    masks = {name: (at, mask) for name, at, mask in (("A", 3, form.added), ("K", 4, form.kept)) if mask is not None}
    return _masked(call, first, rows, x, y, masks, {}) if masks or form.softcap else None


def _masked(
    call: Call[Attention],
    first: int,
    rows: int,
    x: Operand,
    y: Operand,
    masks: dict[str, tuple[int, View]],
    numbers: dict[str, Any],
) -> Binding:
    """The kernel that caps scores and applies masks, each the input of an index."""
    form, given, defines = call.form, {"S": x}, {}
    if form.softcap and not numbers:
        defines["CAPPED"] = "1"
    strides, base = list[int](), list[int]()
    for name, define in (("A", "ADDED"), ("K", "CHOSEN")):
        index, view = masks.get(name, (0, View((), ())))
        if name in masks:
            defines[define], given[name] = "1", call.input(index)
        strides += [*view.strides, *(0,) * (8 - len(view.strides))]
        base.append(view.offset + first * (view.strides[-2] if view.strides else 0))
    shape = (*form.batch, rows, form.keys)
    numbers = {"shape": shape, "strides": strides, "base": base, "rank": len(shape), **numbers}
    return call.bind("scores", given, y, numbers, defines)


def _arranged(call: Call[Attention], x: Operand) -> Binding:
    """The kernel that brings (batch..., row, column) into the order of the output."""
    form = call.form
    shape = (*form.batch, form.rows, form.columns)
    order = sorted((axis for axis in range(len(shape)) if shape[axis] != 1), key=lambda axis: -form.out[axis])
    strides = row_major(shape)
    params: dict[str, Any] = {
        "shape": [shape[axis] for axis in order],
        "strides": [strides[axis] for axis in order],
        "rank": len(order),
        "offset": 0,
    }
    return call.bind("move", {"X": x}, call.y, params)


def _linear(call: Call[LinearState], tools: Tools) -> list[Binding]:
    """Three kernels a token. The results are joined at the end; the last state is an output, which may be of halves and
    is not read then.
    """
    form, query, key, value = call.form, call.x, call.input(1), call.input(2)
    past, decay, beta = (call.optional(index) for index in (3, 4, 5))
    size = form.batch * form.heads * form.keys * form.values
    state = past or tools.constant(np.zeros(specialized(size), np.float32))
    shared = {"Q": query, "K": key, "V": value, "G": decay or key, "B": beta or key}
    bindings: list[Binding] = []

    def kernel(part: str, token: int, reads: dict[str, Operand], y: Operand) -> Operand:
        names = {"CHANGE": "KVGB", "STATE": "KG", "READ": "Q"}[part]
        given = {name: operand for name, operand in shared.items() if name in names} | reads
        defines = {name: str(index) for index, name in enumerate(_PARTS)} | {"PART": part}
        bindings.append(call.bind("attention", given, y, {"token": token}, defines))
        return y

    def scratch(*shape: int) -> Operand:
        return tools.scratch(shape, DataType.FLOAT32)

    made, end = [], call.outputs[1] if len(call.outputs) > 1 else None
    for token in range(specialized(form.tokens)):
        change = kernel("CHANGE", token, {"S": state}, scratch(form.batch * form.heads * form.values))
        is_end = end is not None and token == form.tokens - 1 and not on_gl(end.storage).is_half
        state = kernel("STATE", token, {"S": state, "C": change}, end if end and is_end else scratch(size))
        read = call.y if form.tokens == 1 else scratch(form.batch * form.query_heads * form.values)
        made.append(kernel("READ", token, {"S": state}, read))
    if form.tokens > 1:
        whole = joined(call, made, form.batch, tools, bindings)
        bindings.append(call.copy(whole, call.y))
    if end is not None and state is not end:
        bindings.append(call.copy(state, end))
    return bindings
