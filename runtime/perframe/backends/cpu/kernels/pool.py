"""Pooling over planes."""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.math import maximum
from perframe.backends.cpu.kernels.memory import floats, int64s


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
                    for column in range(columns):
                        total = float32(0) if average else float32(-math.inf)
                        count = 0
                        for i in range(ky):
                            y = row * sy - py + i * dy
                            for j in range(kx):
                                z = column * sx - px + j * dx
                                inside = y >= 0 and y < height and z >= 0 and z < width
                                if inside:
                                    value = x[plane + y * width + z]
                                    total = total + value if average else maximum(total, value)
                                if inside or (counting and y < height + qy and z < width + qx):
                                    count += 1
                        if average:
                            total = total / float32(count)
                        out[(item * rows + row) * columns + column] = total

        return kernel

    return build


average, largest = _pool(True), _pool(False)
