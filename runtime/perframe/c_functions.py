"""Functions of the system's libraries, found by name: an older system may not have them."""

from __future__ import annotations

import ctypes
from typing import Any


def c_function(library: str, name: str) -> Any:
    """A function of a library, or of the process itself where the library's name is empty. None if there is none."""
    try:
        return getattr(ctypes.CDLL(library or None), name)
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library without a name
        return None


def sysctl(name: str) -> int:
    """What macOS tells under a name: a number of 32 bits, or 0 where it does not know the name."""
    ask, number, size = c_function("", "sysctlbyname"), ctypes.c_int32(), ctypes.c_size_t(4)
    failed = ask is None or ask(name.encode(), ctypes.byref(number), ctypes.byref(size), None, ctypes.c_size_t(0))
    return 0 if failed else number.value
