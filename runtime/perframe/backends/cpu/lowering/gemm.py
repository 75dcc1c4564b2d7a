"""Products over packed panels: packing, blocking, and the numbers of the kernel that convolutions share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import GEMM, PACK, SCALE, WINDOW_Z
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES, PANEL, ROWS
from perframe.backends.cpu.lowering.lowering import epilogue_limits, float_array, step, window_reach, window_words
from perframe.backends.cpu.program import huge_pages
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Later, Operand
from perframe.backends.protocol import LayerLike
from perframe.ir.epilogue import parameters
from perframe.ir.geometry import SlidingWindow
from perframe.ir.sizes.size import at_least, at_most, is_less, is_symbolic
from perframe.layers.conv import Convolution
from perframe.safety.records import dataclass

Floats = NDArray[np.float32]

WEIGHTY = 2**17  # weights: reading them once more takes a core as long as a few rows of pixels from another core
SPLIT_FLOPS = 500_000  # some 3 µs on one core: less work is not worth sharing
LARGE = 1 << 14  # elements of a matrix: copying its rows once more pays
# A panel of more bytes than LARGE_PANEL does not stay in the second cache from one tile to the next. Such a product
# takes its depth in blocks; each reads PANEL_BLOCK bytes of a panel.
LARGE_PANEL, PANEL_BLOCK = 1 << 20, 1 << 18
CROWDED = 1024  # rows share one set of the first cache, if their pitch is a multiple of this


def padded(columns: int) -> int:
    """The columns of whole vectors."""
    return -(-columns // LANES) * LANES


def pack(matrix: NDArray[Any]) -> Floats:
    """Pack (..., depth, columns) into panels (depth, PANEL). The last panel has as many vectors as it needs."""
    *batch, depth, columns = matrix.shape
    packed = huge_pages.zeros((*batch, depth * padded(columns)), np.float32)
    if matrix.strides[-2] < matrix.strides[-1] and depth * columns >= LARGE:
        for index in np.ndindex(*batch):
            _pack_transposed(matrix[index], packed[index])
        return packed.reshape(-1)
    for first in range(0, columns, PANEL):
        part = matrix[..., first : first + PANEL]
        width = padded(part.shape[-1])
        panel = packed[..., first * depth : first * depth + depth * width].reshape(*batch, depth, width)
        panel[..., : part.shape[-1]] = part
    return packed.reshape(-1)


def _pack_transposed(matrix: NDArray[Any], packed: Floats) -> None:
    """Pack a matrix whose columns are rows in memory: they are copied first, so that no two lie a power of two apart.
    The caches hold few of these.
    """
    depth, columns = matrix.shape
    rows = np.empty((PANEL, depth + LANES), np.float32)[:, :depth]
    for first in range(0, columns, PANEL):
        part = matrix[:, first : first + PANEL].T
        width = padded(len(part))
        rows[: len(part)] = part
        packed[first * depth : first * depth + depth * width].reshape(depth, width)[:, : len(part)] = rows[
            : len(part)
        ].T


def panels_of(matrices: Callable[[Any], Any], count: int, depth: int, columns: int) -> Later:
    """Return what packs the `count` matrices (depth, columns) that `matrices` makes of a constant."""
    return Later(count * depth * padded(columns), lambda value: pack(matrices(value)))


PLANE = dict(zip(WINDOW_Z.split(), (1, 1, 1, 1, 1, 0), strict=True))  # the words of a window within one plane


@dataclass(frozen=True)
class Multiplication:
    """Pixels by packed columns, for each matrix of a batch.

    A pixel's row of the left operand is its window of `channels`. The rows of a matrix are the pixels of one line.
    `window` has the words of fields.WINDOW, and `window_z` those of fields.WINDOW_Z. `steps` are those of
    fields.BATCH_STEPS, in elements, each for all dims of the batch.
    """

    images: int
    columns: int
    x_pitch: int
    out_pitch: int
    addend_pitch: int
    window: Mapping[str, int]
    channels: int
    batch: tuple[int, ...] = ()
    steps: Sequence[tuple[int, ...]] = ((),) * 5
    x_offset: int = 0
    out_offset: int = 0
    out_line: int = 0  # elements between two lines of output pixels; 0 for lines without gaps
    out_image: int = 0
    addend_columns: int = 0  # the columns that have an addend; 0 for all
    window_z: Mapping[str, int] = field(default_factory=lambda: PLANE)

    @property
    def depth(self) -> int:
        """The elements of a row."""
        return self.window_z["kernel_z"] * self.window["kernel_y"] * self.window["kernel_x"] * self.channels

    @property
    def planes(self) -> int:
        """The planes of output pixels."""
        return self.images * self.window_z["out_z"]

    @property
    def pixels(self) -> int:
        """The rows of each matrix."""
        return self.planes * self.window["out_height"] * self.window["out_width"]

    @property
    def words(self) -> dict[str, int]:
        """The words that the kernels of floats and of bytes have in common."""
        return {
            "depth": self.depth,
            "columns": self.columns,
            "x_pitch": self.x_pitch,
            "out_pitch": self.out_pitch,
            **self.window,
            "channels": self.channels,
            "x_offset": self.x_offset,
            "out_offset": self.out_offset,
            "rank": len(self.batch),
        }

    @property
    def batch_words(self) -> list[int]:
        """The dims of the batch, and the steps along it: the words that follow those with names."""
        return [*self.batch, *(step for steps in self.steps for step in steps)]

    @property
    def is_plain(self) -> bool:
        """Whether each window is one pixel, and the windows are the pixels of the input in their order."""
        seen = self.window
        ones = ("kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x")
        if any(seen[name] != 1 for name in ones) or seen["pad_y"] or seen["pad_x"]:
            return False
        return seen["height"] == seen["out_height"] and seen["width"] == seen["out_width"]

    @property
    def leaves_lines(self) -> bool:
        """Whether the window reaches beyond the ends of the input's lines."""
        seen, (_, reach_x) = self.window, window_reach(self.window)
        right = (seen["out_width"] - 1) * seen["stride_x"] - seen["pad_x"] + reach_x
        return seen["pad_x"] > 0 or right > seen["width"]

    @property
    def line_step(self) -> int:
        """The distance of the output lines whose taps lie on the same lines of the input. It is more than 1 where the
        window is dilated: taking such lines together reads less of the input.
        """
        spread = self.window["dilation_y"]
        step = spread // math.gcd(spread, self.window["stride_y"])
        return 1 if step == 1 else at_most(step, at_least(self.window["out_height"], 1))


