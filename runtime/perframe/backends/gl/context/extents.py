"""Sizes of buffers and textures on llvmpipe, which makes machine code of a shader for each kind of their sizes.

What it tells apart is whether a width or a height is a power of two, and, by mistake, whether the second byte of a
buffer's size is zero: it takes that byte for a number of levels. A kernel with four inputs would have dozens of codes,
made when the first layers with such sizes run. So all sizes are of one kind, and each kernel has one code.
"""

from __future__ import annotations

_LEVELS = 0xFF00  # the bits of a buffer's size that count as levels


def buffer_of_one_kind(size: int) -> int:
    """At least `size` bytes: not a power of two, and with a bit among the levels."""
    if not size & _LEVELS:
        size += 256
    return size + 16 * _is_power(size)


def texture_of_one_kind(size: tuple[int, int], most: int) -> tuple[int, int]:
    """At least such a width and height, of which none is a power of two unless it is the largest one."""
    width, height = (next(n for n in range(extent, most + 3) if n >= most or not _is_power(n)) for extent in size)
    return width, height


def _is_power(size: int) -> bool:
    return not size & (size - 1)
