"""Products over packed panels: packing, blocking, and the numbers of the kernel that convolutions share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.sizes import BLOCK, HAS_ADDEND, LANES, PANEL, ROWS, ZERO_BIAS
from perframe.backends.cpu.lowering.lowering import epilogue_limits, float_array, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.epilogue import parameters
from perframe.sizes.traced import at_least, at_most, is_followed, is_less

Floats = NDArray[np.float32]

SPLIT_FLOPS = 2_000_000  # some 10 µs on one core: less is not worth sharing
CROWDED = 1024  # rows whose pitch is a multiple of this share one set of the first cache


def padded(columns: int) -> int:
    """Columns, in whole vectors."""
    return -(-columns // LANES) * LANES


def pack(matrix: NDArray[Any]) -> Floats:
    """(..., depth, columns) as panels: for each PANEL columns (depth, PANEL), the last in whole vectors of its own."""
    *batch, depth, columns = matrix.shape
    packed = np.zeros((*batch, depth * padded(columns)), np.float32)
    for first in range(0, columns, PANEL):
        part = matrix[..., first : first + PANEL]
        width = padded(part.shape[-1])
        panel = packed[..., first * depth : first * depth + depth * width].reshape(*batch, depth, width)
        panel[..., : part.shape[-1]] = part
    return packed.reshape(-1)


@dataclass(frozen=True)
class Multiplication:
    """Pixels by packed columns, for each of a batch. Steps are elements from one of the batch to the next.

    `window` is (height, width, out height, width, kernel, strides, dilations, pads, channels): what a pixel's row of
    the left operand is; rows of a matrix are pixels of one line.
    """

    images: int
    columns: int
    x_pitch: int
    out_pitch: int
    addend_pitch: int
    window: tuple[int, ...]
    batch: tuple[int, ...] = ()
    steps: tuple[tuple[int, ...], ...] = field(default=((), (), (), (), ()))  # of x, w, bias, out, addend
    x_offset: int = 0
    out_offset: int = 0
    out_line: int = 0  # elements between two lines of output pixels; 0 where these follow each other
    out_image: int = 0
    addend_columns: int = 0  # of the result, that it is added to; 0 where it is all of them

    @property
    def depth(self) -> int:
        """The elements of a row."""
        return self.window[4] * self.window[5] * self.window[12]

    @property
    def pixels(self) -> int:
        """The rows of each of the batch."""
        return self.images * self.window[2] * self.window[3]

    @property
    def leaves(self) -> bool:
        """Whether the window reaches beyond the input."""
        height, width, out_height, out_width, ky, kx, sy, sx, dy, dx, py, px, _ = self.window
        bottom = (out_height - 1) * sy - py + (ky - 1) * dy
        right = (out_width - 1) * sx - px + (kx - 1) * dx
        return py > 0 or px > 0 or bottom >= height or right >= width


@dataclass(frozen=True)
class _Blocks:
    """What one item computes, and how much of the channels it takes at a time."""

    rows: int
    pixels: int
    columns: int
    channels: int
    pitch: int


def lines_of(rows: int, depth: int) -> tuple[int, ...]:
    """The window of a matrix: each row is a pixel of its own."""
    return (1, rows, 1, rows, *(1,) * 6, 0, 0, depth)


def _blocks(form: Multiplication, copies: bool) -> _Blocks | None:
    """Without a branch on sizes of the data, so that one plan's formulas serve many of them."""
    _, _, out_height, out_width, ky, kx, sy, sx, dy, dx, _, _, channels = form.window
    batches, wanted = form.images * math.prod(form.batch), 4 * thread_count()
    panels = -(-form.columns // PANEL)
    pixels = -(-out_width // -(-out_width // (8 * ROWS)))  # bands of one size
    choices: list[int] = []
    if copies:
        reach_y, reach_x = (ky - 1) * dy + 1, (kx - 1) * dx + 1
        choices = _channel_blocks(channels, BLOCK // (reach_y * reach_x) - LANES)
        if not choices:
            return None
        most = (BLOCK // (reach_y * (choices[-1] + LANES)) - reach_x) // sx + 1
        pixels = at_most(pixels, most // ROWS * ROWS if most > ROWS else most)
    # copies of neighbouring bands overlap: taller bands copy less
    rows = at_most(out_height, at_least((32 if copies and ky > sy else 8) * ROWS // pixels, 1))
    # a few items for each thread: of columns first, which read the weights only once
    column_items = at_most(panels, -(-wanted // (-(-out_height // rows) * -(-out_width // pixels) * batches)))
    bands = -(-wanted // (panels * batches * -(-out_width // pixels)))
    rows = at_most(rows, at_least(out_height // bands, -(-ROWS // pixels)))
    column_block = PANEL * -(-panels // column_items)
    block, pitch = channels, channels
    if copies:

        def room(rows: int) -> int:
            return ((rows - 1) * sy + reach_y) * ((pixels - 1) * sx + reach_x)

        pitches = [choice + (LANES if choice * sx % CROWDED == 0 else 0) for choice in choices]
        block, pitch = choices[-1], pitches[-1]
        for larger, smaller in zip(range(len(choices)), range(1, len(choices)), strict=False):
            fits = is_less(room(rows) * (choices[larger] + LANES), BLOCK + 1)
            block += fits * (choices[larger] - choices[smaller])
            pitch += fits * (pitches[larger] - pitches[smaller])
        across = ((pixels - 1) * sx + reach_x) * (block + LANES)
        rows = at_most(rows, at_least((BLOCK // across - reach_y) // sy + 1, 1))
    rows = -(-out_height // -(-out_height // rows))
    share = -(-out_width // -(-wanted // (panels * batches * -(-out_height // rows))))
    pixels = at_most(pixels, -(-share // ROWS) * ROWS)
    return _Blocks(rows, pixels, column_block, block, pitch)


def _channel_blocks(channels: int, most: int) -> list[int]:
    """How many channels may be taken at a time, the most first, the last of which are no more than `most`: none where
    that is less than one. Weights are read once all the same.
    """
    choices = [channels]
    while choices[-1] > 8 * LANES or (choices[-1] > most and choices[-1] > 1):
        choices.append(-(-choices[-1] // 2))
    return choices if choices[-1] <= most else []


def finishing(layer: LayerLike) -> tuple[list[int], list[Floats]]:
    """(limits, kernel, its parameters), what follows a layer's sums, and the arrays that these numbers point to.

    A clip is in the limits; any other epilogue is a kernel of its own, for a few rows while they are in the cache.
    """
    low_high = epilogue_limits(layer.epilogue)
    limits = float_array((*(low_high or (-math.inf, math.inf)), -math.inf, math.inf))
    numbers = float_array(parameters(layer.epilogue))
    kernel = 0 if low_high else jit.kernel("gemm.finish", jit.epilogue_text(layer.epilogue))
    return [limits.ctypes.data, kernel, numbers.ctypes.data], [limits, numbers]


def multiply(
    layer: LayerLike,
    form: Multiplication,
    x: Operand,
    packed: Operand,
    bias: Operand | None,
    addend: Operand | None,
    out: Operand,
) -> NativeStep | None:
    """The step of a product; None where the window is larger than what fits on the stack."""
    out_height, out_width = form.window[2:4]
    many = is_followed(form.pixels) or form.pixels > ROWS
    crowded = form.x_pitch * form.window[7] % CROWDED == 0 and many and form.columns > PANEL
    copies = form.leaves or crowded
    blocks = _blocks(form, copies)
    if blocks is None:
        return None
    items = [-(-out_height // blocks.rows), -(-out_width // blocks.pixels), -(-form.columns // blocks.columns)]
    count = math.prod(items) * form.images * math.prod(form.batch)
    flops = 2 * form.pixels * form.columns * form.depth * math.prod(form.batch)
    finish, keep = finishing(layer)
    zeros = Operand.stored(np.zeros(PANEL, np.float32))
    line = form.out_line or out_width * form.out_pitch
    return step(
        layer,
        "gemm",
        [x, packed, bias or zeros, addend or zeros, out],
        [
            *(*finish, form.images, form.depth, form.columns, form.x_pitch, form.out_pitch, form.addend_pitch),
            *(
                ZERO_BIAS * (bias is None) + HAS_ADDEND * (addend is not None),
                blocks.rows,
                blocks.pixels,
                blocks.columns,
                blocks.channels,
                *items,
            ),
            *(int(copies), blocks.pitch, line, form.out_image or out_height * line),
            form.addend_columns or form.columns,
            *(*form.window, form.x_offset, form.out_offset),
            *(len(form.batch), *form.batch, *(step for steps in form.steps for step in steps)),
        ],
        count,
        keep=keep,
        grain=count * SPLIT_FLOPS // at_least(2 * flops, 1),
    )


def pack_step(
    layer: LayerLike,
    b: Operand,
    packed: Operand,
    depth: int,
    columns: int,
    strides: Sequence[int],
    batch: Sequence[int],
    steps: Sequence[int],
    offset: int = 0,
) -> NativeStep:
    """The step that packs (depth, columns) matrices, for each of a batch, where they are no constants."""
    panels = -(-columns // PANEL)
    numbers = [depth, columns, *strides, panels, offset, len(batch), *batch, *steps]
    items = panels * math.prod(batch)
    grain = items * SPLIT_FLOPS // 50 // at_least(depth * columns * math.prod(batch), 1)
    return step(layer, "gemm.pack", [b, packed], numbers, items, grain=grain)


def scale_step(
    layer: LayerLike, packed: Operand, factor: Operand, scaled: Operand, depth: int, columns: int
) -> NativeStep:
    """The step that multiplies each row of packed panels by a factor."""
    return step(layer, "gemm.scale", [packed, factor, scaled], [depth, columns], -(-columns // PANEL))
