"""Products of float32 numbers that are rounded to bfloat16: instructions, packing and blocking."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import BFLOAT, BFLOAT_ROWS
from perframe.backends.cpu.kernels.sizes import AMX_ROWS, GROUP, LANES, PANEL
from perframe.backends.cpu.lowering.byte_product import (
    ROOM,
    blocks_of,
    may_use_amx,
    packed_size,
    panels,
    pitch_of,
    steps_of,
    suits_amx,
)
from perframe.backends.cpu.lowering.gemm import SPLIT_FLOPS, Multiplication, finishing, padded
from perframe.backends.cpu.lowering.lowering import sharing, step
from perframe.backends.cpu.processor import has
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least, at_most
from perframe.tensor import DataType

log = logging.getLogger("perframe")

BYTES = 2  # of a number
LEAST = 16  # the depth and the columns of a product for which rounding pays
CHUNK = 4096  # numbers without gaps that an item rounds
# the least pixels of a line for which AMX reads a copy of lines: between two lines lie rows without a pixel
LEAST_WIDTH = 12
ROWS_OF_LINES = 512  # the most rows of an item that copies lines


@functools.cache
def instructions() -> tuple[str, ...]:
    """The kinds of tiles that this CPU has, best first."""
    kinds = []
    if LANES == 16 and has("amx-bf16") and has("amx-tile") and may_use_amx():
        kinds.append("bfloat_amx")
    if LANES == 16 and has("avx512bf16"):
        kinds.append("bfloat_pairs")
    return tuple(kinds)


def warn_if_absent() -> None:
    """Log a warning where this CPU has no such instructions."""
    if not instructions():
        log.warning(
            "activations='bfloat16' changes nothing on this processor, which lacks AVX512-BF16 and AMX: its products "
            "stay float32"
        )


def rounded(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The bits of the nearest bfloat16, halves to even."""
    values = np.array(values, np.float32, order="K")  # transposed matrices stay so, which is faster
    bits = values.view(np.uint32)
    made = bits >> 16
    made &= 1
    made += bits
    made += np.uint32(0x7FFF)
    made >>= 16
    made[np.isnan(values)] = 0x7FC0
    return made.astype(np.uint16)


def suits(form: Multiplication) -> bool:
    """Whether a product may be one of bfloat16: one of some depth and columns, in planes without gaps between lines."""
    depth_words = form.window_z
    flat = all(depth_words[name] == 1 for name in ("size_z", "out_z", "kernel_z"))
    return (
        bool(instructions())
        and flat
        and not (form.out_line or form.out_image)
        and min(form.depth, form.columns) >= LEAST
    )


