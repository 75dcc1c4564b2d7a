"""Pooling over planes."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import POOL
from perframe.backends.cpu.kernels.math import maximum
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.window import reach


def _pool(average: bool) -> Any:
    word = POOL.at

    def build() -> Any:
        """Items are planes."""

        def kernel(numbers, begin, end):
            n = int64s(numbers)
            x, out, counting = floats(n[word.x]), floats(n[word.out]), n[word.counts_padding]
            height, width, rows, columns = n[word.height], n[word.width], n[word.out_height], n[word.out_width]
            ky, kx, sy, sx = n[word.kernel_y], n[word.kernel_x], n[word.stride_y], n[word.stride_x]
            dy, dx, py, px = n[word.dilation_y], n[word.dilation_x], n[word.pad_y], n[word.pad_x]
            qy, qx = n[word.end_y], n[word.end_x]
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
