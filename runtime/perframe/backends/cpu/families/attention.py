"""Attention on the CPU: natively over the keys of all tokens; linear attention with NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import ATTENTION
from perframe.backends.cpu.kernels.sizes import ATTENTION_ROWS, LANES, PANEL, QUERIES, ROWS, SCORES
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.lowering import all_float32, float_array, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import View, row_major
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.attention import Attention, LinearState

AXES = ("row", "column")
FEW_ROWS = 4  # queries of a head: packing its keys pays only for more


def compute(
    layer: LayerLike, form: Attention | LinearState, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """Compute in float32."""
    return _attention(form, inputs, outputs) if isinstance(form, Attention) else _linear(form, inputs, outputs)


def _attention(form: Attention, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute all scores of a head at once."""
    views = (form.query, form.key, form.value, form.added, form.kept, form.dropped)
    query, key, value, added, kept, dropped = (
        None if x is None or view is None else view.of(x) for x, view in zip(inputs, views, strict=True)
    )
    assert query is not None and key is not None and value is not None
    scores = np.matmul(query.astype(np.float32) * np.float32(form.scale), key.astype(np.float32))
    if form.softcap:
        scores = form.softcap * np.tanh(scores / form.softcap)
    scores = scores if added is None else scores + added.astype(np.float32)
    scores = scores if kept is None else np.where(kept == bool(form.keeps), scores, np.float32(form.fill))
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights /= weights.sum(-1, keepdims=True)
    weights = weights if dropped is None else np.where(dropped, np.float32(0), weights)
    result = np.zeros(outputs[0].shape, np.float32)
    if result.size:
        shape, steps = (*form.batch, form.rows, form.columns), [step * 4 for step in form.out]
        np.lib.stride_tricks.as_strided(result, shape, steps)[...] = np.matmul(weights, value.astype(np.float32))
    return [result]


