"""Winograd's convolution by 3 x 3 kernels, with a quarter of the products: when it pays, its weights and its step."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from perframe.backends.cpu.kernels.fields import WINOGRAD
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES, PANEL, ROWS, WORD_STEP
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.lowering import step
from perframe.backends.cpu.program import huge_pages
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Later, Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.backends.winograd import POINTS, transformed, transforms
from perframe.ir.sizes.size import at_least, at_most, is_less, specialized
from perframe.layers.conv import Convolution

FEW_TILES = 12  # with fewer tiles, reading the weights, which have four times as many elements, costs too much
MOST_TILES = BLOCK // (POINTS * PANEL) // ROWS * ROWS  # their products for a panel of columns fit on the stack


class _Rooms:
    """The words by which threads take rooms for transformed tiles."""

    def __init__(self, threads: int) -> None:
        self.words = np.zeros((threads, WORD_STEP), np.uint8)
        _all_rooms.add(self)


_all_rooms: WeakSet[_Rooms] = WeakSet()


def _free_rooms() -> None:
    """Free all rooms in a forked child, which lacks the threads that had taken them."""
    for rooms in _all_rooms:
        rooms.words[:] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_rooms)


def may_take(form: Convolution) -> bool:
    """Whether this pays for some shapes of this convolution. If so, its kernel is compiled beside the usual one."""
    return transforms(form) and LANES > 4


def pays(form: Convolution) -> bool:
    """Whether this pays for this shape: it needs enough tiles, and uses most outputs of each."""
    tiles = math.prod(-(-size // 4) for size in form.output)
    return may_take(form) and form.batch * tiles >= FEW_TILES and math.prod(form.output) >= 9 * tiles


def panels_of(form: Convolution) -> Later:
    """Return what packs weights (outputs, channels, 3, 3) as panels for each of the 36 points."""
    channels, outputs = specialized(form.channels), specialized(form.outputs)

    def packed(weights: Any) -> Any:
        panels = huge_pages.zeros((POINTS, channels * gemm.padded(outputs)), np.float32)
        for first in range(0, outputs, PANEL):  # all at once would touch twice the memory
            part = weights[first : first + PANEL]
            width = gemm.padded(len(part))
            panel = panels[:, first * channels : (first + width) * channels].reshape(POINTS, channels, width)
            transformed(part, panel[..., : len(part)])
        return panels.reshape(-1)

    return Later(POINTS * channels * gemm.padded(outputs), packed)


def convolve(
    layer: LayerLike,
    form: Convolution,
    operands: Sequence[Operand],
    addend: Operand | None,
    out: Operand,
    scratch: Scratch,
) -> NativeStep:
    """Return the step. Operands are data, packed weights and bias."""
    x, packed, bias = operands
    (height, width), (out_height, out_width), (py, px) = form.size, form.output, form.window.begin
    down, across = -(-out_height // 4), -(-out_width // 4)
    tiles, panels, threads = form.batch * down * across, -(-form.outputs // PANEL), thread_count()
    # each thread gets as many items; an item transforms its tiles once for all columns that it computes, and reads all
    # weights: tiles of several images share them
    tile_items = -(-tiles // MOST_TILES)
    tile_items += is_less(threads, tile_items) * (-(-tile_items // threads) * threads - tile_items)
    tile_block = -(-tiles // tile_items)
    column_items = at_most(panels, -(-threads // tile_items))
    column_block = PANEL * -(-panels // column_items)
    column_items = -(-form.outputs // column_block)
    items = tile_items * column_items
    rooms = at_most(items, threads)
    transformed = scratch((rooms, POINTS, tile_block, form.channels), x.dtype)
    ends, keep = gemm.finishing(layer)
    zeros, taken = np.zeros(PANEL, np.float32), _Rooms(threads)
    flops = 2 * tiles * POINTS * form.channels * form.outputs
    numbers = WINOGRAD.numbers(
        **ends,
        height=height,
        width=width,
        out_height=out_height,
        out_width=out_width,
        pad_y=py,
        pad_x=px,
        channels=form.channels,
        columns=form.outputs,
        x_pitch=x.pitch,
        out_pitch=out.pitch,
        addend_pitch=out.pitch if addend is None else addend.pitch,
        has_addend=int(addend is not None),
        tiles_across=across,
        image_tiles=down * across,
        tiles=tiles,
        tile_block=tile_block,
        column_block=column_block,
        column_items=column_items,
        point_step=form.channels * gemm.padded(form.outputs),
        zeros=zeros.ctypes.data,
        rooms=rooms,
        room_words=taken.words.ctypes.data,
    )
    return step(
        layer,
        "winograd",
        WINOGRAD.operands(x=x, weights=packed, bias=bias, addend=addend or bias, out=out, transformed=transformed),
        numbers,
        items,
        keep=[*keep, zeros, taken],
        grain=items * gemm.SPLIT_FLOPS // at_least(2 * flops, 1),
        beside=("gemm",),
    )
