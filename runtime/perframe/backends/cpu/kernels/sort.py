"""Stable sorts of rows by their digits. NaN is larger than all numbers."""

from __future__ import annotations

from typing import Any

from numba import float32, int32, int64

from perframe.backends.cpu.kernels.fields import SORT
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, float_to_bits, int64s
from perframe.backends.cpu.kernels.vector import stack_block

DIGITS, VALUES = 4, 256  # of a number of 32 bits; values of a digit
BELOW = 31  # bits of an element's position, which stand below its digits


@inline
def _rank_of_float(value):
    """A whole number from 0 to 2**32 - 1 in the order of the floats. Both zeros have the same."""
    bits = int64(float_to_bits(value + float32(0)) if value == value else int32(0x7FC00000))
    return (bits if bits >= 0 else -0x80000001 - bits) + 0x80000000


@inline
def _rank_of_int(value):
    return int64(value) + 0x80000000


def _sort(dtype: str) -> Any:
    field, pointer = SORT.at, POINTERS[dtype]
    rank_of = _rank_of_float if dtype == "float32" else _rank_of_int

    def build() -> Any:
        """Items are rows. Of equal elements, the lower position comes first."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            size, inner, count, largest = n[field.size], n[field.inner], n[field.count], n[field.takes_largest]
            x, values, positions = pointer(n[field.x]), pointer(n[field.values]), int64s(n[field.indices])
            counters = int64s(stack_block())
            for item in range(begin, end):
                given = item // inner * size * inner + item % inner
                at = item // inner * count * inner + item % inner
                source = n[field.keys] + item * size * 16
                target = source + size * 8
                keys = int64s(source)
                for i in range(DIGITS * VALUES):
                    counters[i] = 0
                for k in range(size):
                    rank = rank_of(x[given + k * inner])
                    rank = 0xFFFFFFFF - rank if largest else rank
                    keys[k] = (rank << BELOW) + k
                    for digit in range(DIGITS):
                        counters[digit * VALUES + ((rank >> (8 * digit)) & (VALUES - 1))] += 1
                for digit in range(DIGITS):
                    first, shift = digit * VALUES, BELOW + 8 * digit
                    if counters[first + ((int64s(source)[0] >> shift) & (VALUES - 1))] == size:
                        continue  # all elements have this digit
                    before = 0
                    for i in range(first, first + VALUES):
                        many = counters[i]
                        counters[i] = before
                        before += many
                    keys, sorted = int64s(source), int64s(target)
                    for k in range(size):
                        key = keys[k]
                        to = first + ((key >> shift) & (VALUES - 1))
                        sorted[counters[to]] = key
                        counters[to] += 1
                    source, target = target, source
                keys = int64s(source)
                for k in range(count):
                    position = keys[k] & ((1 << BELOW) - 1)
                    values[at + k * inner], positions[at + k * inner] = x[given + position * inner], position

        return kernel

    return build


build, of_int32 = _sort("float32"), _sort("int32")
