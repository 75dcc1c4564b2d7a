"""Products of bytes over packed panels: instructions, packing and blocking."""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import QUANTIZED
from perframe.backends.cpu.kernels.sizes import AMX_ROWS, GROUP, LANES, PANEL, ROW_SUMS, STEP
from perframe.backends.cpu.lowering.arm_features import byte_products
from perframe.backends.cpu.lowering.gemm import SPLIT_FLOPS, Multiplication, finishing, padded
from perframe.backends.cpu.lowering.lowering import float_array, step
from perframe.backends.cpu.processor import architecture, has
from perframe.backends.cpu.program import huge_pages
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.ir.sizes.size import at_least
from perframe.safety.records import dataclass
from perframe.tensor import DataType

FEW_ROWS = 5  # with fewer rows, AMX does not pay
ROOM = 4 * ROW_SUMS  # bytes of the stack for rows of the left operand
MOST_ROWS = 256
FLIP = 128  # turns signed bytes to unsigned ones that are larger by 128, and back
RESULTS = {DataType.INT32: "int32", DataType.FLOAT32: "float32", DataType.UINT8: "bytes", DataType.INT8: "bytes"}


@functools.cache
def instructions() -> tuple[str, ...]:
    """The kinds of tiles that this CPU has, best first. The system gives or refuses a process the use of AMX."""
    kinds = ["plain"]
    if LANES > 4 and has("avx512vnni" if LANES == 16 else "avxvnni"):
        kinds.insert(0, "vnni")
    if LANES == 16 and has("amx-int8") and has("amx-tile") and may_use_amx():
        kinds.insert(0, "amx")
    if architecture() == "aarch64" and LANES == 4:
        kinds[:0] = byte_products()
    return tuple(kinds)


