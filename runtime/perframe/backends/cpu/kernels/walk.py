"""The loop that runs a program: rows of (kernel, numbers, items)."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.memory import call_kernel, int64s


def build() -> Any:
    """walk(table, begin, end)"""

    def walk(table, begin, end):
        rows = int64s(table)
        for step in range(begin, end):
            call_kernel(rows[step * 3], rows[step * 3 + 1], 0, rows[step * 3 + 2])

    return walk
