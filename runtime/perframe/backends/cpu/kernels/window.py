"""Which taps of a window lie inside its input."""

from __future__ import annotations

from perframe.backends.cpu.kernels.compiler import inline


@inline
def reach(start, kernel, dilation, size):
    """(first tap inside the input, one past the last). A window may be far larger than its input."""
    first, past = 0, kernel
    if start < 0 or start + (kernel - 1) * dilation >= size:  # most windows are inside, and divisions take long
        first = (-start + dilation - 1) // dilation if start < 0 else 0
        past = max(first, min(kernel, (size - start + dilation - 1) // dilation))
    return first, past
