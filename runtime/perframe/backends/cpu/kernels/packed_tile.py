"""Codes of 4 or 8 bits become floats in registers, as LLVM IR: for the product with a few rows, and for a panel that
larger products multiply. The layout of codes, scales and zero points is that of layers/packed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.emit import (
    POINTER,
    Emitter,
    as_arguments,
    function_of,
    loop,
    numba_kinds,
    number,
)
from perframe.backends.cpu.kernels.sizes import LANES, PACKED_PANEL, PACKED_ROWS
from perframe.backends.cpu.kernels.vector import I32, I64, VECTOR, load_at, multiply_add_of, splat_of, store_at
from perframe.backends.cpu.kernels.whole_vector import INTS

WORD = 32
VECTORS = PACKED_PANEL // LANES
SUMS = 8  # that run side by side, so that each waits for no other


class Codes(Emitter):
    """Reads codes of `bits` bits. The addresses of words, scales and zero points are those of a vector of columns."""

    def __init__(self, bits: int, has_zeros: bool) -> None:
        self.bits, self.has_zeros, self.each = bits, has_zeros, WORD // bits

    def _whole(self, value: int) -> Any:
        return ir.Constant(INTS, [value] * LANES)

    def _load_words(self, base: Any, row: Any, vector: int) -> Any:
        """The words of a vector of columns in a row of words."""
        offset = self.builder.add(self.builder.mul(row, number(PACKED_PANEL)), number(vector * LANES))
        where = self.builder.bitcast(self.at(base, offset), INTS.as_pointer())
        return self.builder.load(where, align=4)

    def _code(self, words: Any, left: Any) -> Any:
        """The codes that lie `left` bits below the end of their words, as floats."""
        shifted = self.builder.shl(words, left)
        return self.builder.sitofp(self.builder.ashr(shifted, self._whole(WORD - self.bits)), VECTOR)

    def _code_at(self, words: Any, place: int) -> Any:
        return self._code(words, self._whole(WORD - self.bits * (place + 1)))

    def _code_of(self, words: Any, index: Any) -> Any:
        """The codes of an index that is known at run time."""
        builder = self.builder
        place = builder.trunc(builder.and_(index, number(self.each - 1)), I32)
        bits = builder.mul(builder.add(place, ir.Constant(I32, 1)), ir.Constant(I32, self.bits))
        return self._code(words, splat_of(builder, builder.sub(ir.Constant(I32, WORD), bits)))

    def _row_of(self, index: Any) -> Any:
        """The row of words that holds the codes of an index."""
        return self.builder.lshr(index, number(self.each.bit_length() - 1))

    def _block(self, scales: Any, zeros: Any, block: Any, vector: int) -> tuple[Any, Any]:
        """The scales of a block, and its zero points as floats."""
        offset = self.builder.add(self.builder.mul(block, number(PACKED_PANEL)), number(vector * LANES))
        scale = load_at(self.builder, self.at(scales, offset))
        if not self.has_zeros:
            return scale, None
        return scale, self._code_of(self._load_words(zeros, self._row_of(block), vector), block)

    def _less(self, value: Any, zero: Any) -> Any:
        return value if zero is None else self.builder.fsub(value, zero)

    def _smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def _end_of_words(self, begin: Any, end: Any) -> Any:
        """The end of the whole words between two indices."""
        return self.builder.add(begin, self.builder.and_(self.builder.sub(end, begin), number(-self.each)))


class _Rows(Codes):
    """Emits the product of a few rows with one panel."""

    def __init__(self, rows: int, bits: int, has_zeros: bool) -> None:
        super().__init__(bits, has_zeros)
        self.rows = rows
        self.phases = max(1, SUMS // (rows * VECTORS))

    def emit(self, builder: Any, arguments: Sequence[Any]) -> None:
        """Write the function's body."""
        self.builder = builder
        x, pitch, depth, block, words, scales, zeros, sums = arguments
        rows = [self.at(x, builder.mul(pitch, number(row))) for row in range(self.rows)]
        none = ir.Constant(VECTOR, [0.0] * LANES)

        def add_block(values: list[Any]) -> list[Any]:
            begin, index, *totals = values
            following = builder.add(begin, block)
            end = self._smaller(following, depth)
            ends = [self._block(scales, zeros, index, vector) for vector in range(VECTORS)]
            zero = [pair[1] for pair in ends]
            running = [none] * (self.rows * VECTORS * self.phases)
            whole = self._end_of_words(begin, end)
            running = self._add_words(rows, words, zero, begin, whole, running)
            running = self._add_rest(rows, words, zero, whole, end, running)
            made = []
            for at, total in enumerate(totals):
                parts = running[at * self.phases : (at + 1) * self.phases]
                while len(parts) > 1:
                    parts = [builder.fadd(*parts[k : k + 2]) for k in range(0, len(parts), 2)]
                made.append(multiply_add_of(builder, parts[0], ends[at % VECTORS][0], total))
            return [following, builder.add(index, number(1)), *made]

        starts = [number(0), number(0), *[none] * (self.rows * VECTORS)]
        for at, total in enumerate(loop(builder, "block", depth, starts, add_block, runs_once=True)[2:]):
            store_at(builder, total, self.at(sums, number(at * LANES)))

    def _add(self, rows: Sequence[Any], k: Any, weights: Sequence[Any], phase: int, running: list[Any]) -> None:
        """Add the products of one element of each row."""
        for row, base in enumerate(rows):
            left = splat_of(self.builder, self.builder.load(self.at(base, k), align=4))
            for vector, weight in enumerate(weights):
                at = (row * VECTORS + vector) * self.phases + phase
                running[at] = multiply_add_of(self.builder, left, weight, running[at])

    def _add_words(
        self, rows: Sequence[Any], words: Any, zero: Sequence[Any], begin: Any, end: Any, running: list[Any]
    ) -> list[Any]:
        def add_word(values: list[Any]) -> list[Any]:
            k, *sums = values
            held = [self._load_words(words, self._row_of(k), vector) for vector in range(VECTORS)]
            for place in range(self.each):
                weights = [self._less(self._code_at(w, place), z) for w, z in zip(held, zero, strict=True)]
                self._add(rows, self.builder.add(k, number(place)), weights, place % self.phases, sums)
            return [self.builder.add(k, number(self.each)), *sums]

        return loop(self.builder, "words", end, [begin, *running], add_word)[1:]

    def _add_rest(
        self, rows: Sequence[Any], words: Any, zero: Sequence[Any], begin: Any, end: Any, running: list[Any]
    ) -> list[Any]:
        """Add the products of a word that is not full."""

        def add_one(values: list[Any]) -> list[Any]:
            k, *sums = values
            held = [self._load_words(words, self._row_of(k), vector) for vector in range(VECTORS)]
            weights = [self._less(self._code_of(w, k), z) for w, z in zip(held, zero, strict=True)]
            self._add(rows, k, weights, 0, sums)
            return [self.builder.add(k, number(1)), *sums]

        return loop(self.builder, "rest", end, [begin, *running], add_one)[1:]


