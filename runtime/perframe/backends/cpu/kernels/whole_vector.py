"""Vectors of int32, with as many lanes as those of float32; conversions between them and bytes; copies of bytes.
Addresses are int64, and offsets count elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types, uint8

from perframe.backends.cpu.kernels.inlining import emitted, inline
from perframe.backends.cpu.kernels.memory import POINTERS, bools
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    F32,
    I32,
    I64,
    MASK,
    UNALIGNED,
    VECTOR,
    Register,
    declare,
    mask_of,
    splat_of,
    vector,
)

I8 = ir.IntType(8)
_signed = POINTERS["int8"]
INTS, BYTES, OFFSETS = (ir.VectorType(kind, LANES) for kind in (I32, I8, I64))
# Added to a float32 of magnitude below 2^22, it leaves the nearest whole number, halves to even, in the lowest bits.
ROUNDING = 1.5 * 2**23
CHUNK = 4 * LANES  # bytes in a register
MASKS_BYTES = LANES == 16  # CPUs with registers of 64 bytes can mask single bytes


whole_vector = Register("WholeVector", INTS)


def _pointer(builder: Any, address: Any, index: Any, element: Any, kind: Any) -> Any:
    pointer = builder.gep(builder.inttoptr(address, element.as_pointer()), [index])
    return builder.bitcast(pointer, kind.as_pointer())


@emitted(whole_vector, types.int64, types.int64)
def load_whole(builder: Any, address: Any, index: Any) -> Any:
    """LANES int32, from `index` on."""
    return builder.load(_pointer(builder, address, index, I32, INTS), align=4)


@emitted(whole_vector, types.int64, types.int64, types.int64)
def load_whole_first(builder: Any, address: Any, index: Any, count: Any) -> Any:
    """The first `count` of LANES int32, and zeros."""
    where, mask = _pointer(builder, address, index, I32, INTS), mask_of(builder, count)
    kinds = [where.type, I32, mask.type, INTS]
    function = declare(builder.module, f"llvm.masked.load.v{LANES}i32.p0", INTS, kinds)
    return builder.call(function, [where, ir.Constant(I32, 4), mask, ir.Constant(INTS, None)])


@emitted(vector, types.int64, whole_vector)
def gather(builder: Any, address: Any, indices: Any) -> Any:
    """The float32 at these indices."""
    base, offsets = builder.inttoptr(address, F32.as_pointer()), builder.sext(indices, OFFSETS)
    where = ir.instructions.GEPInstr(builder.block, base, [offsets], False, "", source_etype=F32)
    where.type = ir.VectorType(base.type, LANES)
    builder._insert(where)
    kinds = [where.type, I32, MASK, VECTOR]
    function = declare(builder.module, f"llvm.masked.gather.v{LANES}f32.v{LANES}p0", VECTOR, kinds)
    every, none = ir.Constant(MASK, [1] * LANES), ir.Constant(VECTOR, ir.Undefined)
    return builder.call(function, [where, UNALIGNED, every, none])


def _load_bytes(signed: bool) -> Any:
    @emitted(whole_vector, types.int64, types.int64)
    def load(builder: Any, address: Any, index: Any) -> Any:
        read = builder.load(_pointer(builder, address, index, I8, BYTES), align=1)
        return builder.sext(read, INTS) if signed else builder.zext(read, INTS)

    return load


@emitted(whole_vector, types.int64)
def splat_whole(builder: Any, value: Any) -> Any:
    """One number in every lane."""
    return splat_of(builder, builder.trunc(value, I32))


@emitted(whole_vector, whole_vector, types.int64, types.int64)
def with_lane(builder: Any, value: Any, lane: Any, number: Any) -> Any:
    """The vector with another number in one lane."""
    return builder.insert_element(value, builder.trunc(number, I32), lane)


def _load_first_bytes(signed: bool) -> Any:
    @inline
    def load(address, index, count):
        given, value = _signed(address) if signed else bools(address), splat_whole(0)
        for lane in range(count):
            value = with_lane(value, lane, given[index + lane])
        return value

    return load


_load_all = {True: _load_bytes(True), False: _load_bytes(False)}
_load_first = {True: _load_first_bytes(True), False: _load_first_bytes(False)}


def byte_loader(signed: bool) -> Any:
    """The function that loads the first `count` of LANES bytes as int32, and zeros."""
    load_all, load_first = _load_all[signed], _load_first[signed]

    @inline
    def load(address, index, count):
        return load_all(address, index) if count == LANES else load_first(address, index, count)

    return load


_of_two = emitted(whole_vector, whole_vector, whole_vector)
add_whole = _of_two(lambda builder, a, b: builder.add(a, b))
subtract_whole = _of_two(lambda builder, a, b: builder.sub(a, b))
multiply_whole = _of_two(lambda builder, a, b: builder.mul(a, b))
larger_whole = _of_two(lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b))


@emitted(vector, vector, vector)
def weighted(builder: Any, value: Any, weight: Any) -> Any:
    """value * weight, and 0 for a weight of 0, even if the value is infinite or NaN."""
    none = ir.Constant(VECTOR, None)
    return builder.select(builder.fcmp_unordered("une", weight, none), builder.fmul(value, weight), none)


@emitted(vector, whole_vector)
def real(builder: Any, value: Any) -> Any:
    """The lanes as float32."""
    return builder.sitofp(value, VECTOR)


@emitted(whole_vector, vector)
def truncated(builder: Any, value: Any) -> Any:
    """The lanes as int32, without their fractions."""
    return builder.fptosi(value, INTS)


@emitted(vector, vector, vector, vector)
def between(builder: Any, value: Any, low: Any, high: Any) -> Any:
    """Limit lanes to `low` and `high`; NaN becomes `low`."""
    value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
    return builder.select(builder.fcmp_ordered("<", value, high), value, high)


@emitted(whole_vector, vector)
def nearest(builder: Any, value: Any) -> Any:
    """The nearest integers, halves to even, for numbers below 2^22. Only the lowest 22 bits are right."""
    return builder.bitcast(builder.fadd(value, ir.Constant(VECTOR, [ROUNDING] * LANES)), INTS)


@emitted(types.void, whole_vector, types.int64, types.int64, types.int64)
def store_whole(builder: Any, value: Any, address: Any, index: Any, count: Any) -> None:
    """Write the first `count` lanes."""
    _store(builder, value, _pointer(builder, address, index, I32, INTS), count, 4)


@emitted(types.void, whole_vector, types.int64, types.int64, types.int64)
def store_bytes(builder: Any, value: Any, address: Any, index: Any, count: Any) -> None:
    """Write the lowest 8 bits of the first `count` lanes."""
    _store(builder, builder.trunc(value, BYTES), _pointer(builder, address, index, I8, BYTES), count, 1)


def _store(builder: Any, value: Any, where: Any, count: Any, align: int) -> None:
    """Store `count` lanes, and use a mask only if that is not all of them."""
    with builder.if_else(builder.icmp_signed(">=", count, ir.Constant(I64, LANES))) as (whole, part):
        with whole:
            builder.store(value, where, align=align)
        with part:
            _masked_store(builder, value, where, mask_of(builder, count), align)


def _masked_store(builder: Any, value: Any, where: Any, mask: Any, align: int) -> None:
    kinds = [value.type, where.type, I32, mask.type]
    name = f"llvm.masked.store.v{value.type.count}i{value.type.element.width}.p0"
    function = declare(builder.module, name, ir.VoidType(), kinds)
    builder.call(function, [value, where, ir.Constant(I32, align), mask])


@emitted(types.void, *[types.int64] * 4)
def _copy_chunk(builder: Any, target: Any, source: Any, count: Any, flip: Any) -> None:
    """Copy up to CHUNK bytes, and flip the bits of `flip` in each."""
    kind, bits = ir.VectorType(I8, CHUNK), ir.IntType(CHUNK)
    ones = ir.Constant(bits, (1 << CHUNK) - 1)
    left = builder.trunc(builder.sub(ir.Constant(I64, CHUNK), count), bits)
    mask = builder.bitcast(builder.lshr(ones, left), ir.VectorType(ir.IntType(1), CHUNK))
    target, source = (builder.inttoptr(address, kind.as_pointer()) for address in (target, source))
    kinds = [source.type, I32, mask.type, kind]
    load = declare(builder.module, f"llvm.masked.load.v{CHUNK}i8.p0", kind, kinds)
    value = builder.call(load, [source, ir.Constant(I32, 1), mask, ir.Constant(kind, None)])
    element = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(flip, I8), ir.Constant(I32, 0))
    zeros = ir.Constant(ir.VectorType(I32, CHUNK), [0] * CHUNK)
    flips = builder.shuffle_vector(element, ir.Constant(kind, ir.Undefined), zeros)
    _masked_store(builder, builder.xor(value, flips), target, mask, 1)


@inline
def copy_bytes(target, source, count, flip):
    """Copy bytes, and flip the bits of `flip` in each."""
    if MASKS_BYTES:
        for i in range(0, count, CHUNK):
            _copy_chunk(target + i, source + i, min(CHUNK, count - i), flip)
    else:
        to, given = bools(target), bools(source)
        for i in range(count):
            to[i] = given[i] ^ uint8(flip)


@inline
def fill_bytes(target, value, count):
    """Write one byte `count` times."""
    to = bools(target)
    for i in range(count):
        to[i] = uint8(value)
