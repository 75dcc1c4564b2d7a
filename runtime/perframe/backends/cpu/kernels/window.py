"""The window of a convolution or of a pool."""

from __future__ import annotations

from perframe.backends.cpu.kernels.compiler import inline
from perframe.backends.cpu.kernels.fields import WINDOW, Fields

field = Fields("", WINDOW).at


@inline
def window_of(n, first):
    """The twelve words of fields.WINDOW in their order. They begin at n[first]."""
    return (
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
def reach(start, kernel, dilation, size):
    """(first tap inside the input, one past the last). A window may be far larger than its input."""
    first, past = 0, kernel
    if start < 0 or start + (kernel - 1) * dilation >= size:  # most windows are inside, and divisions take long
        first = (-start + dilation - 1) // dilation if start < 0 else 0
        past = max(first, min(kernel, (size - start + dilation - 1) // dilation))
    return first, past
