"""Layers from bytes to bytes, element by element: sums of two, and look-ups. Items are chunks of `chunk` elements."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import BYTE_ADD, BYTE_TABLE
from perframe.backends.cpu.kernels.memory import bools, floats, int32s, int64s
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.kernels.vector import multiply, multiply_add, splat
from perframe.backends.cpu.kernels.whole_vector import (
    add_whole,
    between,
    byte_loader,
    nearest,
    real,
    splat_whole,
    store_bytes,
    subtract_whole,
)


def add(first_signed: bool, second_signed: bool) -> Any:
    """The sum of two operands. `zeros` are the zero points of a, b and out."""
    field = BYTE_ADD.at
    load_a, load_b = byte_loader(first_signed), byte_loader(second_signed)

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        a, b, out, factors = n[field.a], n[field.b], n[field.out], floats(n[field.factors])
        zeros, limits = int32s(n[field.zeros]), floats(n[field.limits])
        elements, chunk = n[field.elements], n[field.chunk]
        a_factor, b_factor = splat(factors[0]), splat(factors[1])
        a_zero, b_zero, zero = splat_whole(int(zeros[0])), splat_whole(int(zeros[1])), splat_whole(int(zeros[2]))
        low, high = splat(limits[0]), splat(limits[1])
        for i in range(begin * chunk, min(elements, end * chunk), LANES):
            count = min(LANES, elements - i)
            left, right = load_a(a, i, count), load_b(b, i, count)
            scaled = multiply(real(subtract_whole(left, a_zero)), a_factor)
            total = multiply_add(real(subtract_whole(right, b_zero)), b_factor, scaled)
            store_bytes(add_whole(nearest(between(total, low, high)), zero), out, i, count)

    return kernel


def look_up() -> Any:
    """Look up each byte in a table of 256."""
    field = BYTE_TABLE.at

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        x, table, out = bools(n[field.x]), bools(n[field.table]), bools(n[field.out])
        for i in range(begin * n[field.chunk], min(n[field.elements], end * n[field.chunk])):
            out[i] = table[x[i]]

    return kernel
