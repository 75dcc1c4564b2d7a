"""Formulas of sizes: what a plan for other sizes takes from one that was made (see perframe/formulas.py)."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import int32s, int64s
from perframe.backends.cpu.kernels.request import COUNT, GIVEN, HOLDS, OUT, PLACES, ROWS, SOURCES, VALUES
from perframe.formulas import DIVIDE, LARGER, MULTIPLY_ADD, SMALLER, ZERO

MOST = 4.0e18  # of a number: a larger one may not be an int64


def build() -> Any:
    """Rows from begin to end into VALUES, the first GIVEN of which are there; then OUT[PLACES[i]] is the value
    SOURCES[i]. Where a guard does not hold, or a number is too large, HOLDS is 0 and OUT is left alone.
    """

    def kernel(numbers, begin, end):
        request = int64s(numbers)
        values, rows, given = int64s(request[VALUES]), int32s(request[ROWS]), request[GIVEN]
        request[HOLDS] = 0
        for index in range(begin, end):
            operation, a, b, c = rows[4 * index], rows[4 * index + 1], rows[4 * index + 2], rows[4 * index + 3]
            made = 0
            if operation == MULTIPLY_ADD:
                if abs(float(values[a]) * float(values[b]) + float(values[c])) > MOST:
                    return
                made = values[a] * values[b] + values[c]
            elif operation == DIVIDE:
                by = values[b]
                if by == 0:
                    return
                made = values[a] // by
            elif operation == SMALLER:
                made = min(values[a], values[b])
            elif operation == LARGER:
                made = max(values[a], values[b])
            elif ((values[a] == 0) if operation == ZERO else (values[a] < 0)) != (b != 0):
                return
            values[given + index] = made
        places, sources, out = int32s(request[PLACES]), int32s(request[SOURCES]), int64s(request[OUT])
        for index in range(request[COUNT]):
            out[places[index]] = values[sources[index]]
        request[HOLDS] = 1

    return kernel
