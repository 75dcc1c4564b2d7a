"""An epilogue that other kernels call for a few rows of their result, while these are in the cache."""

from __future__ import annotations

from typing import Any

from perframe.backends.cpu.kernels.fields import FINISH
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.linking import stages
from perframe.backends.cpu.kernels.memory import call_kernel, floats, int64s

field = FINISH.at


@stages("epilogue")
def build(epilogue: Any) -> Any:
    """Items are rows."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        out, p = floats(n[field.out]), floats(n[field.parameters])
        pitch, columns = n[field.pitch], n[field.columns]
        for row in range(begin, end):
            for i in range(columns):
                out[row * pitch + i] = epilogue(out[row * pitch + i], p)

    return kernel


@inline
def finish_rows(finish, numbers, out, pitch, columns, parameters, rows):
    """Call the kernel at the address `finish`. `numbers` is the address of memory for its words."""
    n = int64s(numbers)
    n[field.out], n[field.pitch], n[field.columns], n[field.parameters] = out, pitch, columns, parameters
    call_kernel(finish, numbers, 0, rows)
