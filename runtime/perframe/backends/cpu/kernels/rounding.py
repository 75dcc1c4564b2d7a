"""Rows of floats become bytes, as rounded_tile.py reads them: each block of a row is divided by its largest element."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, int32, types

from perframe.backends.cpu.kernels.fields import ROUNDED
from perframe.backends.cpu.kernels.inlining import emitted
from perframe.backends.cpu.kernels.memory import bits_to_float, bools, float_to_bits, floats, int32s, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import I32, VECTOR, declare, load, multiply, splat, vector
from perframe.backends.cpu.kernels.whole_vector import BYTES, INTS, add_whole, larger_whole, splat_whole, whole_vector

LARGEST_CODE, INFINITE, SIGN_OFF = 127, 0x7F800000, 0x7FFFFFFF  # the last two are bits of floats
LEAST = 4e-37  # a block without a larger element becomes zeros: 127 divided by it would be infinite


@emitted(whole_vector, vector)
def _size_bits(builder: Any, value: Any) -> Any:
    """The bits of the lanes without their signs. They have the order of the sizes; NaN is the largest."""
    return builder.and_(builder.bitcast(value, INTS), ir.Constant(INTS, [SIGN_OFF] * LANES))


@emitted(types.int32, whole_vector)
def _largest(builder: Any, value: Any) -> Any:
    function = declare(builder.module, f"llvm.vector.reduce.smax.v{LANES}i32", I32, [INTS])
    return builder.call(function, [value])


@emitted(types.int32, whole_vector)
def _total(builder: Any, value: Any) -> Any:
    function = declare(builder.module, f"llvm.vector.reduce.add.v{LANES}i32", I32, [INTS])
    return builder.call(function, [value])


@emitted(whole_vector, vector)
def _rounded(builder: Any, value: Any) -> Any:
    """The nearest integers, halves to even."""
    function = declare(builder.module, f"llvm.rint.v{LANES}f32", VECTOR, [VECTOR])
    return builder.fptosi(builder.call(function, [value]), INTS)


def _store_codes(bits: int) -> Any:
    order = np.arange(LANES).reshape(-1, 32 // bits)
    places = order.reshape(len(order), -1, 8 // bits).swapaxes(1, 2).ravel().tolist()

    @emitted(types.void, whole_vector, types.int64)
    def store(builder: Any, value: Any, address: Any) -> None:
        """Write the lanes as bytes; for 4 bits, the even ones of eight before the odd ones."""
        lanes = ir.Constant(ir.VectorType(I32, LANES), places)
        narrow = builder.trunc(value, BYTES)
        mixed = builder.shuffle_vector(narrow, narrow, lanes)
        builder.store(mixed, builder.inttoptr(address, BYTES.as_pointer()), align=1)

    return store


def build(bits: int) -> Any:
    """Items are rows. A block with an infinite element or NaN gets NaN for its scale."""
    field, each, halves, store = ROUNDED.at, 32 // bits, 8 // bits, _store_codes(bits)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        depth, block, blocks = n[field.depth], n[field.block], n[field.blocks]
        length = n[field.words_each] * each
        for row in range(begin, end):
            source, target = n[field.x] + row * depth * 4, n[field.out] + row * (length + 8 * blocks)
            x, out = floats(source), bools(target)
            scales, sums = floats(target + length), int32s(target + length + 4 * blocks)
            for k in range(length - each, length):
                out[k] = 0  # the last word may not be full
            for index in range(blocks):
                first, last = index * block, min(depth, (index + 1) * block)
                whole, sizes = first + (last - first) // LANES * LANES, splat_whole(int32(0))
                for k in range(first, whole, LANES):
                    sizes = larger_whole(sizes, _size_bits(load(source, k)))
                most = _largest(sizes)
                for k in range(whole, last):
                    most = max(most, int32(float_to_bits(x[k]) & SIGN_OFF))
                is_finite, total = most < INFINITE, int32(0)
                largest, inverse = bits_to_float(most), float32(0)
                scale = largest / float32(LARGEST_CODE)
                if is_finite and largest > float32(LEAST):
                    inverse = float32(LARGEST_CODE) / largest
                factors, totals = splat(inverse), splat_whole(int32(0))
                for k in range(first, whole, LANES):
                    codes = _rounded(multiply(load(source, k), factors))
                    totals = add_whole(totals, codes)
                    store(codes, target + k)
                for k in range(whole, last):
                    code = int32(np.rint(x[k] * inverse)) if is_finite else int32(0)
                    out[k // each * each + k % halves * 4 + k % each // halves] = code
                    total += code
                scales[index], sums[index] = scale if is_finite else float32(np.nan), total + _total(totals)

    return kernel
