"""Which taps of a window lie inside its input."""

from __future__ import annotations

from perframe.backends.cpu.kernels.compiler import inline


@inline
def reach(start, kernel, dilation, size):
    """The first tap inside the input, and one past the last: a window may be far larger than its input."""
    first = (-start + dilation - 1) // dilation if start < 0 else 0
    return first, max(first, min(kernel, (size - start + dilation - 1) // dilation))
