"""The inner kernel of depthwise convolutions: eight pixels by one vector of channels in registers, as LLVM IR.

It is a function of its own: inlined into the loops around it, its addresses would not stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.emit import POINTER, Emitter, function_of, loop, number, records_as_arguments
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.sizes import LANES, REGISTERS
from perframe.backends.cpu.kernels.vector import (
    F32,
    I64,
    VECTOR,
    larger,
    load_at,
    mask_of,
    multiply_add_of,
    smaller,
    splat_of,
    store_at,
)

TILE = 8  # output pixels whose sums are in registers at once
# numbers of taps across, and of taps between pixels, for which neighboring pixels share inputs, if the CPU has enough
# registers
SHARES = REGISTERS >= 32
SHARED = ((3, 1), (3, 2), (5, 1), (5, 2), (7, 1)) if SHARES else ()


class TileInput(NamedTuple):
    """The data: the address of the first tap, and the elements to the next pixel, tap and line."""

    address: int
    step: int
    across: int
    down: int


class TileTaps(NamedTuple):
    """The taps: rows, taps of a row, the address of the first weights, and the elements to the next."""

    rows: int
    taps: int
    weights: int
    pitch: int


class TilePixels(NamedTuple):
    """The result: the address of its first pixel, the elements to the next, and how many pixels and channels."""

    address: int
    pitch: int
    pixels: int
    channels: int


class LineEnds(NamedTuple):
    """The place of the first tap in a line, the pixels between taps, and the line's width."""

    left: int
    spread: int
    width: int


# the arguments of a tile's function, by record
_ARGUMENTS = (
    (POINTER, I64, I64, I64),  # TileInput
    (I64, I64, POINTER, I64),  # TileTaps
    (POINTER, I64, I64, I64),  # TilePixels
    (POINTER, F32, F32),  # the bias and the limits
    (I64, I64, I64),  # LineEnds
)
_KINDS_OF_ARGUMENTS = [kind for record in _ARGUMENTS for kind in record]


