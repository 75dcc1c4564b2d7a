"""Vectors of int32, with as many lanes as those of float32; conversions between them and bytes; copies of bytes.
Addresses are int64, and offsets count elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types, uint8
from numba.extending import intrinsic, models, register_model

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, bools
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import (
    F32,
    I32,
    I64,
    MASK,
    UNALIGNED,
    VECTOR,
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


class WholeVector(types.Type):  # type: ignore[misc]
    """LANES int32 in a register."""

    def __init__(self) -> None:
        super().__init__(name="WholeVector")


whole_vector = WholeVector()


@register_model(WholeVector)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, INTS)


def _pointer(builder: Any, address: Any, index: Any, element: Any, kind: Any) -> Any:
    pointer = builder.gep(builder.inttoptr(address, element.as_pointer()), [index])
    return builder.bitcast(pointer, kind.as_pointer())


@intrinsic
def load_whole(typing: Any, address: Any, index: Any) -> Any:
    """LANES int32, from `index` on."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0], args[1], I32, INTS), align=4)

    return whole_vector(types.int64, types.int64), codegen


@intrinsic
def load_whole_first(typing: Any, address: Any, index: Any, count: Any) -> Any:
    """The first `count` of LANES int32, and zeros."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        where, mask = _pointer(builder, args[0], args[1], I32, INTS), mask_of(builder, args[2])
        kinds = [where.type, I32, mask.type, INTS]
        function = declare(builder.module, f"llvm.masked.load.v{LANES}i32.p0", INTS, kinds)
        return builder.call(function, [where, ir.Constant(I32, 4), mask, ir.Constant(INTS, None)])

    return whole_vector(types.int64, types.int64, types.int64), codegen


@intrinsic
def gather(typing: Any, address: Any, indices: Any) -> Any:
    """The float32 at these indices."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base, offsets = builder.inttoptr(args[0], F32.as_pointer()), builder.sext(args[1], OFFSETS)
        where = ir.instructions.GEPInstr(builder.block, base, [offsets], False, "", source_etype=F32)
        where.type = ir.VectorType(base.type, LANES)
        builder._insert(where)
        kinds = [where.type, I32, MASK, VECTOR]
        function = declare(builder.module, f"llvm.masked.gather.v{LANES}f32.v{LANES}p0", VECTOR, kinds)
        every, none = ir.Constant(MASK, [1] * LANES), ir.Constant(VECTOR, ir.Undefined)
        return builder.call(function, [where, UNALIGNED, every, none])

    return vector(types.int64, whole_vector), codegen


def _load_bytes(signed: bool) -> Any:
    @intrinsic
    def load(typing: Any, address: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            read = builder.load(_pointer(builder, args[0], args[1], I8, BYTES), align=1)
            return builder.sext(read, INTS) if signed else builder.zext(read, INTS)

        return whole_vector(types.int64, types.int64), codegen

    return load


@intrinsic
def splat_whole(typing: Any, value: Any) -> Any:
    """One number in every lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return splat_of(builder, builder.trunc(args[0], I32))

    return whole_vector(types.int64), codegen


@intrinsic
def with_lane(typing: Any, value: Any, lane: Any, number: Any) -> Any:
    """The vector with another number in one lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.insert_element(args[0], builder.trunc(args[2], I32), args[1])

    return whole_vector(whole_vector, types.int64, types.int64), codegen


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


def _binary(name: str) -> Any:
    @intrinsic
    def function(typing: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return whole_vector(whole_vector, whole_vector), codegen

    return function


add_whole, subtract_whole, multiply_whole = (_binary(name) for name in ("add", "sub", "mul"))


@intrinsic
def multiply(typing: Any, a: Any, b: Any) -> Any:
    """a * b of float32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return vector(vector, vector), codegen


@intrinsic
def weighted(typing: Any, value: Any, weight: Any) -> Any:
    """value * weight, and 0 for a weight of 0, even if the value is infinite or NaN."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        none = ir.Constant(VECTOR, None)
        return builder.select(builder.fcmp_unordered("une", args[1], none), builder.fmul(*args), none)

    return vector(vector, vector), codegen


@intrinsic
def real(typing: Any, value: Any) -> Any:
    """The lanes as float32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], VECTOR)

    return vector(whole_vector), codegen


@intrinsic
def truncated(typing: Any, value: Any) -> Any:
    """The lanes as int32, without their fractions."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fptosi(args[0], INTS)

    return whole_vector(vector), codegen


@intrinsic
def between(typing: Any, value: Any, low: Any, high: Any) -> Any:
    """Limit lanes to `low` and `high`; NaN becomes `low`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, low, high = args
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        return builder.select(builder.fcmp_ordered("<", value, high), value, high)

    return vector(vector, vector, vector), codegen


@intrinsic
def nearest(typing: Any, value: Any) -> Any:
    """The nearest integers, halves to even, for numbers below 2^22. Only the lowest 22 bits are right."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fadd(args[0], ir.Constant(VECTOR, [ROUNDING] * LANES)), INTS)

    return whole_vector(vector), codegen


@intrinsic
def larger_whole(typing: Any, a: Any, b: Any) -> Any:
    """The larger of two."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.icmp_signed(">", *args), *args)

    return whole_vector(whole_vector, whole_vector), codegen


@intrinsic
def store_whole(typing: Any, value: Any, address: Any, index: Any, count: Any) -> Any:
    """Write the first `count` lanes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, args[0], _pointer(builder, args[1], args[2], I32, INTS), args[3], 4)
        return context.get_dummy_value()

    return types.void(whole_vector, types.int64, types.int64, types.int64), codegen


@intrinsic
def store_bytes(typing: Any, value: Any, address: Any, index: Any, count: Any) -> Any:
    """Write the lowest 8 bits of the first `count` lanes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(builder, builder.trunc(args[0], BYTES), _pointer(builder, args[1], args[2], I8, BYTES), args[3], 1)
        return context.get_dummy_value()

    return types.void(whole_vector, types.int64, types.int64, types.int64), codegen


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


@intrinsic
def _copy_chunk(typing: Any, target: Any, source: Any, count: Any, flip: Any) -> Any:
    """Copy up to CHUNK bytes, and flip the bits of `flip` in each."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, bits = ir.VectorType(I8, CHUNK), ir.IntType(CHUNK)
        ones = ir.Constant(bits, (1 << CHUNK) - 1)
        left = builder.trunc(builder.sub(ir.Constant(I64, CHUNK), args[2]), bits)
        mask = builder.bitcast(builder.lshr(ones, left), ir.VectorType(ir.IntType(1), CHUNK))
        target, source = (builder.inttoptr(address, kind.as_pointer()) for address in args[:2])
        kinds = [source.type, I32, mask.type, kind]
        load = declare(builder.module, f"llvm.masked.load.v{CHUNK}i8.p0", kind, kinds)
        value = builder.call(load, [source, ir.Constant(I32, 1), mask, ir.Constant(kind, None)])
        element = builder.insert_element(
            ir.Constant(kind, ir.Undefined), builder.trunc(args[3], I8), ir.Constant(I32, 0)
        )
        zeros = ir.Constant(ir.VectorType(I32, CHUNK), [0] * CHUNK)
        flips = builder.shuffle_vector(element, ir.Constant(kind, ir.Undefined), zeros)
        _masked_store(builder, builder.xor(value, flips), target, mask, 1)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), codegen


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
