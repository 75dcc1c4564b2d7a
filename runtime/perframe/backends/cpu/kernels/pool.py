"""Pooling over planes."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import POOL
from perframe.backends.cpu.kernels.math import maximum
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.window import reach, window_of


def _pool(average: bool) -> Any:
    field = POOL.at

    def build() -> Any:
        """Items are planes."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = floats(n[field.x]), floats(n[field.out]), n[field.counts_padding]
            height, width, rows, columns, ky, kx, sy, sx, dy, dx, py, px = window_of(n, field.height)
            qy, qx = n[field.end_y], n[field.end_x]
            for item in range(begin, end):
                plane = item * height * width
                for row in range(rows):
                    top = row * sy - py
                    i0, i1 = reach(top, ky, dy, height)
                    for column in range(columns):
                        left = column * sx - px
                        j0, j1 = reach(left, kx, dx, width)
                        total = float32(0) if average else float32(-math.inf)
                        for i in range(i0, i1):
                            line = plane + (top + i * dy) * width
                            for j in range(j0, j1):
                                value = x[line + left + j * dx]
                                total = total + value if average else maximum(total, value)
                        count = (i1 - i0) * (j1 - j0)
                        if counting:
                            count = reach(top, ky, dy, height + qy)[1] * reach(left, kx, dx, width + qx)[1]
                        if average:
                            total = total / float32(count)
                        out[(item * rows + row) * columns + column] = total

        return kernel

    return build


average, largest = _pool(True), _pool(False)
