"""The transposition of a square of elements in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import F32, I32, I64, load_at, mask_of, store_at


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Exchange off-diagonal halves, then quarters of these, and so on."""
    step = 1
    while step < LANES:
        for index in range(LANES):
            if index & step:
                continue
            a, b = rows[index], rows[index | step]
            upper = [lane + LANES - step if lane & step else lane for lane in range(LANES)]
            lower = [lane + LANES if lane & step else lane + step for lane in range(LANES)]
            masks = [ir.Constant(ir.VectorType(I32, LANES), lanes) for lanes in (upper, lower)]
            rows[index], rows[index | step] = (builder.shuffle_vector(a, b, mask) for mask in masks)
        step *= 2
    return rows


@intrinsic
def transpose_square(
    typing: Any, source: Any, source_pitch: Any, target: Any, target_pitch: Any, rows: Any, columns: Any
) -> Any:
    """target[c, r] = source[r, c] for up to LANES rows and columns; pitches count elements."""
    signature = types.void(*[types.int64] * 6)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source, source_pitch, target, target_pitch, rows, columns = args
        source, target = (builder.inttoptr(address, F32.as_pointer()) for address in (source, target))
        number = [ir.Constant(I64, index) for index in range(LANES + 1)]

        def emit(whole: bool) -> None:
            across = None if whole else mask_of(builder, columns)
            loaded = []
            for index in range(LANES):
                inside = builder.icmp_signed("<", number[index], rows)
                row = number[index] if whole else builder.select(inside, number[index], number[0])
                loaded.append(load_at(builder, builder.gep(source, [builder.mul(row, source_pitch)]), across))
            for index, value in enumerate(_transposed(builder, loaded)):
                there = builder.icmp_signed("<", number[index], columns)
                down = None if whole else mask_of(builder, builder.select(there, rows, number[0]))
                store_at(builder, value, builder.gep(target, [builder.mul(number[index], target_pitch)]), down)

        full = builder.and_(
            builder.icmp_signed("==", rows, number[LANES]), builder.icmp_signed("==", columns, number[LANES])
        )
        with builder.if_else(full) as (then, otherwise):
            with then:
                emit(True)
            with otherwise:
                emit(False)
        return context.get_dummy_value()

    return signature, codegen