class _DepthwiseTile(Emitter):
    """Emits the function for a number of taps across, or for any (0), and for pixels that lie `stride` taps apart. With
    `ends`, what lies beyond the ends of a line counts as zero, and is not read.
    """

    def __init__(self, taps: int, stride: int = 1, ends: bool = False) -> None:
        self.taps, self.stride, self.ends = taps, stride, ends

    def emit(self, builder: Any, arguments: Sequence[Any]) -> None:
        """Write the function's body."""
        self.builder = builder
        x, step, across, down, rows, count, w, pitch, out, out_pitch, pixels, channels, *others = arguments
        bias, low, high, left, spread, width = others
        self._step, self._across, self._pitch, self._count = step, across, pitch, count
        if self.ends:
            self._zeros = builder.alloca(VECTOR)
            builder.store(ir.Constant(VECTOR, [0.0] * LANES), self._zeros)
            places = [builder.add(left, builder.mul(spread, number(column))) for column in range(self._columns)]
            self._inside = [builder.icmp_unsigned("<", place, width) for place in places]
        mask = mask_of(builder, channels)
        start = load_at(builder, bias, mask)

        def add_row(values: list[Any]) -> list[Any]:
            row, line, weights, *sums = values
            made, behind = self._shared(line, weights, sums) if self.taps else self._any(line, weights, sums)
            return [builder.add(row, number(1)), self.at(line, down), behind, *made]

        totals = loop(builder, "row", rows, [number(0), x, w, *[start] * TILE], add_row)[3:]
        floor, ceiling = splat_of(builder, low), splat_of(builder, high)
        results = [smaller(builder, ceiling, larger(builder, floor, total)) for total in totals]
        whole, part = builder.append_basic_block("whole"), builder.append_basic_block("part")
        builder.cbranch(builder.icmp_signed("==", channels, number(LANES)), whole, part)
        for block, written in ((whole, None), (part, mask)):
            builder.position_at_end(block)
            self._store(results, out, out_pitch, pixels, written)
            builder.ret_void()

    def _store(self, results: list[Any], out: Any, pitch: Any, pixels: Any, mask: Any) -> None:
        """Write the first pixels."""
        builder = self.builder
        done = builder.append_basic_block("stored")
        for index, value in enumerate(results):
            if index:
                more = builder.append_basic_block("more")
                builder.cbranch(builder.icmp_signed("<", number(index), pixels), more, done)
                builder.position_at_end(more)
            store_at(builder, value, self.at(out, builder.mul(pitch, number(index))), mask)
        builder.branch(done)
        builder.position_at_end(done)

    def _shared(self, line: Any, weights: Any, sums: list[Any]) -> tuple[list[Any], Any]:
        """Add a row of taps: the tile reads each input once."""
        builder, running, kernel = self.builder, list(sums), []
        for _ in range(self.taps):
            kernel.append(load_at(builder, weights))
            weights = self.at(weights, self._pitch)
        for column in range(self._columns):
            source = self.at(line, builder.mul(self._across, number(column)))
            if self.ends:
                source = builder.select(self._inside[column], source, builder.bitcast(self._zeros, POINTER))
            value = load_at(builder, source)
            for tap, weight in enumerate(kernel):
                pixel, rest = divmod(column - tap, self.stride)
                if not rest and 0 <= pixel < TILE:
                    running[pixel] = multiply_add_of(builder, weight, value, running[pixel])
        return running, weights

    @property
    def _columns(self) -> int:
        """The inputs across that the taps of a tile read."""
        return (TILE - 1) * self.stride + self.taps

    def _any(self, line: Any, weights: Any, sums: list[Any]) -> tuple[list[Any], Any]:
        """Add a row of any number of taps."""
        builder = self.builder

        def add_tap(values: list[Any]) -> list[Any]:
            tap, at, w, *running = values
            weight = load_at(builder, w)
            inputs = [load_at(builder, self.at(at, builder.mul(self._step, number(p)))) for p in range(TILE)]
            pairs = zip(inputs, running, strict=True)
            made = [multiply_add_of(builder, weight, value, total) for value, total in pairs]
            return [builder.add(tap, number(1)), self.at(at, self._across), self.at(w, self._pitch), *made]

        starts = [number(0), line, weights, *sums]
        _, _, behind, *made = loop(builder, "tap", self._count, starts, add_tap, runs_once=True)
        return made, behind


@intrinsic
def depthwise_tile(typing: Any, data: Any, taps: Any, result: Any, clipped: Any, ends: Any, kind: Any) -> Any:
    """result = clip(bias + taps of data) for up to TILE pixels and up to LANES channels; addresses as int64.

    `clipped` is (address of the bias, low, high). The tile reads all of TILE pixels and LANES channels of the data and
    the weights. `kind` says how, as `kind_of` gives it: whether it minds the ends of lines.
    """
    records = (data, taps, result, clipped, ends)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = records_as_arguments(context, builder, records, args[:-1], _ARGUMENTS)
        done, otherwise = builder.append_basic_block("tile_done"), builder.append_basic_block("tile_any")
        choice = builder.switch(args[-1], otherwise)
        for taps, stride, ends in [*_KINDS, (0, 1, False)]:
            block = otherwise
            if taps:
                block = builder.append_basic_block(f"tile_{taps}_{stride}_{ends}")
                choice.add_case(number(_number_of(taps, stride, ends)), block)
            builder.position_at_end(block)
            emit, name = _DepthwiseTile(taps, stride, ends).emit, f"perframe_depthwise_{taps}_{stride}_{int(ends)}"
            builder.call(function_of(builder.module, name, _KINDS_OF_ARGUMENTS, emit), values)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(*records, types.int64), codegen


_KINDS = [(taps, stride, ends) for taps, stride in SHARED for ends in (False, True)]


def _number_of(taps: int, stride: int, ends: Any) -> Any:
    return 4 * taps + 2 * (stride - 1) + ends


@inline
def kind_of(taps, stride, dilation):
    """The kind of tile whose neighboring pixels share inputs, or 0. The next number minds the ends of lines."""
    if SHARES and stride == dilation and (taps == 3 or taps == 5 or taps == 7):
        return 4 * taps
    if SHARES and stride == 2 * dilation and (taps == 3 or taps == 5):
        return 4 * taps + 2
    return 0
