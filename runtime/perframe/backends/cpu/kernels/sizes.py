"""This CPU's vectors: the floats in one, the number of registers, and the tile sizes that follow from both."""

from __future__ import annotations

import functools
import os

from perframe.backends.cpu.processor import architecture, has


@functools.cache
def _host() -> tuple[int, int]:
    """(float32 lanes, registers) of the widest vectors. PERFRAME_VECTORS, such as "8x16", overrides them."""
    asked = os.environ.get("PERFRAME_VECTORS")
    if asked:
        lanes, _, registers = asked.partition("x")
        return int(lanes), int(registers)
    if has("avx512f"):
        return 16, 32
    if has("avx2") and has("fma"):
        return 8, 16
    if architecture() == "aarch64":
        return 4, 32
    return 4, 16


@functools.cache
def has_halves() -> bool:
    """Whether this CPU converts float16. Elsewhere LLVM would call functions that the program may lack."""
    return architecture() == "aarch64" or has("f16c")


@functools.cache
def multiplies_and_adds() -> bool:
    """Whether this CPU multiplies and adds in one instruction. Elsewhere LLVM would call a function for each lane."""
    return architecture() != "x86_64" or has("fma")


LANES, REGISTERS = _host()
# columns in a packed panel: two vectors
PANEL = 2 * LANES
# columns in a panel of packed weights (layers/packed.py), and the most rows that are multiplied without floats of them
PACKED_PANEL, PACKED_ROWS = 16, 4
# Rows of a tile: its sums fill all registers but those for a panel's row and a broadcast element. Narrow vectors need
# more registers: on Arm for the elements of each row, on x86 for products. With these numbers of rows LLVM puts no sum
# on the stack (tools/targets.py).
ROWS = {(4, 32): 8, (4, 16): 4}.get((LANES, REGISTERS), min(14, (REGISTERS - 3) // 2))
# elements of the input that a kernel copies to its stack: 192 KiB
BLOCK = 49152
# lines that a resampling keeps on the stack, and columns of a line
SLOTS, COLUMNS = 16, BLOCK // 16
# dims of a strided copy, after mergeable neighbors are merged
MAX_RANK = 16
# columns of a reduction in one item
RUN = 256
# rows of a transposition in one item
STRIP = 16 * LANES
# a softmax takes rows of fewer elements than SHORT_ROW together, ROWS_TOGETHER at a time
SHORT_ROW, ROWS_TOGETHER = 2 * LANES, 64
# a search for the largest element takes rows of so few elements together
FEW_ELEMENTS = 128
# the most queries that an item of attention takes at a time; elements for their scores, and for the queries themselves
ATTENTION_ROWS, SCORES, QUERIES = 5 * ROWS, 24576, 20480
# products of bytes: products that one instruction adds up, such groups in a register of AMX, and rows of that register
GROUP, STEP, AMX_ROWS = 4, 16, 16
# the begin, in a block on the stack, of the sums of a tile of bytes, and before them of the sums of rows
SUMS = BLOCK - 32 * PANEL
ROW_SUMS = SUMS - 1024
# what a pad writes outside the input
PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP = range(4)
# chosen boxes that a candidate meets at a time
BOX_BLOCK = 64
# sampling at the points of a grid: the modes and paddings of layers/grid.py, in their order, and points in an item
NEAREST, LINEAR, CUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
POINT_BLOCK = 128
# what the kernel of regions notes as an error: 1 for a wrong index, or this for a region that is not finite
NOT_FINITE = 2
# bytes between two words that threads write: one for each line of the caches
WORD_STEP = 64