def multiply(
    layer: LayerLike,
    form: Multiplication,
    x: Operand,
    weights: tuple[Operand, str, Callable[[Any], Any]],
    bias: Operand | None,
    addend: Operand | None,
    out: Operand,
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Return the steps of a product, or None if a row is too long for the stack.

    `weights` are the constant, the name of its matrices (depth, columns), and the function that makes them.
    """
    w, key, matrices = weights
    depth = form.depth * BYTES
    pitch = pitch_of(depth)
    kind = next((kind for kind in instructions() if kind != "bfloat_amx" or suits_amx(form, pitch)), None)
    (steps, groups), blocks, kernel = steps_of(depth), None, "bfloat"
    if kind == "bfloat_amx" and _has_lines(form):
        blocks = _blocks_of_lines(form)
    if blocks is not None:
        (steps, groups), kernel = steps_of(_run(form)), "bfloat.lines"
    elif kind is not None:
        blocks = blocks_of(form, pitch, kind == "bfloat_amx")
    if blocks is None:
        return None
    before, given, each, x_pitch = list[NativeStep](), x, 4, form.x_pitch
    if kernel == "bfloat" and not form.is_plain:
        given, each, x_pitch = scratch((x.shape.size,), DataType.UINT16), BYTES, x.shape[-1] if x.has_gaps else x_pitch
        before = [_round(layer, x, given)]
    x_steps, w_steps, *others = form.steps
    matrix = form.depth * padded(form.columns)
    batch_steps = (
        [step * each for step in x_steps],
        [step // matrix * packed_size(depth, form.columns) for step in w_steps],
        *others,
    )
    ends, keep = finishing(layer)
    words = {"depth": depth, "channels": form.channels * BYTES, "x_offset": form.x_offset * each}
    numbers = BFLOAT.numbers(
        **ends,
        **{**form.words, **words, "x_pitch": x_pitch * each},
        addend_pitch=form.addend_pitch,
        pixels=form.pixels,
        **blocks,
        steps=steps,
        groups=groups,
        panel_depth=math.prod(steps_of(depth)) * GROUP,
        copy_pitch=pitch,
        is_plain=int(form.is_plain),
        has_bias=int(bias is not None),
        addend_columns=0 if addend is None else form.addend_columns or form.columns,
        images=form.images,
    )
    zeros = Operand.stored(np.zeros(PANEL, np.float32))
    panel = w.derived(f"bfloat {key}", lambda value: panels(matrices(value), np.uint16, rounded))
    operands = BFLOAT.operands(x=given, weights=panel, bias=bias or zeros, addend=addend or zeros, out=out)
    items = blocks["pixel_items"] * blocks["column_items"] * math.prod(form.batch)
    items *= form.images if kernel == "bfloat.lines" else 1
    flops = 2 * form.pixels * form.columns * form.depth * math.prod(form.batch)
    grain = items * SPLIT_FLOPS * 4 // at_least(flops, 1)
    _expect(form)
    words_behind = [*form.batch, *(one for steps_along in batch_steps for one in steps_along)]
    made = step(layer, kernel, operands, [*numbers, *words_behind], items, _text(str(kind)), keep, grain=grain)
    return [*before, made]


def _expect(form: Multiplication) -> None:
    """Request all kernels that the product may need in other shapes: the number of rows and the width decide."""
    for kind in instructions():
        jit.kernel("bfloat", _text(kind))
        if not form.is_plain:
            jit.kernel("bfloat.rows")
            if kind == "bfloat_amx":
                jit.kernel("bfloat.lines", _text(kind))


def _run(form: Multiplication) -> int:
    """The bytes of a line of taps."""
    return form.window["kernel_x"] * form.channels * BYTES


def _has_lines(form: Multiplication) -> bool:
    """Whether rows may be parts of a copy of lines: neighboring pixels are neighbors there, and whole groups."""
    seen = form.window
    if form.is_plain or seen["stride_x"] != 1 or seen["stride_y"] != 1 or seen["dilation_x"] != 1:
        return False
    return math.prod(steps_of(_run(form))) * GROUP == _run(form) and seen["out_width"] >= LEAST_WIDTH


def _blocks_of_lines(form: Multiplication) -> dict[str, int] | None:
    """The lines and columns of an item, and the number of items: enough for all threads. None if no line fits on the
    stack.
    """
    seen, pixel = form.window, form.channels * BYTES
    wide, more = seen["out_width"] + seen["kernel_x"] - 1, (seen["kernel_y"] - 1) * seen["dilation_y"]
    # tiles read whole registers, up to two behind the last row
    most = (ROOM - 2 * AMX_ROWS * pixel) // (wide * pixel) - more
    if most < 1:
        return None
    threads, panels_across = thread_count(), -(-form.columns // PANEL)
    wanted, batches = 4 * threads if threads > 1 else 1, form.images * math.prod(form.batch)
    lines = at_most(most, -(-ROWS_OF_LINES // wide))
    # more items first by columns, since such items read the weights only once; each copies the lines, so they are wide
    items = batches * -(-seen["out_height"] // lines)
    column_items = at_most(-(-panels_across // 2), -(-wanted // items))
    lines = at_most(lines, -(-seen["out_height"] // -(-wanted // (column_items * batches))))
    line_items = -(-seen["out_height"] // lines)
    column_block = PANEL * -(-panels_across // column_items)
    return {
        "pixel_block": -(-seen["out_height"] // line_items),
        "column_block": column_block,
        "pixel_items": line_items,
        "column_items": -(-form.columns // column_block),
    }


def _text(kind: str) -> str:
    """The variant of the kernel."""
    return f"tile = {kind!r}"


def _round(layer: LayerLike, x: Operand, out: Operand) -> NativeStep:
    """Return the step that rounds all numbers of x, and leaves out its gaps."""
    elements, size, pitch = x.shape.size, CHUNK, CHUNK
    if x.has_gaps:
        size, pitch = x.shape[-1], x.pitch
    items = -(-elements // at_least(size, 1))
    numbers = BFLOAT_ROWS.numbers(size=size, pitch=pitch, elements=elements)
    operands = BFLOAT_ROWS.operands(x=x, out=out)
    return step(layer, "bfloat.rows", operands, numbers, items, grain=sharing(items, elements))