@dataclass(frozen=True)
class _Blocks:
    """An item's output lines, pixels of a line and columns; the channels that it takes at a time; a copy's pitch."""

    lines: int
    pixels: int
    columns: int
    channels: int
    pitch: int


def window_of_rows(rows: int) -> dict[str, int]:
    """The window of a matrix: each row is one pixel."""
    window = window_words(
        SlidingWindow(kernel=(1,), strides=(1,), dilations=(1,), begin=(0,), end=(0,)), (rows,), (rows,)
    )
    assert window is not None
    return window


def images_of(form: Convolution, window: dict[str, int]) -> tuple[int, dict[str, int]]:
    """A convolution's images and window. Where windows are single pixels, all images are rows of one matrix."""
    if form.window.kernel == form.window.strides == (1,) * len(form.size) and form.output == form.size:
        return 1, window_of_rows(form.batch * math.prod(form.size))
    return form.batch, window


def matrices_of(weights: Any, groups: int) -> Any:
    """The weights of a convolution, (outputs, channels of a group, taps), as (groups, taps by channels, outputs)."""
    outputs, depth = len(weights) // groups, weights.shape[1]
    by_tap = weights.reshape(groups, outputs, depth, -1).swapaxes(2, 3)
    return by_tap.reshape(groups, outputs, -1).swapaxes(1, 2)


