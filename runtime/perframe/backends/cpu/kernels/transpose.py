"""Transposes a square of elements in registers, and a few rows or columns."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.inlining import emitted, inline
from perframe.backends.cpu.kernels.memory import floats
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
                present = builder.icmp_signed("<", number[index], columns)
                down = None if whole else mask_of(builder, builder.select(present, rows, number[0]))
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


def _merge(builder: Any, vectors: list[Any], picks: list[tuple[int, int]]) -> Any:
    """The vector whose lanes are the (vector, lane) pairs of `picks`."""
    made = vectors[0]
    for number in range(1, max(2, len(vectors))):
        other = vectors[number] if number < len(vectors) else vectors[0]
        mask = []
        for position, (which, lane) in enumerate(picks):
            early = lane if number == 1 else position  # the first merge moves lanes to their positions
            mask.append(LANES + lane if which == number else early if which < number else 0)
        made = builder.shuffle_vector(made, other, ir.Constant(ir.VectorType(I32, LANES), mask))
    return made


def _interleaving(count: int, back: bool) -> Any:
    @emitted(types.void, *[types.int64] * 4)
    def emit(builder: Any, source: Any, source_pitch: Any, target: Any, target_pitch: Any) -> None:
        source, target = (builder.inttoptr(address, F32.as_pointer()) for address in (source, target))
        numbers = [ir.Constant(I64, index) for index in range(count)]
        pitches = (
            ir.Constant(I64, LANES) if back else source_pitch,
            target_pitch if back else ir.Constant(I64, LANES),
        )
        vectors = [load_at(builder, builder.gep(source, [builder.mul(k, pitches[0])])) for k in numbers]
        for index, number in enumerate(numbers):
            if back:
                elements = [lane * count + index for lane in range(LANES)]
                picks = [(element // LANES, element % LANES) for element in elements]
            else:
                elements = [index * LANES + lane for lane in range(LANES)]
                picks = [(element % count, element // count) for element in elements]
            made = _merge(builder, vectors, picks)
            store_at(builder, made, builder.gep(target, [builder.mul(number, pitches[1])]))

    return emit


_join2, _join3, _join4 = (_interleaving(count, False) for count in (2, 3, 4))
_part2, _part3, _part4 = (_interleaving(count, True) for count in (2, 3, 4))


@inline
def interleave(source, pitch, target, count, size):
    """target[r * count + c] = source[c * pitch + r] for `size` rows of 1 to 4 columns."""
    whole = size - size % LANES if count > 1 else 0
    for r in range(0, whole, LANES):
        if count == 2:
            _join2(source + r * 4, pitch, target + r * 8, 0)
        elif count == 3:
            _join3(source + r * 4, pitch, target + r * 12, 0)
        else:
            _join4(source + r * 4, pitch, target + r * 16, 0)
    x, out = floats(source), floats(target)
    for r in range(whole, size):
        for c in range(count):
            out[r * count + c] = x[c * pitch + r]


@inline
def deinterleave(source, count, target, pitch, size):
    """target[c * pitch + r] = source[r * count + c] for `size` rows of 1 to 4 columns."""
    whole = size - size % LANES if count > 1 else 0
    for r in range(0, whole, LANES):
        if count == 2:
            _part2(source + r * 8, 0, target + r * 4, pitch)
        elif count == 3:
            _part3(source + r * 12, 0, target + r * 4, pitch)
        else:
            _part4(source + r * 16, 0, target + r * 4, pitch)
    x, out = floats(source), floats(target)
    for r in range(whole, size):
        for c in range(count):
            out[c * pitch + r] = x[r * count + c]


@inline
def transpose(source, source_pitch, target, target_pitch, rows, columns):
    """target[c, r] = source[r, c], square by square."""
    for r in range(0, rows, LANES):
        for c in range(0, columns, LANES):
            square, onto = source + (r * source_pitch + c) * 4, target + (c * target_pitch + r) * 4
            high, wide = min(LANES, rows - r), min(LANES, columns - c)
            transpose_square(square, source_pitch, onto, target_pitch, high, wide)
