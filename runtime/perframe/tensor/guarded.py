"""Guarded memory: with PERFRAME_GUARD each value on the CPU has its own pages, between two forbidden pages.

A read or write outside of a value ends the process at that instruction. With `PERFRAME_GUARD=behind`, each value ends
at a forbidden page; with `PERFRAME_GUARD=before`, each value begins behind one. Guards are for tests: every value costs
a system call and some pages.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import BackendError, InputError

FILL = 0xFF  # every byte of new memory: NaN as a float, and out of range as an index
_PAGE, _NONE = mmap.PAGESIZE, 0  # PROT_NONE


@cache
def guard() -> str:
    """The side of the forbidden page: "behind", "before" or "". Raises InputError for another PERFRAME_GUARD."""
    given = os.environ.get("PERFRAME_GUARD", "")
    if given not in ("", "0", "behind", "before"):
        raise InputError(f"PERFRAME_GUARD is 'behind' or 'before', not {given!r}")
    if given not in ("", "0") and not hasattr(mmap, "MAP_PRIVATE"):
        raise InputError("PERFRAME_GUARD needs mprotect, which Windows does not have: unset it")
    return "" if given == "0" else given


def guarded_bytes(size: int) -> tuple[NDArray[np.uint8], int]:
    """Return `size` bytes between two forbidden pages, next to one of them, and their address."""
    pages = -(-size // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    whole = np.frombuffer(memory, np.uint8)  # owns the pages, which are freed with its last view
    begin = int(whole.__array_interface__["data"][0])
    whole[_PAGE : (pages + 1) * _PAGE] = FILL
    for page in (begin, begin + (pages + 1) * _PAGE):
        if _protect()(page, _PAGE, _NONE):
            raise BackendError("no page could be forbidden: unset PERFRAME_GUARD")
    first = _PAGE if guard() == "before" else (pages + 1) * _PAGE - size
    return whole[first : first + size], begin + first


@cache
def _protect() -> Any:
    function = ctypes.CDLL(None).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
