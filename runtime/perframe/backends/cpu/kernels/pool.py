"""Pooling over planes."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.math import maximum
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.window import reach


def _pool(average: bool) -> Any:
    def build() -> Any:
        """Items are planes.

        [x, out, count padding, height, width, rows, columns, kernel y, x, stride y, x, dilation y, x, pad y, x, end
        pad y, x]
        """

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = floats(n[0]), floats(n[1]), n[2]
            height, width, rows, columns = n[3], n[4], n[5], n[6]
            ky, kx, sy, sx, dy, dx, py, px, qy, qx = n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16]
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
