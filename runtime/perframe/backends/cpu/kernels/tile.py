"""The inner kernel of products and convolutions: a tile of the result in registers, as LLVM IR for this CPU's vectors.

A tile is a few rows by one or two vectors of columns. The left operand's rows lie `pitch` elements apart; each is read
in runs of `depth` elements, one for each tap of a window: (taps down, taps across), `down` and `across` elements apart.
The right operand is packed in panels of `PANEL` columns (depth of all runs, PANEL), the last in whole vectors. A window
at the end of a line leaves out some of a line's taps, and skips what the panel has for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.emit import POINTER, Emitter, function_of, loop, number, records_as_arguments
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.sizes import LANES, PANEL, REGISTERS, ROWS
from perframe.backends.cpu.kernels.vector import (
    F32,
    I32,
    I64,
    VECTOR,
    declare,
    lane_of,
    larger,
    load_at,
    mask_of,
    multiply_add_of,
    smaller,
    splat_of,
    store_at,
)

VECTORS = PANEL // LANES
X86 = LANES > 4
UNROLL = 4
# Arm multiplies a vector by one lane of another: a load of UNROLL elements serves as many steps
BY_LANES = LANES == UNROLL and REGISTERS == 32


class LeftRows(NamedTuple):
    """The rows of the left operand: the address of the first, the elements between two, and the runs of one."""

    address: int
    pitch: int
    depth: int  # elements of a run
    taps_down: int
    down: int
    taps_across: int
    across: int


class RightPanel(NamedTuple):
    """A packed panel: its address, the elements between two runs, those more between two lines of runs, and an address
    from which the tile fetches elements into the cache.
    """

    address: int
    ahead: int
    skip: int
    line_skip: int


class Sums(NamedTuple):
    """The values that the sums begin with, and the values that are added at the end, which may have the address 0.
    With pitch 0 all rows begin with one row.
    """

    initial: int
    initial_pitch: int
    addend: int
    addend_pitch: int


class TileResult(NamedTuple):
    """The rows of the result, and its columns."""

    address: int
    pitch: int
    columns: int


@inline
def one_run(address, pitch, depth):
    """Rows of one run."""
    return LeftRows(address, pitch, depth, 1, 0, 1, 0)


_LIMITS = (F32, F32)
# the arguments of a tile's function, by record
_ARGUMENTS = (
    (POINTER, I64, I64, I64, I64, I64, I64),  # LeftRows
    (POINTER, POINTER, I64, I64),  # RightPanel
    (POINTER, I64, POINTER, I64),  # Sums
    (POINTER, I64, I64),  # TileResult
    _LIMITS,
)


class _GemmTile(Emitter):
    """Emits the function of one tile size."""

    def __init__(self, rows: int, vectors: int) -> None:
        self.rows, self.vectors = rows, vectors

    def _rows_of(self, base: Any, pitch: Any) -> list[Any]:
        """The pointers to a vector's begin in each row, by row and vector."""
        starts = [self.at(base, self.builder.mul(pitch, number(row))) for row in range(self.rows)]
        return [self.at(start, number(j * LANES)) for start in starts for j in range(self.vectors)]

    def _mask(self, index: int, mask: Any) -> Any:
        """The last vector of a row may be partial."""
        return mask if index % self.vectors == self.vectors - 1 else None

    def _load_rows(self, base: Any, pitch: Any, mask: Any) -> list[Any]:
        pointers = self._rows_of(base, pitch)
        return [load_at(self.builder, pointer, self._mask(index, mask)) for index, pointer in enumerate(pointers)]

    def emit(self, builder: Any, arguments: Sequence[Any]) -> None:
        """Write the function's body."""
        self.builder = builder
        given = iter(arguments)
        left, panel, begin, result, (low, high) = ([next(given) for _ in record] for record in _ARGUMENTS)
        (a, pitch, depth, taps_down, down, taps_across, across), (b, ahead, skip, line_skip) = left, panel
        (initial, initial_pitch, addend, addend_pitch), (c, c_pitch, columns) = begin, result
        mask = mask_of(builder, builder.sub(columns, number((self.vectors - 1) * LANES)))
        sums = self._load_rows(initial, initial_pitch, mask)
        self._row_pointers = [self.at(a, builder.mul(pitch, number(row))) for row in range(self.rows)]
        self._ahead = ahead
        sums = self._taps(sums, b, depth, (taps_down, down), (taps_across, across), (skip, line_skip))
        # at the end: to add small products one by one to a large addend would round each time
        taps_end = builder.block
        add, ready = builder.append_basic_block("add"), builder.append_basic_block("ready")
        builder.cbranch(builder.icmp_unsigned("!=", builder.ptrtoint(addend, I64), number(0)), add, ready)
        builder.position_at_end(add)
        more = self._load_rows(addend, addend_pitch, mask)
        added = [builder.fadd(x, y) for x, y in zip(sums, more, strict=True)]
        builder.branch(ready)
        builder.position_at_end(ready)
        for index, (before, after) in enumerate(zip(sums, added, strict=True)):
            phi = builder.phi(VECTOR)
            phi.add_incoming(before, taps_end)
            phi.add_incoming(after, add)
            sums[index] = phi
        floor, ceiling = splat_of(builder, low), splat_of(builder, high)
        for index, (value, pointer) in enumerate(zip(sums, self._rows_of(c, c_pitch), strict=True)):
            value = smaller(builder, ceiling, larger(builder, floor, value))
            store_at(builder, value, pointer, self._mask(index, mask))

    def _taps(self, sums: list[Any], b: Any, depth: Any, down: Any, across: Any, skips: Any) -> list[Any]:
        """Add the products of all runs."""
        builder, width, zero = self.builder, number(self.vectors * LANES), number(0)
        whole = builder.and_(depth, number(-UNROLL))
        run = builder.add(builder.mul(depth, width), skips[0])

        def add_run(values: list[Any]) -> list[Any]:
            row, column, b_at, *running = values
            start = builder.add(builder.mul(row, down[1]), builder.mul(column, across[1]))
            panel = self.at(b, b_at)
            running = self._loop(running, start, panel, b_at, (zero, whole), UNROLL, "unrolled")
            running = self._loop(running, start, panel, b_at, (whole, depth), 1, "rest")
            following = builder.add(column, number(1))
            wraps = builder.icmp_signed("==", following, across[0])
            next_row = builder.select(wraps, builder.add(row, number(1)), row)
            next_column, more = builder.select(wraps, zero, following), builder.select(wraps, skips[1], zero)
            return [next_row, next_column, builder.add(b_at, builder.add(run, more)), *running]

        return loop(builder, "tap", down[0], [zero, zero, zero, *sums], add_run, runs_once=True)[3:]

    def _load_panel(self, here: Any, step: int) -> list[Any]:
        """A row of the panel, `step` rows from a pointer."""
        offsets = [(step * self.vectors + j) * LANES for j in range(self.vectors)]
        if X86:
            kind = ir.FunctionType(VECTOR, [POINTER])
            return [self.builder.asm(kind, f"vmovups {at * 4}($1), $0", "=v,r", [here], True) for at in offsets]
        return [load_at(self.builder, self.at(here, number(at))) for at in offsets]

    def _multiply(self, left: Any, right: list[Any], sums: list[Any]) -> list[Any]:
        """Add the products of a vector with a row of the panel."""
        return [multiply_add_of(self.builder, left, b, total) for b, total in zip(right, sums, strict=True)]

    def _multiply_row(self, head: Any, step: int, right: list[Any], sums: list[Any]) -> list[Any]:
        """Add the products of one element, `step` elements from a pointer, with a row of the panel.

        On x86 in assembly: LLVM would hoist the loads of many rows, and spill sums to make room for them.
        """
        builder = self.builder
        if not X86:
            left = splat_of(builder, builder.load(self.at(head, number(step)), align=4))
            return self._multiply(left, right, sums)
        count = len(sums)
        lines = [f"vbroadcastss {step * 4}(${2 * count + 1}), ${count}"]
        lines += [f"vfmadd231ps ${count + 1 + j}, ${count}, ${j}" for j in range(count)]
        constraints = ["=v"] * count + ["=&v"] + ["v"] * count + ["r", *(str(j) for j in range(count))]
        kind = ir.FunctionType(
            ir.LiteralStructType([VECTOR] * (count + 1)), [VECTOR] * count + [POINTER] + [VECTOR] * count
        )
        made = builder.asm(kind, "\n\t".join(lines), ",".join(constraints), [*right, head, *sums], True)
        return [builder.extract_value(made, j) for j in range(count)]

    def _loop(
        self, sums: list[Any], start: Any, panel: Any, b_at: Any, ends: tuple[Any, Any], unroll: int, name: str
    ) -> list[Any]:
        """Add the products of a run's elements between two ends."""
        builder = self.builder

        def add_elements(values: list[Any]) -> list[Any]:
            at, *running = values
            here = self.at(panel, builder.mul(at, number(self.vectors * LANES)))
            left_at = builder.add(start, at)
            heads = [self.at(row, left_at) for row in self._row_pointers]
            if unroll > 1:
                self._fetch_ahead(b_at, at)
            by_lanes = BY_LANES and unroll == LANES
            lefts = [load_at(builder, head) for head in heads] if by_lanes else []
            for step in range(unroll):
                right = self._load_panel(here, step)
                for row, head in enumerate(heads):
                    mine = slice(row * self.vectors, (row + 1) * self.vectors)
                    if by_lanes:
                        running[mine] = self._multiply(lane_of(builder, lefts[row], step), right, running[mine])
                    else:
                        running[mine] = self._multiply_row(head, step, right, running[mine])
            return [builder.add(at, number(unroll)), *running]

        return loop(builder, name, ends[1], [ends[0], *sums], add_elements)[1:]

    def _fetch_ahead(self, b_at: Any, at: Any) -> None:
        """Ask for a part of the next panel, a quarter of what this step reads: four tiles ask for the whole panel."""
        builder = self.builder
        read = builder.add(b_at, builder.mul(at, number(self.vectors * LANES)))
        target = self.at(self._ahead, builder.lshr(read, number(2)))
        kinds = [ir.IntType(8).as_pointer(), I32, I32, I32]
        fetch = declare(builder.module, "llvm.prefetch.p0", ir.VoidType(), kinds)
        for line in range(max(1, UNROLL * self.vectors * LANES // 4 // 16)):
            where = builder.bitcast(self.at(target, number(16 * line)), kinds[0])
            builder.call(fetch, [where, ir.Constant(I32, 0), ir.Constant(I32, 2), ir.Constant(I32, 1)])


def _tile(module: Any, rows: int, vectors: int) -> Any:
    kinds = [kind for record in _ARGUMENTS for kind in record]
    return function_of(module, f"perframe_tile_{rows}_{vectors}", kinds, _GemmTile(rows, vectors).emit)


@intrinsic
def multiply_tile(typing: Any, rows: Any, left: Any, panel: Any, sums: Any, result: Any, limits: Any) -> Any:
    """result = clip(sums.initial + left panel + sums.addend) for up to ROWS rows and up to PANEL columns.

    The records are those of this file, with addresses as int64; `limits` are (low, high).
    """
    records = (left, panel, sums, result, limits)
    signature = types.void(types.int64, *records)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count, values = args[0], records_as_arguments(context, builder, records, args[1:], _ARGUMENTS)
        columns = values[-len(_LIMITS) - 1]
        done = builder.append_basic_block("tile_done")
        sizes = [builder.append_basic_block(f"tile_{v}") for v in range(1, VECTORS + 1)]
        start = builder.block
        for vectors, block in enumerate(sizes, 1):
            builder.position_at_end(block)
            cases = builder.switch(count, done)
            for rows in range(1, ROWS + 1):
                case = builder.append_basic_block(f"tile_{rows}_{vectors}")
                cases.add_case(number(rows), case)
                builder.position_at_end(case)
                builder.call(_tile(builder.module, rows, vectors), values)
                builder.branch(done)
        builder.position_at_end(start)
        needed = builder.sdiv(builder.add(columns, number(LANES - 1)), number(LANES))
        choice = builder.switch(needed, done)
        for vectors, block in enumerate(sizes, 1):
            choice.add_case(number(vectors), block)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return signature, codegen
