"""Offsets of elements and of matrices in strided operands."""

from __future__ import annotations

from perframe.backends.cpu.kernels.fields import BATCH_STEPS
from perframe.backends.cpu.kernels.inlining import inline

field = BATCH_STEPS.at


@inline
def offset_of(n, dims, strides, rank, index):
    """The offset of the index'th coordinates. The dims begin at n[dims], and their strides at n[strides]."""
    at = 0
    for axis in range(rank - 1, 0, -1):
        at += index % n[dims + axis] * n[strides + axis]
        index //= n[dims + axis]
    return at + index * n[strides] if rank else at


@inline
def batch_offsets(n, first, rank, index):
    """The offsets in x, weights, bias, out and addend of the index'th matrices of a batch.

    The dims of the batch begin at n[first]. After them come the steps of fields.BATCH_STEPS.
    """
    x, weights, bias, out, addend = 0, 0, 0, 0, 0
    for axis in range(first + rank - 1, first - 1, -1):
        c = index % n[axis]
        index //= n[axis]
        x += c * n[axis + rank * (1 + field.x)]
        weights += c * n[axis + rank * (1 + field.weights)]
        bias += c * n[axis + rank * (1 + field.bias)]
        out += c * n[axis + rank * (1 + field.out)]
        addend += c * n[axis + rank * (1 + field.addend)]
    return x, weights, bias, out, addend
