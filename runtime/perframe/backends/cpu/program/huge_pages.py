"""Memory for weights, in huge pages where the system has them.

A run reads every weight once. In pages of 4 KiB, the weights of a middle-sized network need more address translations
than a processor keeps, and each missing one is looked up in memory.
"""

from __future__ import annotations

import math
import mmap
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from perframe.tensor.dtypes import Array
from perframe.tensor.locks import new_lock

PAGE = 2 << 20  # bytes of a huge page, on x86-64 and on most arm64 systems
BLOCK = 16 * PAGE  # bytes that small arrays share: one that lives on keeps no more than these
SMALL = 1 << 14  # bytes: fewer do not pay for a place in a block, whose first page costs 2 MiB
LARGE = 2 * PAGE  # bytes: NumPy puts more of them into huge pages by itself
LINE = 64  # bytes of a cache line


class _HugeBlocks:
    """Hands out the parts of a block, one after the other. A block lives as long as its last part. If no more than a
    page of it was used, its memory stays for later parts: the system takes long to clear a page.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._last: weakref.ref[Array] | None = None
        self._kept: mmap.mmap | None = None  # the memory of the last block, if it is kept
        self._first = self._start = 0  # offsets of the block, and of its free part

    def take(self, size: int) -> Array:
        """Return `size` bytes of zeros. Raises OSError without such memory."""
        with self._lock:
            block = None if self._last is None else self._last()
            if block is None and self._kept is not None:  # no part lives
                block = np.frombuffer(self._kept, np.uint8)
                block[self._first : self._start] = 0
                self._last, self._start = weakref.ref(block), self._first
            if block is None or self._start + size > self._first + BLOCK:
                self._kept = _new_block()
                block = np.frombuffer(self._kept, np.uint8)
                self._last, self._first = weakref.ref(block), -block.__array_interface__["data"][0] % PAGE
                self._start = self._first
            begin = self._start
            self._start += -(-size // LINE) * LINE
            if self._start > self._first + PAGE:
                self._kept = None
        return block[begin : begin + size]


def _new_block() -> mmap.mmap:
    """Return memory that holds a block of zeros, which may begin a huge page later."""
    memory = mmap.mmap(-1, BLOCK + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # of a system that is built without huge pages: small ones serve as well
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


_blocks = _HugeBlocks()


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray[Any, Any]:
    """Return zeros for values that every run reads, as `np.zeros` does. Raises MemoryError."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if SMALL <= size <= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # NumPy's error says how much was asked for
            return _blocks.take(size).view(dtype).reshape(shape)
    return np.zeros(shape, dtype)
