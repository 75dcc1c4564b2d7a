"""Products with weights of 4 or 8 bits, and tables of them, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families.gather import index_check, wrapped
from perframe.backends.cpu.kernels.fields import PACKED, PACKED_TABLE, ROUNDED
from perframe.backends.cpu.kernels.sizes import LANES, PACKED_ROWS, ROWS
from perframe.backends.cpu.kernels.sizes import PANEL as TILE_COLUMNS
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.byte_product import instructions
from perframe.backends.cpu.lowering.lowering import sharing, step
from perframe.backends.cpu.processor import has
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.layers.packed import PANEL, WORD, PackedProduct, PackedTable, in_panels, unpacked, words_of
from perframe.tensor import DataType

WIDENS = True  # float16 is computed in float32

NEAR = 256  # rows of a panel of floats that stay in the first cache
TOGETHER = 64  # panels of columns that NumPy multiplies at a time


def compute(
    layer: LayerLike, form: PackedProduct | PackedTable, inputs: Sequence[Any], outputs: Sequence[Operand]
) -> list[Any]:
    """Multiply by some panels of weights at a time: all weights as floats would take much memory."""
    if isinstance(form, PackedTable):
        return [_rows(form, *inputs)]
    x, words, scales, zeros, bias = inputs
    rows = x.reshape(-1, form.depth).astype(np.float32, copy=False)
    result = np.empty((len(rows), len(words) * PANEL), np.float32)
    for first in range(0, len(words), TOGETHER):
        some = slice(first, first + TOGETHER)
        weights = _weights(form, words[some], scales[some], None if zeros is None else zeros[some])
        result[:, first * PANEL : first * PANEL + weights.shape[1]] = rows @ weights
    made = result[:, : form.columns]
    return [made if bias is None else made + bias]


def _rows(form: PackedTable, words: Any, scales: Any, indices: Any, zeros: Any) -> Any:
    """The columns at some indices, in panels of their own."""
    at = wrapped(indices, form.columns).reshape(-1)
    if not at.size:
        return np.zeros((0, form.depth), np.float32)

    def chosen(values: Any) -> Any:
        return in_panels(values[at // PANEL, :, at % PANEL].T)

    weights = _weights(form, chosen(words), chosen(scales), None if zeros is None else chosen(zeros))
    return weights.T[: form.count]


def _weights(form: PackedProduct | PackedTable, words: Any, scales: Any, zeros: Any) -> Any:
    """Packed weights as floats, (depth, columns of whole panels)."""
    weights = _spread(form, unpacked(words, form.depth, form.bits).astype(np.float32))
    if zeros is not None:
        weights = weights - unpacked(zeros, form.blocks, form.bits).astype(np.float32)[:, None, :]
    weights = weights * scales.transpose(1, 0, 2).reshape(form.blocks, 1, -1)
    return weights.reshape(-1, weights.shape[-1])[: form.depth]


def _spread(form: PackedProduct | PackedTable, values: Any) -> Any:
    """(depth, columns) as (blocks, block, columns), with zeros at the end."""
    padded = np.zeros((form.blocks * form.block, values.shape[1]), np.float32)
    padded[: form.depth] = values
    return padded.reshape(form.blocks, form.block, -1)


def lower(
    layer: LayerLike,
    form: PackedProduct | PackedTable,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """A step for float32: it reads codes for a few rows, or rows of 8 bits, and makes panels of floats for more."""
    if isinstance(form, PackedTable):
        return _lower_table(layer, form, inputs, outputs[0])
    x, words, scales, zeros, bias = inputs
    assert x is not None and words is not None and scales is not None
    if x.dtype is not DataType.FLOAT32:
        return None
    ends, keep = gemm.finishing(layer)
    rows, kind, text, first = form.rows, _rounding(form), _text(form, zeros), list[NativeStep]()
    kernel = "packed.rounded" if kind else "packed" if rows <= PACKED_ROWS else "packed.tiles"
    if kind:
        text += f"\nkind = {kind!r}"
        x = _rounded(layer, form, x, scratch, first)
    panels = -(-form.columns // (TILE_COLUMNS if kernel == "packed.tiles" else PANEL))
    # weights become floats once for each block of rows
    parts = at_most(-(-4 * thread_count() // panels), -(-rows // (8 * ROWS)))
    row_block = rows if kernel == "packed" else -(-rows // at_least(parts, 1))
    items = panels if kernel == "packed" else panels * -(-rows // row_block)
    nothing = Operand.stored(np.zeros(TILE_COLUMNS, np.float32))
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
        *first,
        step(
            layer,
            kernel,
            PACKED.operands(
                x=x, words=words, scales=scales, zeros=zeros or words, bias=bias or nothing, out=outputs[0]
            ),
            numbers,
            items,
            text,
            keep,
            grain=items * gemm.SPLIT_FLOPS // at_least(2 * form.operations, 1),
            beside=() if kind else ("packed", "packed.tiles"),
        ),
    ]


def _rounding(form: PackedProduct) -> str:
    """The kind of instructions for rows that are rounded; "" if they are not."""
    if not form.rounds:
        return ""
    if "vnni" in instructions():
        return "vnni"
    has_pairs = LANES > 4 and has("avx512bw" if LANES == 16 else "avx2")
    return "pairs" if has_pairs and form.bits == 4 else ""


def _rounded(layer: LayerLike, form: PackedProduct, x: Operand, scratch: Scratch, steps: list[NativeStep]) -> Operand:
    """Add the step that rounds rows to 8 bits, and return them."""
    length = form.words * WORD // form.bits
    made = scratch((form.rows, length + 8 * form.blocks), DataType.UINT8)
    numbers = ROUNDED.numbers(depth=form.depth, block=form.block, blocks=form.blocks, words_each=form.words)
    text, grain = f"bits = {form.bits}", sharing(form.rows, 4 * form.rows * form.depth)
    steps.append(step(layer, "rounding", ROUNDED.operands(x=x, out=made), numbers, form.rows, text, grain=grain))
    return made


def _text(form: PackedProduct | PackedTable, zeros: Operand | None) -> str:
    return f"bits, has_zeros = {form.bits}, {zeros is not None}"


def _lower_table(
    layer: LayerLike, form: PackedTable, inputs: Sequence[Operand | None], out: Operand
) -> list[NativeStep] | None:
    words, scales, indices, zeros = inputs
    assert words is not None and scales is not None and indices is not None
    if indices.dtype not in (DataType.INT64, DataType.INT32) or out.dtype is not DataType.FLOAT32:
        return None
    error, check = index_check(layer)
    numbers = PACKED_TABLE.numbers(
        error=error.ctypes.data,
        is_short=int(indices.dtype is DataType.INT32),
        size=form.columns,
        depth=form.depth,
        block=form.block,
        words_each=form.words,
        blocks=form.blocks,
        zero_words=0 if zeros is None else words_of(form.blocks, form.bits),
    )
    operands = PACKED_TABLE.operands(words=words, scales=scales, zeros=zeros or words, indices=indices, out=out)
    grain = sharing(form.count, 8 * form.count * form.depth)
    text = _text(form, zeros)
    return [step(layer, "packed.table", operands, numbers, form.count, text, [error], grain=grain, check=check)]
