"""Products with weights of 4 or 8 bits on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import PACKED
from perframe.backends.cpu.kernels.sizes import PACKED_PANEL, PACKED_ROWS, PANEL, ROWS
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.lowering import step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.packed import PackedProduct, unpacked, words_of
from perframe.tensor import DataType

WIDENS = True  # float16 is computed in float32

NEAR = 256  # rows of a panel of floats that stay in the first cache
TOGETHER = 64  # panels of columns that NumPy multiplies at a time


def compute(layer: LayerLike, form: PackedProduct, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Multiply by some panels of weights at a time: all weights as floats would take much memory."""
    x, words, scales, zeros, bias = inputs
    rows = x.reshape(-1, form.depth).astype(np.float32, copy=False)
    result = np.empty((len(rows), len(words) * PACKED_PANEL), np.float32)
    for first in range(0, len(words), TOGETHER):
        some = slice(first, first + TOGETHER)
        weights = _spread(form, unpacked(words[some], form.depth, form.bits).astype(np.float32))
        if zeros is not None:
            weights = weights - _by_block(unpacked(zeros[some], form.blocks, form.bits).astype(np.float32))
        weights = weights * _by_block(scales[some].transpose(1, 0, 2).reshape(form.blocks, -1))
        made = weights.reshape(-1, weights.shape[-1])[: form.depth]
        result[:, first * PACKED_PANEL : first * PACKED_PANEL + made.shape[1]] = rows @ made
    made = result[:, : form.columns]
    return [made if bias is None else made + bias]


def _spread(form: PackedProduct, values: Any) -> Any:
    """(depth, columns) as (blocks, block, columns), with zeros at the end."""
    padded = np.zeros((form.blocks * form.block, values.shape[1]), np.float32)
    padded[: form.depth] = values
    return padded.reshape(form.blocks, form.block, -1)


def _by_block(values: Any) -> Any:
    """(blocks, columns) for each row of a block."""
    return values[:, None, :]


def lower(
    layer: LayerLike,
    form: PackedProduct,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """A step for float32: it reads codes for a few rows, and makes panels of floats for more."""
    x, words, scales, zeros, bias = inputs
    assert x is not None and words is not None and scales is not None
    if x.dtype is not DataType.FLOAT32:
        return None
    ends, keep = gemm.finishing(layer)
    rows, is_few = form.rows, form.rows <= PACKED_ROWS
    panels = -(-form.columns // (PACKED_PANEL if is_few else PANEL))
    # weights become floats once for each block of rows
    parts = at_most(-(-4 * thread_count() // panels), -(-rows // (8 * ROWS)))
    row_block = rows if is_few else -(-rows // at_least(parts, 1))
    items = panels if is_few else panels * -(-rows // row_block)
    nothing = Operand.stored(np.zeros(PANEL, np.float32))
    numbers = PACKED.numbers(
        **ends,
        rows=rows,
        columns=form.columns,
        depth=form.depth,
        block=form.block,
        words_each=form.words,
        blocks=form.blocks,
        zero_words=0 if zeros is None else words_of(form.blocks, form.bits),
        has_bias=int(bias is not None),
        panels=panels,
        row_block=row_block,
        depth_block=NEAR,
    )
    return [
        step(
            layer,
            "packed" if is_few else "packed.tiles",
            PACKED.operands(
                x=x, words=words, scales=scales, zeros=zeros or words, bias=bias or nothing, out=outputs[0]
            ),
            numbers,
            items,
            f"bits, has_zeros = {form.bits}, {zeros is not None}",
            keep,
            grain=items * gemm.SPLIT_FLOPS // at_least(2 * form.operations, 1),
            beside=("packed", "packed.tiles"),
        )
    ]
