"""Rows that are rounded to 8 bits, multiplied by weights of 4 or 8 bits, as LLVM IR: a few rows with one panel.

Codes of weights become unsigned bytes, and a CPU's instructions multiply four of them by four signed bytes at once. The
kinds: "vnni" adds four products to 32 bits; "pairs" adds two to 16 bits, which hold products by codes of 4 bits, and
then these pairs.

A rounded row has a byte for each code of a word, then a scale for each block, and then the sum of each block's bytes.
With weights of 4 bits, the even ones of eight bytes come before the odd ones, as they leave a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.emit import POINTER, as_arguments, function_of, loop, numba_kinds, number
from perframe.backends.cpu.kernels.packed_tile import VECTORS, Codes, call_by_rows
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import F32, I32, I64, VECTOR, declare, multiply_add_of, splat_of, store_at
from perframe.backends.cpu.kernels.whole_vector import INTS

_BYTES, _PAIRS = (ir.VectorType(ir.IntType(bits), LANES * 32 // bits) for bits in (8, 16))
_REGISTER = "v" if LANES == 16 else "x"
_PREFIX = "" if LANES == 16 else "{vex} "  # AVX-VNNI
_WIDE = LANES == 16
_TO_PAIRS = "llvm.x86.avx512.pmaddubs.w.512" if _WIDE else "llvm.x86.avx2.pmadd.ub.sw"
_ADD_PAIRS = "llvm.x86.avx512.pmaddw.d.512" if _WIDE else "llvm.x86.avx2.pmadd.wd"
_ROWS = (I64, I64, I64, I64, I64, I64, POINTER, POINTER, POINTER, POINTER)


class _Rounded(Codes):
    """Emits the product of a few rounded rows with one panel."""

    def __init__(self, rows: int, bits: int, has_zeros: bool, kind: str) -> None:
        super().__init__(bits, has_zeros)
        self.rows, self.kind, self.parts = rows, kind, 8 // bits
        self.middle = 1 << (bits - 1)

    def emit(self, builder: Any, arguments: Sequence[Any]) -> None:
        """Write the function's body."""
        self.builder = builder
        x, pitch, scales_at, sums_at, depth, block, words, scales, zeros, sums = arguments
        rows = [builder.add(x, builder.mul(pitch, number(row))) for row in range(self.rows)]
        none = ir.Constant(VECTOR, [0.0] * LANES)

        def add_block(values: list[Any]) -> list[Any]:
            begin, index, *totals = values
            following = builder.add(begin, block)
            running = self._add_words(rows, words, begin, self._smaller(following, depth))
            ends = [self._block(scales, zeros, index, vector) for vector in range(VECTORS)]
            offset, made = builder.mul(index, number(4)), list[Any]()
            for row, base in enumerate(rows):
                scale, total = (
                    splat_of(builder, self._number(builder.add(base, builder.add(start, offset)), kind))
                    for start, kind in ((scales_at, F32), (sums_at, I32))
                )
                for vector, (own, zero) in enumerate(ends):
                    at = row * VECTORS + vector
                    less = builder.mul(total, self._whole(self.middle))
                    value = builder.sitofp(builder.sub(running[at], less), VECTOR)
                    if zero is not None:
                        value = builder.fsub(value, builder.fmul(zero, builder.sitofp(total, VECTOR)))
                    made.append(multiply_add_of(builder, builder.fmul(value, scale), own, totals[at]))
            return [following, builder.add(index, number(1)), *made]

        starts = [number(0), number(0), *[none] * (self.rows * VECTORS)]
        for at, total in enumerate(loop(builder, "block", depth, starts, add_block, runs_once=True)[2:]):
            store_at(builder, total, self.at(sums, number(at * LANES)))

    def _add_words(self, rows: Sequence[Any], words: Any, begin: Any, end: Any) -> list[Any]:
        """The sums of a block, for each row and vector."""
        builder, count = self.builder, self.rows * VECTORS

        def add_word(values: list[Any]) -> list[Any]:
            k, *running = values
            codes = [self._unsigned(self._load_words(words, self._row_of(k), v)) for v in range(VECTORS)]
            for row, base in enumerate(rows):
                for part in range(self.parts):
                    place = builder.add(base, builder.add(k, number(4 * part)))
                    left = splat_of(builder, self._number(place, I32))
                    for vector in range(VECTORS):
                        at = part * count + row * VECTORS + vector
                        running[at] = self._dot(running[at], codes[vector][part], left)
            return [builder.add(k, number(self.each)), *running]

        zeros = [ir.Constant(INTS, None)] * (count * self.parts)
        made = loop(builder, "words", end, [begin, *zeros], add_word, runs_once=True)[1:]
        if self.parts == 1:
            return made
        return [builder.add(*pair) for pair in zip(made[:count], made[count:], strict=True)]

    def _unsigned(self, words: Any) -> list[Any]:
        """The codes of words as unsigned bytes, which are larger by the middle."""
        builder = self.builder
        flipped = builder.xor(words, ir.Constant(INTS, [self._each(self.middle, self.bits)] * LANES))
        if self.bits == 8:
            return [flipped]
        low = ir.Constant(INTS, [self._each(15, 8)] * LANES)
        return [builder.and_(flipped, low), builder.and_(builder.lshr(flipped, self._whole(4)), low)]

    def _each(self, value: int, bits: int) -> int:
        """A word with this value in all places."""
        return sum(value << place for place in range(0, 32, bits))

    def _number(self, address: Any, kind: Any) -> Any:
        return self.builder.load(self.builder.inttoptr(address, kind.as_pointer()), align=1)

    def _dot(self, total: Any, codes: Any, left: Any) -> Any:
        builder = self.builder
        if self.kind == "vnni":
            kind = ir.FunctionType(INTS, [INTS, INTS, INTS])
            names = f"={_REGISTER},0,{_REGISTER},{_REGISTER}"
            return builder.asm(kind, f"{_PREFIX}vpdpbusd $3, $2, $0", names, [total, codes, left], False)
        to_pairs = declare(builder.module, _TO_PAIRS, _PAIRS, [_BYTES, _BYTES])
        pairs = builder.call(to_pairs, [builder.bitcast(value, _BYTES) for value in (codes, left)])
        add_pairs = declare(builder.module, _ADD_PAIRS, INTS, [_PAIRS, _PAIRS])
        return builder.add(total, builder.call(add_pairs, [pairs, ir.Constant(_PAIRS, [1] * 2 * LANES)]))


def rounded_multiplier(bits: int, has_zeros: bool, kind: str) -> Any:
    """The helper multiply(rows, x, pitch, scales_at, sums_at, depth, block, words, scales, zeros, sums): it writes the
    products of up to PACKED_ROWS rounded rows with a panel, row after row.
    """

    def case_of(rows: int) -> Callable[[Any], Any]:
        name = f"perframe_rounded_{rows}_{bits}_{int(has_zeros)}_{kind}"
        return lambda module: function_of(module, name, _ROWS, _Rounded(rows, bits, has_zeros, kind).emit)

    @intrinsic
    def multiply(
        typing: Any,
        rows: Any,
        x: Any,
        pitch: Any,
        scales_at: Any,
        sums_at: Any,
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