def _blocks(form: Multiplication, copies: bool) -> _Blocks | None:
    """Choose the blocks without a branch on sizes of the data, so that one plan's arithmetic serves many sizes.

    Returns None if the copy of a window is too large for the stack.
    """
    out_height, out_width, channels = form.window["out_height"], form.window["out_width"], form.channels
    out_height = -(-out_height // form.line_step)  # an item takes lines of one phase
    spread, taps = form.window["dilation_y"], form.window["kernel_y"]
    sy, sx, (_, reach_x) = form.window["stride_y"], form.window["stride_x"], window_reach(form.window)
    sy //= math.gcd(spread, sy)  # in lines of a copy, which leaves out the lines between taps
    batches, wanted = form.planes * form.line_step * math.prod(form.batch), 4 * thread_count()
    panels = -(-form.columns // PANEL)
    pixels = -(-out_width // -(-out_width // (8 * ROWS)))  # blocks of one size
    choices: list[int] = []
    if copies:
        choices = _channel_blocks(channels, BLOCK // (taps * reach_x) - LANES)
        if not choices:
            return None
        most = (BLOCK // (taps * (choices[-1] + LANES)) - reach_x) // sx + 1
        pixels = at_most(pixels, most // ROWS * ROWS if most > ROWS else most)
    # copies of neighboring blocks overlap: taller blocks copy less
    lines = at_most(out_height, at_least((32 if copies and taps > sy else 8) * ROWS // pixels, 1))
    # each thread gets pixels of its own: it finds them in its cache, and would wait long for those of another core
    least = at_least(ROWS * form.depth * form.columns // WEIGHTY, ROWS // 2)
    parts = -(-thread_count() // batches)
    line_items = -(-out_height // (lines * parts)) * parts
    lines = at_most(lines, at_least(-(-out_height // line_items), -(-least // pixels)))
    parts = -(-parts // -(-out_height // lines))
    pixel_items = -(-out_width // (pixels * parts)) * parts
    pixels = at_most(pixels, at_least(-(-out_width // pixel_items), least))
    # a few items for each thread: first by columns, since such items read the weights only once
    column_items = at_most(panels, -(-wanted // (-(-out_height // lines) * -(-out_width // pixels) * batches)))
    line_items = -(-wanted // (panels * batches * -(-out_width // pixels)))
    lines = at_most(lines, at_least(out_height // line_items, -(-ROWS // pixels)))
    column_block = PANEL * -(-panels // column_items)
    block, pitch = _deep_block(form), channels
    if copies:
        pitches = [choice + (LANES if choice * sx % CROWDED == 0 else 0) for choice in choices]
        block, pitch = choices[-1], pitches[-1]
        room = ((lines - 1) * sy + taps) * ((pixels - 1) * sx + reach_x)
        for larger, smaller in zip(range(len(choices)), range(1, len(choices)), strict=False):
            fits = is_less(room * (choices[larger] + LANES), BLOCK + 1)
            block += fits * (choices[larger] - choices[smaller])
            pitch += fits * (pitches[larger] - pitches[smaller])
        across = ((pixels - 1) * sx + reach_x) * (block + LANES)
        lines = at_most(lines, at_least((BLOCK // across - taps) // sy + 1, 1))
    lines = -(-out_height // -(-out_height // lines))
    share = -(-out_width // -(-wanted // (panels * batches * -(-out_height // lines))))
    pixels = at_most(pixels, -(-share // ROWS) * ROWS)
    return _Blocks(lines, pixels, column_block, block, pitch)


def _deep_block(form: Multiplication) -> int:
    """The channels that an item takes at a time where it copies nothing: all, unless many rows read a large panel. For
    windows of several taps blocks were no faster.
    """
    few = not is_symbolic(form.pixels) and form.pixels <= 2 * ROWS
    size = form.depth * PANEL * 4
    if few or is_symbolic(size) or form.depth != form.channels or size <= LARGE_PANEL:
        return form.channels
    return PANEL_BLOCK // (4 * PANEL)


def _channel_blocks(channels: int, most: int) -> list[int]:
    """The numbers of channels that an item may take at a time, in descending order; the last is at most `most`.

    Returns nothing where `most` is less than one. A product reads its weights once, whatever the number is.
    """
    choices = [channels]
    while choices[-1] > 8 * LANES or (choices[-1] > most and choices[-1] > 1):
        choices.append(-(-choices[-1] // 2))
    return choices if choices[-1] <= most else []


def finishing(layer: LayerLike) -> tuple[dict[str, int], list[Floats]]:
    """The words that say how a kernel's sums become results, and the arrays that these words point to.

    The limits have the clips. Any other epilogue is a separate kernel, for a few rows while they are in the cache.
    """
    low_high = epilogue_limits(layer.epilogue)
    limits = float_array((*(low_high or (-math.inf, math.inf)), -math.inf, math.inf))
    numbers = float_array(parameters(layer.epilogue))
    kernel = 0 if low_high else jit.kernel("finish", jit.epilogue_text(layer.epilogue))
    return {"limits": limits.ctypes.data, "finish": kernel, "parameters": numbers.ctypes.data}, [limits, numbers]


def multiply(
    layer: LayerLike,
    form: Multiplication,
    x: Operand,
    packed: Operand,
    bias: Operand | None,
    addend: Operand | None,
    out: Operand,
) -> NativeStep:
    """Return the step of a product."""
    out_height, out_width, line_step = form.window["out_height"], form.window["out_width"], form.line_step
    many = is_symbolic(form.pixels) or form.pixels > ROWS
    crowded = form.x_pitch * form.window["stride_x"] % CROWDED == 0 and many and form.columns > PANEL
    # where taps lie far apart, the tiles at the ends of lines are large enough without a copy
    copies = crowded or (form.window["dilation_x"] < ROWS // 2 and form.leaves_lines)
    blocks = _blocks(form, copies)
    if blocks is None:
        copies, blocks = False, _blocks(form, False)
        assert blocks is not None
    line_items, pixel_items = -(-out_height // (blocks.lines * line_step)), -(-out_width // blocks.pixels)
    column_items = -(-form.columns // blocks.columns)
    items = line_items * line_step * pixel_items * column_items * form.planes * math.prod(form.batch)
    flops = 2 * form.pixels * form.columns * form.depth * math.prod(form.batch)
    ends, keep = finishing(layer)
    zeros = Operand.stored(np.zeros(PANEL, np.float32))
    line = form.out_line or out_width * form.out_pitch
    numbers = GEMM.numbers(
        **ends,
        **form.words,
        **form.window_z,
        images=form.images,
        line_step=line_step,
        addend_pitch=form.addend_pitch,
        has_bias=int(bias is not None),
        has_addend=int(addend is not None),
        line_block=blocks.lines,
        pixel_block=blocks.pixels,
        column_block=blocks.columns,
        channel_block=blocks.channels,
        line_items=line_items,
        pixel_items=pixel_items,
        column_items=column_items,
        copies=int(copies),
        copy_pitch=blocks.pitch,
        out_line=line,
        out_image=form.out_image or out_height * line,
        addend_columns=form.addend_columns or form.columns,
    )
    return step(
        layer,
        "gemm",
        GEMM.operands(x=x, weights=packed, bias=bias or zeros, addend=addend or zeros, out=out),
        [*numbers, *form.batch_words],
        items,
        keep=keep,
        grain=items * SPLIT_FLOPS // at_least(2 * flops, 1),
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
    """Return the step that packs (depth, columns) matrices in each run. Constants are packed once instead."""
    panels, (depth_step, column_step) = -(-columns // PANEL), strides
    numbers = PACK.numbers(
        depth=depth,
        columns=columns,
        depth_step=depth_step,
        column_step=column_step,
        panels=panels,
        offset=offset,
        rank=len(batch),
    )
    items = panels * math.prod(batch)
    grain = items * SPLIT_FLOPS // 50 // at_least(depth * columns * math.prod(batch), 1)
    operands = PACK.operands(b=b, packed=packed)
    return step(layer, "gemm.pack", operands, [*numbers, *batch, *steps], items, grain=grain)


def scale_step(
    layer: LayerLike, packed: Operand, factor: Operand, scaled: Operand, depth: int, columns: int
) -> NativeStep:
    """Return the step that multiplies each row of packed panels by a factor."""
    operands = SCALE.operands(packed=packed, factors=factor, out=scaled)
    return step(layer, "gemm.scale", operands, SCALE.numbers(depth=depth, columns=columns), -(-columns // PANEL))
