"""Arithmetic of sizes: it turns an existing plan into one for other sizes (see perframe/ir/sizes/arithmetic.py)."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import int32s, int64s
from perframe.backends.cpu.kernels.request import (
    ALIKE,
    ALIKE_COUNT,
    BLOCK,
    CHOSEN,
    DIMS,
    GIVEN,
    LISTED,
    OPEN,
    OPEN_COUNT,
    PLACED,
    ROW_COUNT,
    ROWS,
    VALUES,
)
from perframe.ir.sizes.arithmetic import DIVIDE, LARGER, MULTIPLY_ADD, SMALLER, ZERO

MOST = 4.0e18  # the largest number: larger ones may not fit into an int64


@inline
def _holds(values, rows, given, count):
    """Compute the values of the rows. Return whether all guards among them hold and no number is too large."""
    for index in range(count):
        operation, a, b, c = rows[4 * index], rows[4 * index + 1], rows[4 * index + 2], rows[4 * index + 3]
        made = 0
        if operation == MULTIPLY_ADD:
            if abs(float(values[a]) * float(values[b]) + float(values[c])) > MOST:
                return False
            made = values[a] * values[b] + values[c]
        elif operation == DIVIDE:
            by = values[b]
            if by == 0:
                return False
            made = values[a] // by
        elif operation == SMALLER:
            made = min(values[a], values[b])
        elif operation == LARGER:
            made = max(values[a], values[b])
        elif ((values[a] == 0) if operation == ZERO else (values[a] < 0)) != (b != 0):
            return False
        values[given + index] = made
    return True


def build() -> Any:
    """Set CHOSEN to the first record from begin to end whose guards hold for the sizes in DIMS, and compute its values.
    CHOSEN is -1 if no record holds, or if dims of one name differ.
    """

    def kernel(numbers, begin, end):
        request = int64s(numbers)
        dims, positions, alike, listed = (
            int64s(request[DIMS]), int32s(request[OPEN]), int32s(request[ALIKE]), int64s(request[LISTED])
        )  # fmt: skip
        request[CHOSEN] = -1
        for pair in range(request[ALIKE_COUNT]):
            if dims[alike[2 * pair]] != dims[alike[2 * pair + 1]]:
                return
        for index in range(begin, end):
            record = int64s(listed[index])
            values = int64s(record[VALUES])
            for size in range(request[OPEN_COUNT]):
                values[size] = dims[positions[size]]
            if _holds(values, int32s(record[ROWS]), record[GIVEN], record[ROW_COUNT]):
                request[CHOSEN] = index
                return

    return kernel


def write() -> Any:
    """Write a record's values to its block. Items are triples: (word, value, word of an address to add)."""

    def kernel(numbers, begin, end):
        record = int64s(numbers)
        values, placed, block = int64s(record[VALUES]), int32s(record[PLACED]), int64s(record[BLOCK])
        for triple in range(begin, end):
            block[placed[3 * triple]] = values[placed[3 * triple + 1]] + block[placed[3 * triple + 2]]

    return kernel
