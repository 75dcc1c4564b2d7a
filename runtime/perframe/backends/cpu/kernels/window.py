"""The window of a convolution or of a pool."""

from __future__ import annotations

from perframe.backends.cpu.kernels.fields import WINDOW, WINDOW_Z, Fields
from perframe.backends.cpu.kernels.inlining import inline, reader

# the words of fields.WINDOW and of fields.WINDOW_Z, which begin at n[first]
window_of = reader("PlaneWindow", WINDOW, Fields("", WINDOW).at)
window_z_of = reader("DepthWindow", WINDOW_Z, Fields("", WINDOW_Z).at)


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
    """The number of windows from here on, up to `most`, whose taps inside the input are those that `reach` gave."""
    if first > 0:  # until another tap comes in
        most = min(most, (-start - (first - 1) * dilation + stride - 1) // stride)
    if past > 0:  # until the last tap goes out
        most = min(most, (size - start - (past - 1) * dilation + stride - 1) // stride)
    return most