def _linear(form: LinearState, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute token by token, in float32."""
    batch, tokens, heads = form.batch, form.tokens, form.heads

    def per_head(x: Any, count: int) -> Any:
        return x.astype(np.float32).reshape(batch, tokens, count, -1)

    past, decay, beta = (*inputs[3:], None, None, None)[:3]
    query, key, value = per_head(inputs[0], form.query_heads), per_head(inputs[1], heads), per_head(inputs[2], heads)
    factors = np.ones((1, tokens, 1, 1), np.float32) if decay is None else np.exp(per_head(decay, heads))
    rates = None if beta is None else per_head(beta, form.betas)
    state = np.zeros((batch, heads, form.keys, form.values), np.float32)
    if past is not None:
        state = past.astype(np.float32)
    made = np.empty((batch, tokens, form.query_heads, form.values), np.float32)
    for t in range(tokens):
        state = state * factors[:, t, :, :, None]
        new = value[:, t]
        if rates is not None:
            new = rates[:, t] * (new - np.matmul(key[:, t, :, None], state)[:, :, 0])
        state = state + key[:, t, :, :, None] * new[:, :, None]
        grouped = query[:, t].reshape(batch, heads, form.query_heads // heads, form.keys)
        made[:, t] = (form.scale * np.matmul(grouped, state)).reshape(batch, form.query_heads, form.values)
    return [
        result.reshape(known.shape).astype(known.dtype.numpy)
        for result, known in zip((made, state), outputs, strict=False)
    ]


def lower(
    layer: LayerLike,
    form: Attention | LinearState,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps for float32. With few queries, the kernel reads keys and values in place, else packed."""
    if isinstance(form, LinearState) or layer.epilogue or not all_float32([*inputs[:4], outputs[0]]):
        return None
    if form.size + LANES > QUERIES or form.out[-1] != 1:
        return None
    query, key, value, added, kept, dropped = inputs
    assert query is not None and key is not None and value is not None
    for name in ("attention", "attention.rows", "gemm.pack"):
        jit.kernel(name)
    few = form.rows <= FEW_ROWS
    views, made = [form.query, form.key, form.value], list[NativeStep]()
    if not few:
        for index, (operand, depth, columns) in enumerate(
            ((key, form.size, form.keys), (value, form.keys, form.columns)), 1
        ):
            packed, views[index], packing = _packed(layer, operand, views[index], depth, columns, scratch)
            made.append(packing)
            key, value = (packed, value) if index == 1 else (key, packed)
    masks = [view or View((1,), (0,) * (len(form.batch) + 2)) for view in (form.added, form.kept, form.dropped)]
    count = math.prod(form.batch)
    row_block, key_block, blocks = _blocks(form, count)
    parameters = float_array((form.scale, form.softcap, form.fill))
    items = count * (form.rows if few else blocks)
    flops = 2 * count * form.rows * form.keys * (form.size + form.columns)
    fixed = ATTENTION.numbers(
        parameters=parameters.ctypes.data,
        **{"rows": form.rows, "key_count": form.keys, "size": form.size, "columns": form.columns},
        **{"row_block": row_block, "key_block": key_block, "row_items": blocks},
        **{f"{name}_offset": view.offset for name, view in zip(("query", "key", "value"), views, strict=True)},
        has_added=int(added is not None),
        has_kept=int(kept is not None),
        has_dropped=int(dropped is not None),
        keeps=form.keeps,
        **_steps(query=views[0], key=views[1], value=views[2], added=masks[0], kept=masks[1]),
        dropped_row=masks[2].strides[-2],
        out_row=form.out[-2],
        rank=len(form.batch),
    )
    along_batch = ATTENTION.operands(
        query=views[0].strides[:-2],
        keys=views[1].strides[:-2],
        values=views[2].strides[:-2],
        added=masks[0].strides[:-2],
        kept=masks[1].strides[:-2],
        dropped=masks[2].strides[:-2],
        out=form.out[:-2],
    )
    numbers = [*fixed, *form.batch, *(step for steps in along_batch for step in steps)]
    operands = ATTENTION.operands(
        query=query,
        keys=key,
        values=value,
        added=added or query,
        kept=kept or query,
        dropped=dropped or query,
        out=outputs[0],
    )
    kernel, grain = "attention.rows" if few else "attention", items * gemm.SPLIT_FLOPS // at_least(2 * flops, 1)
    return [*made, step(layer, kernel, operands, numbers, items, keep=[parameters], grain=grain)]


def _steps(**views: View) -> dict[str, int]:
    """The row and column strides of matrices, by name."""
    last = {name: view.strides[-2:] for name, view in views.items()}
    return {f"{name}_{what}": step for name, steps in last.items() for what, step in zip(AXES, steps, strict=True)}


def _blocks(form: Attention, count: int) -> tuple[int, int, int]:
    """(queries in a block, keys in a block, blocks of queries): enough blocks to give each thread some."""
    most = min(ATTENTION_ROWS, QUERIES // (form.size + 2 * LANES) or 1)
    shares = at_most(-(-form.rows // ROWS), -(-4 * thread_count() // at_least(count, 1)))
    blocks = at_least(-(-form.rows // most), shares)
    rows = -(-form.rows // blocks)
    return rows, SCORES // (rows + 1) // PANEL * PANEL, -(-form.rows // rows)


def _packed(
    layer: LayerLike, operand: Operand, view: View, depth: int, columns: int, scratch: Scratch
) -> tuple[Operand, View, NativeStep]:
    """Pack an operand as panels, without the dims that only repeat it. Return the panels, the view through which the
    kernel walks them, and the step that packs them.
    """
    dims, steps = view.shape[:-2], view.strides[:-2]
    kept = [axis for axis, step in enumerate(steps) if step]
    batch = [dims[axis] for axis in kept]
    size = depth * gemm.padded(columns)
    packed = scratch((math.prod(batch), size), operand.dtype)
    strides = dict(zip(kept, row_major(batch), strict=True))
    walked = View(view.shape, (*(strides.get(axis, 0) * size for axis in range(len(dims))), 0, 0))
    across = (view.strides[-2:], batch, [steps[axis] for axis in kept], view.offset)
    return packed, walked, gemm.pack_step(layer, operand, packed, depth, columns, *across)