class _Unpack(Codes):
    """Emits the function that writes the weights of a vector of columns, with rows `width` apart."""

    def emit(self, builder: Any, arguments: Sequence[Any]) -> None:
        """Write the function's body."""
        self.builder = builder
        words, scales, zeros, first, last, block, target, width = arguments

        def write(k: Any, code: Any, ends: tuple[Any, Any]) -> None:
            scale, zero = ends
            offset = builder.mul(builder.sub(k, first), width)
            store_at(builder, builder.fmul(self._less(code, zero), scale), self.at(target, offset))

        def write_block(values: list[Any]) -> list[Any]:
            begin, index = values
            following = builder.mul(builder.add(index, number(1)), block)
            end = self._smaller(following, last)
            ends = self._block(scales, zeros, index, 0)
            whole = self._end_of_words(begin, end)

            def write_word(values: list[Any]) -> list[Any]:
                held = self._load_words(words, self._row_of(values[0]), 0)
                for place in range(self.each):
                    write(builder.add(values[0], number(place)), self._code_at(held, place), ends)
                return [builder.add(values[0], number(self.each))]

            def write_one(values: list[Any]) -> list[Any]:
                held = self._load_words(words, self._row_of(values[0]), 0)
                write(values[0], self._code_of(held, values[0]), ends)
                return [builder.add(values[0], number(1))]

            loop(builder, "words", whole, [begin], write_word)
            loop(builder, "rest", end, [whole], write_one)
            return [end, builder.add(index, number(1))]

        loop(builder, "block", last, [first, builder.sdiv(first, block)], write_block)


_ROWS = (POINTER, I64, I64, I64, POINTER, POINTER, POINTER, POINTER)
_UNPACK = (POINTER, POINTER, POINTER, I64, I64, I64, POINTER, I64)


def unpacker(bits: int, has_zeros: bool) -> Any:
    """The helper unpack(words, scales, zeros, first, last, block, target, width): it writes the weights of LANES
    columns, from row `first` up to `last`.
    """
    name = f"perframe_unpack_{bits}_{int(has_zeros)}"

    @intrinsic
    def unpack(
        typing: Any, words: Any, scales: Any, zeros: Any, first: Any, last: Any, block: Any, target: Any, width: Any
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function = function_of(builder.module, name, _UNPACK, _Unpack(bits, has_zeros).emit)
            builder.call(function, as_arguments(builder, args, _UNPACK))
            return context.get_dummy_value()

        return types.void(*numba_kinds(_UNPACK)), codegen

    return unpack


def multiplier(bits: int, has_zeros: bool) -> Any:
    """The helper multiply(rows, x, pitch, depth, block, words, scales, zeros, sums): it writes the products of up to
    PACKED_ROWS rows with a panel, row after row.
    """

    def case_of(rows: int) -> Callable[[Any], Any]:
        name = f"perframe_packed_{rows}_{bits}_{int(has_zeros)}"
        return lambda module: function_of(module, name, _ROWS, _Rows(rows, bits, has_zeros).emit)

    @intrinsic
    def multiply(
        typing: Any,
        rows: Any,
        x: Any,
        pitch: Any,
        depth: Any,
        block: Any,
        words: Any,
        scales: Any,
        zeros: Any,
        sums: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            call_by_rows(builder, args[0], as_arguments(builder, args[1:], _ROWS), case_of)
            return context.get_dummy_value()

        return types.void(types.int64, *numba_kinds(_ROWS)), codegen

    return multiply


def call_by_rows(
    builder: Any, rows: Any, values: Sequence[Any], case_of: Callable[[int], Callable[[Any], Any]]
) -> None:
    """Call the function for a number of rows, from 1 to PACKED_ROWS. `case_of` gives what makes it in a module."""
    done = builder.append_basic_block("rows_done")
    cases = builder.switch(rows, done)
    for count in range(1, PACKED_ROWS + 1):
        case = builder.append_basic_block(f"rows_{count}")
        cases.add_case(number(count), case)
        builder.position_at_end(case)
        builder.call(case_of(count)(builder.module), values)
        builder.branch(done)
    builder.position_at_end(done)
