"""Matrix products."""

from __future__ import annotations

from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import MATMUL
from perframe.backends.cpu.kernels.linking import stages
from perframe.backends.cpu.kernels.memory import floats, int64s


@stages("epilogue")
def build(epilogue: Any) -> Any:
    """Items are output rows: out[r, :] = alpha * a[r, :] @ b + beta * bias.

    The words with names are followed by the dims of the batch and by strides: those of a (batch..., row, depth), of b
    (batch..., depth, column), and of the bias (row, column).
    """
    field, rest = MATMUL.at, MATMUL.rest

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        a, b, bias, out = floats(n[field.a]), floats(n[field.b]), floats(n[field.bias]), floats(n[field.out])
        p, scales = floats(n[field.parameters]), floats(n[field.scales])
        rows, columns, depth, rank = n[field.rows], n[field.columns], n[field.depth], n[field.rank]
        left, right = rest + rank, rest + 2 * rank + 2
        bias_at = right + rank + 2
        a_row, a_depth = n[left + rank], n[left + rank + 1]
        b_depth, b_column = n[right + rank], n[right + rank + 1]
        for item in range(begin, end):
            row, batch = item % rows, item // rows
            a_at, b_at = row * a_row, 0
            for axis in range(rank - 1, -1, -1):
                c = batch % n[rest + axis]
                batch //= n[rest + axis]
                a_at += c * n[left + axis]
                b_at += c * n[right + axis]
            o = item * columns
            if b_column == 1:
                for j in range(columns):
                    out[o + j] = float32(0)
                for k in range(depth):
                    value = a[a_at + k * a_depth]
                    line = b_at + k * b_depth
                    for j in range(columns):
                        out[o + j] += value * b[line + j]
            else:
                for j in range(columns):
                    total = float32(0)
                    for k in range(depth):
                        total += a[a_at + k * a_depth] * b[b_at + j * b_column + k * b_depth]
                    out[o + j] = total
            for j in range(columns):
                value = scales[0] * out[o + j]
                if n[field.has_bias]:
                    value += scales[1] * bias[row * n[bias_at] + j * n[bias_at + 1]]
                out[o + j] = epilogue(value, p)

    return kernel
