"""Memory that the system has given before a driver asks for it, so that no frame waits for all of it at once."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from perframe.c_functions import c_function

_PIECE = 1 << 18  # bytes
LEAST, MOST = 1 << 20, 28 << 20  # bytes: glibc gives blocks of 32 MiB back to the system when they are freed


def touched(size: int) -> Iterator[None]:
    """Take a block for a storage of `size` bytes, use a piece of it at each step, and free it for the driver.

    The first use of a page costs microseconds, and llvmpipe clears all pages of a storage in the call that makes it:
    some milliseconds for a large one. The C library keeps the block that is freed here, and gives it to that call.
    Where it keeps none, nothing is gained.
    """
    take, free = c_function("", "malloc"), c_function("", "free")
    if not LEAST <= size <= MOST or take is None or free is None:
        return
    take.argtypes, take.restype, free.argtypes = (ctypes.c_size_t,), ctypes.c_void_p, (ctypes.c_void_p,)
    free(take(MOST + MOST // 8))  # glibc keeps blocks that are no larger than the largest that was freed
    size += size // 8  # storages are rounded up
    block = take(size)
    try:
        for begin in range(0, size if block else 0, _PIECE):
            ctypes.memset(block + begin, 0, min(_PIECE, size - begin))
            yield
    finally:
        free(block)
