"""The window of a convolution or of a pool."""

from __future__ import annotations

from typing import NamedTuple

from perframe.backends.cpu.kernels.fields import WINDOW, WINDOW_Z, Fields
from perframe.backends.cpu.kernels.inlining import inline

field, field_z = Fields("", WINDOW).at, Fields("", WINDOW_Z).at


class PlaneWindow(NamedTuple):
    """The twelve words of fields.WINDOW in their order."""

    height: int
    width: int
    out_height: int
    out_width: int
    kernel_y: int
    kernel_x: int
    stride_y: int
    stride_x: int
    dilation_y: int
    dilation_x: int
    pad_y: int
    pad_x: int


class DepthWindow(NamedTuple):
    """The six words of fields.WINDOW_Z in their order."""

    size_z: int
    out_z: int
    kernel_z: int
    stride_z: int
    dilation_z: int
    pad_z: int


@inline
def window_of(n, first):
    """The words of fields.WINDOW, which begin at n[first]."""
    return PlaneWindow(
        n[first + field.height],
        n[first + field.width],
        n[first + field.out_height],
        n[first + field.out_width],
        n[first + field.kernel_y],
        n[first + field.kernel_x],
        n[first + field.stride_y],
        n[first + field.stride_x],
        n[first + field.dilation_y],
        n[first + field.dilation_x],
        n[first + field.pad_y],
        n[first + field.pad_x],
    )


@inline
def window_z_of(n, first):
    """The words of fields.WINDOW_Z, which begin at n[first]."""
    return DepthWindow(
        n[first + field_z.size_z],
        n[first + field_z.out_z],
        n[first + field_z.kernel_z],
        n[first + field_z.stride_z],
        n[first + field_z.dilation_z],
        n[first + field_z.pad_z],
    )


@inline
def reach(start, kernel, dilation, size):
    """(first tap inside the input, one past the last). A window may be far larger than its input."""
    first, past = 0, kernel
    if start < 0 or start + (kernel - 1) * dilation >= size:  # most windows are inside, and divisions take long
        first = (-start + dilation - 1) // dilation if start < 0 else 0
        past = max(first, min(kernel, (size - start + dilation - 1) // dilation))
    return first, past


@inline
def same_reach(start, first, past, dilation, stride, size, most):
    """The number of windows from this one on, up to `most`, with the same taps inside the input; `first` and `past`
    are those of `reach`.
    """
    if first > 0:  # until another tap comes in
        most = min(most, (-start - (first - 1) * dilation + stride - 1) // stride)
    if past > 0:  # until the last tap goes out
        most = min(most, (size - start - (past - 1) * dilation + stride - 1) // stride)
    return most