@functools.cache
def may_use_amx() -> bool:
    """Ask the system for the use of AMX. Return whether this process has it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    arch_prctl, request, tiles = 158, 0x1023, 18  # numbers of the system call, of ARCH_REQ_XCOMP_PERM and XTILEDATA
    return ctypes.CDLL(None).syscall(arch_prctl, request, tiles) == 0


def steps_of(depth: int) -> tuple[int, int]:
    """(steps, groups of each) in which a kernel reads a depth. Elements beyond the depth meet weights of zero."""
    groups = -(-depth // GROUP)
    steps = -(-groups // STEP)
    return steps, -(-groups // steps)


def _deep(depth: int) -> int:
    return math.prod(steps_of(depth)) * GROUP


def packed_size(depth: int, columns: int) -> int:
    """The bytes of a packed (depth, columns) matrix."""
    return _deep(depth) * padded(columns)


def _signed(matrices: Any) -> Any:
    return matrices if matrices.dtype == np.int8 else (matrices ^ np.uint8(FLIP)).view(np.int8)


def pack(matrices: Any) -> Any:
    """(..., depth, columns) as panels of signed bytes."""
    return panels(matrices, np.int8, _signed)


def panels(matrices: Any, dtype: Any, convert: Callable[[Any], Any]) -> Any:
    """(..., depth, columns) as numbers of `dtype`, which `convert` makes, in groups of 4 bytes: for each PANEL columns
    (groups, columns in whole vectors, the numbers of a group).
    """
    *batch, depth, columns = matrices.shape
    each = GROUP // np.dtype(dtype).itemsize
    deep = _deep(depth * GROUP // each) * each // GROUP
    packed = huge_pages.zeros((*batch, deep * padded(columns)), dtype)
    for first in range(0, columns, PANEL):
        part = convert(matrices[..., first : first + PANEL])
        count, width = part.shape[-1], padded(part.shape[-1])
        panel = packed[..., first * deep : first * deep + deep * width].reshape(*batch, deep // each, width, each)
        for k in range(each):
            rows = part[..., k::each, :]
            panel[..., : rows.shape[-2], :count, k] = rows
    return packed.reshape(-1)


def _sums(matrices: Any) -> Any:
    return _with_room(_signed(matrices).sum(-2, dtype=np.int32))


def _with_room(values: Any) -> Any:
    """The numbers of all columns, and zeros that a vector may read beyond them."""
    return np.concatenate([values.reshape(-1), np.zeros(PANEL, values.dtype)])


@dataclass(frozen=True)
class Columns:
    """Weights, and the numbers of their columns. All are constant."""

    w: Operand
    bias: Operand | None
    zero: Operand | None
    scale: Operand | None

    def spread(self, values: Operand | None, count: int, dtype: Any, shift: int = 0) -> Operand:
        """A number for each of `count` columns, plus `shift`. `values` may have one number for all."""
        if values is None:
            return Operand.stored(np.full(count + PANEL, shift, dtype))

        def make(value: Any) -> Any:
            return _with_room(np.broadcast_to(value.reshape(-1), count) + np.full(count, shift, dtype)).astype(dtype)

        return values.derived(f"{count} columns as {np.dtype(dtype)} {shift}", make)


def multiply(
    layer: LayerLike,
    form: Multiplication,
    x: Operand,
    columns: Columns,
    packing: tuple[str, Callable[[Any], Any]],
    scalars: Sequence[Operand | None],
    limits: tuple[int, int] | None,
    out: Operand,
) -> list[NativeStep] | None:
    """Return the step of a product, or None if a row is empty, or too long for the stack.

    `scalars` are the zero point and the scale of x, and the zero point of the output.
    """
    if not form.depth:
        return None
    steps, groups = steps_of(form.depth)
    pitch = pitch_of(form.depth)
    kind = next(kind for kind in instructions() if kind != "amx" or suits_amx(form, pitch))
    blocks = blocks_of(form, pitch, kind == "amx")
    if blocks is None:
        return None
    kind_of_w, order = packing
    all_columns = form.columns * math.prod(form.batch)
    signed = columns.w.dtype is DataType.INT8
    w_zeros = columns.spread(columns.zero, all_columns, np.int32, 0 if signed else -FLIP)
    sums_rows = not signed or (columns.zero is not None and np.asarray(columns.zero.value).any())
    whole = columns.bias is not None and columns.bias.dtype is DataType.INT32
    x_zero, x_scale, y_zero = scalars
    operands = QUANTIZED.operands(
        x=x,
        weights=columns.w.derived(f"panels {kind_of_w}", lambda value: pack(order(value))),
        sums=columns.w.derived(f"sums {kind_of_w}", lambda value: _sums(order(value))),
        w_zeros=w_zeros,
        bias=columns.spread(columns.bias if whole else None, all_columns, np.int32),
        factors=columns.spread(columns.scale, all_columns, np.float32, 0),
        offsets=columns.spread(None if whole else columns.bias, all_columns, np.float32),
        x_zero=x_zero or Operand.stored(np.zeros(1, x.dtype.numpy)),
        x_scale=x_scale or Operand.stored(np.ones(1, np.float32)),
        y_zero=y_zero or Operand.stored(np.zeros(1, np.uint8)),
        out=out,
    )
    ends, keep = finishing(layer)
    if limits is not None:
        clamps = float_array(limits)
        ends, keep = {"limits": clamps.ctypes.data, "finish": 0, "parameters": 0}, [*keep, clamps]
    items = blocks["pixel_items"] * blocks["column_items"] * math.prod(form.batch)
    numbers = QUANTIZED.numbers(
        **ends,
        **form.words,
        pixels=form.pixels,
        **blocks,
        steps=steps,
        groups=groups,
        copy_pitch=pitch,
        in_place=int(form.is_plain and x.dtype is DataType.UINT8),
        flip=0 if x.dtype is DataType.UINT8 else FLIP,
        sums_rows=int(sums_rows),
        x_bytes=x.shape.size,
    )
    work = 2 * form.pixels * form.columns * form.depth * math.prod(form.batch)
    grain = items * SPLIT_FLOPS * 2 // at_least(work, 1)
    if instructions()[0] == "amx":  # the kind depends on the number of rows: another shape may need another kind
        for other in instructions()[:2]:
            jit.kernel("quantized", _text(other, out))
    text = _text(kind, out)
    return [step(layer, "quantized", operands, [*numbers, *form.batch_words], items, text, keep, grain=grain)]


def _text(kind: str, out: Operand) -> str:
    """The variant of the kernel."""
    return f"tile, result = {kind!r}, {RESULTS[out.dtype]!r}"


def suits_amx(form: Multiplication, pitch: int) -> bool:
    """Whether AMX pays, and its rows fit on the stack."""
    return form.pixels >= FEW_ROWS and pitch * AMX_ROWS <= ROOM


def pitch_of(depth: int) -> int:
    """The bytes between two rows of a copy of the left operand."""
    pitch = _deep(depth)
    return pitch + (64 if pitch % 1024 == 0 else 0)  # other rows would share a few sets of the cache


def blocks_of(form: Multiplication, pitch: int, by_amx: bool) -> dict[str, int] | None:
    """The pixels and columns of an item, and the number of items: enough for all threads. None if a row is too long for
    the stack.
    """
    rows = min(MOST_ROWS, ROOM // pitch // AMX_ROWS * AMX_ROWS if by_amx else ROOM // pitch)
    if not rows:
        return None
    threads, panels = thread_count(), -(-form.columns // PANEL)
    wanted = 4 * threads if threads > 1 else 1
    batches = math.prod(form.batch)
    while rows > 64 and -(-form.pixels // rows) * batches < wanted:
        rows //= 2
    pixel_items = -(-form.pixels // rows)
    column_items = min(panels, -(-wanted // (pixel_items * batches)))
    column_block = PANEL * -(-panels // column_items)
    return {
        "pixel_block": rows,
        "column_block": column_block,
        "pixel_items": pixel_items,
        "column_items": -(-form.columns // column_block),
    }
