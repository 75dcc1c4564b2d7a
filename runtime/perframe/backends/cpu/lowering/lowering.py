"""Functions that the families' lowerings share: steps, strided copies, windows and epilogues."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import ENDS, MOVE, WINDOW, WINDOW_Z
from perframe.backends.cpu.kernels.sizes import STRIP
from perframe.backends.cpu.program.program import NativeStep, Table
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.ir.epilogue import Stage, parameters
from perframe.ir.family_files import own_kernel
from perframe.ir.geometry import SlidingWindow, collapse, in_dims
from perframe.ir.sizes.size import at_least, is_symbolic, known_factor
from perframe.ir.sizes.tables import remembered
from perframe.tensor import DataType

FLOAT32 = DataType.FLOAT32
SPLIT_ELEMENTS = 32768  # some 10 µs of copying on one core: less work is not worth sharing


def all_float32(values: Iterable[Operand | None]) -> bool:
    """Whether all operands that are present are float32."""
    return all(value is None or value.dtype is FLOAT32 for value in values)


def mover(kernel: str, *values: Operand) -> str | None:
    """The variant of a kernel that moves elements of these operands' size, of any dtype; None if there is none."""
    sizes = {element_size(value) for value in values}
    name = None if len(sizes) != 1 else _MOVERS.get(sizes.pop())
    return name and name.format(kernel, "_" if "." in kernel else ".")


_MOVERS = {1: "{0}{1}of_bytes", 2: "{0}{1}of_shorts", 4: "{0}", 8: "{0}{1}of_words"}


def element_size(value: Operand) -> int:
    """The bytes of an element; 0 for strings."""
    return 0 if value.dtype is DataType.STRING else value.dtype.numpy.itemsize


def float_array(values: Sequence[float]) -> Any:
    """Numbers as float32 in memory: at least one, so that the array has an address."""
    return np.array(values or (0.0,), np.float32)


def step(
    layer: LayerLike,
    kernel: str,
    operands: Sequence[Operand],
    numbers: Sequence[int],
    items: int,
    text: str = "",
    keep: Sequence[Any] = (),
    *,
    grain: int | None = None,
    beside: Sequence[str] = (),
    check: Callable[[], None] | None = None,
    tables: Sequence[Table] = (),
) -> NativeStep:
    """A native step. `keep` are the arrays whose addresses are among the numbers; the addresses of `tables` come before
    the numbers.

    `grain` is the least number of items worth handing to another core; without it the step is not split. `beside` are
    the kernels that other shapes need: they are compiled with the first, so that a new shape compiles nothing.
    `check` raises after a run in which the kernel met an error.
    """
    for other in beside:
        jit.kernel(own_kernel(layer.family, other), text)
    storages = [operand.storage for operand in operands]
    address = jit.kernel(own_kernel(layer.family, kernel), text)
    return NativeStep(layer.name, address, storages, numbers, items, keep, grain=grain, check=check, tables=tables)


def sharing(items: int, elements: int) -> int:
    """The number of items worth handing to another core, if all items together copy `elements` elements."""
    return items * SPLIT_ELEMENTS // at_least(elements, 1)


def strided_copy(
    layer: LayerLike,
    x: Operand,
    out: Operand,
    shape: Sequence[int],
    strides: Sequence[int],
    out_strides: Sequence[int],
    offset: int = 0,
    out_offset: int = 0,
) -> NativeStep:
    """out[out_offset + c * out_strides] = x[offset + c * strides] for all coordinates c. `mover` must accept x."""
    rows = mover("move", x)
    assert rows is not None
    dims, (from_steps, to_steps) = collapse(shape, (tuple(strides), tuple(out_strides)))
    elements = math.prod(dims)
    at = [axis for axis, stride in enumerate(from_steps[:-1]) if stride == 1 and rows == "move"]
    if at and to_steps[-1] == 1 and from_steps[-1] != 1 and dims[at[0]] > 1:
        order = [axis for axis in range(len(dims)) if axis != at[0]]
        order.insert(len(order) - 1, at[0])
        dims, from_steps, to_steps = (tuple(part[axis] for axis in order) for part in (dims, from_steps, to_steps))
        kernel, items = "move.transpose", math.prod(dims[:-2]) * -(-dims[-2] // STRIP)
    else:
        long = is_symbolic(elements) or elements > SPLIT_ELEMENTS
        if len(dims) == 1 and long and from_steps == to_steps == (1,):
            rows_of = _in_rows(known_factor(elements))
            dims, from_steps, to_steps = (elements // rows_of, rows_of), (rows_of, 1), (rows_of, 1)
        kernel, items = rows, math.prod(dims[:-1])
    numbers = MOVE.numbers(x_offset=offset, out_offset=out_offset, rank=len(dims))
    numbers += [*dims, *from_steps, *to_steps]
    beside = ("move", "move.transpose") if rows == "move" else ()
    operands, grain = MOVE.operands(x=x, out=out), sharing(items, elements)
    return step(layer, kernel, operands, numbers, items, grain=grain, beside=beside)


@remembered(1024)
def _in_rows(elements: int) -> int:
    """The size of the rows into which a contiguous copy is cut for several cores; all of it without a good divisor."""
    return next((size for size in range(8192, 1024, -1) if elements % size == 0), elements)


def window_words(window: SlidingWindow, size: Sequence[int], output: Sequence[int]) -> dict[str, int] | None:
    """The words of fields.WINDOW for one or two spatial dims; None for more."""
    return None if len(size) > 2 else plane_words(window, size, output)


def plane_words(window: SlidingWindow, size: Sequence[int], output: Sequence[int]) -> dict[str, int]:
    """The words of fields.WINDOW for the last two of up to three spatial dims."""
    plane = window.in_dims(3)
    parts = (in_dims(size, 3), in_dims(output, 3), plane.kernel, plane.strides, plane.dilations, plane.begin)
    return dict(zip(WINDOW.split(), itertools.chain(*(part[1:] for part in parts)), strict=True))


def window_z_words(window: SlidingWindow, size: Sequence[int], output: Sequence[int]) -> dict[str, int]:
    """The words of fields.WINDOW_Z for the first of up to three spatial dims."""
    whole = window.in_dims(3)
    parts = (in_dims(size, 3), in_dims(output, 3), whole.kernel, whole.strides, whole.dilations, whole.begin)
    return dict(zip(WINDOW_Z.split(), [part[0] for part in parts], strict=True))


def window_reach(window: Mapping[str, int]) -> tuple[int, int]:
    """The rows and columns of the input that a window covers."""
    rows = (window["kernel_y"] - 1) * window["dilation_y"] + 1
    return rows, (window["kernel_x"] - 1) * window["dilation_x"] + 1


def end_words(window: SlidingWindow) -> dict[str, int]:
    """The words of fields.ENDS for up to three spatial dims."""
    return dict(zip(ENDS.split(), window.in_dims(3).end, strict=True))


def epilogue_limits(stages: Sequence[Stage]) -> tuple[float, float] | None:
    """The (low, high) that the stages clip to, or None if they do anything else. Without a clip they are infinite."""
    low, high = -math.inf, math.inf
    for stage in stages:
        bounds = stage.limits
        if bounds is None:
            return None
        low, high = min(max(low, bounds[0]), bounds[1]), min(max(high, bounds[0]), bounds[1])
    return low, high


def epilogue(layer: LayerLike) -> tuple[str, Any]:
    """The text of a layer's epilogue and its parameters in memory."""
    return jit.epilogue_text(layer.epilogue), float_array(parameters(layer.epilogue))
