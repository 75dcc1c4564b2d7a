"""The threads of NumPy's OpenBLAS.

A product of OpenBLAS ends when the last of its threads does, and a thread that lost its core to another process comes
back milliseconds later. While kernels compile on all cores, a convolution takes twenty times as long with two threads
as with one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from perframe.tensor.locks import new_lock

_lock = new_lock()
_inside, _before = 0, 1  # the blocks that are under way, and the number of threads before the first


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy's products take one thread within the block, those of other threads too. Does nothing where NumPy has
    another BLAS than the OpenBLAS of its wheels.
    """
    global _inside, _before
    found = _functions()
    if found is None:
        yield
        return
    get, limit = found
    with _lock:
        if not _inside:
            _before = get()
            limit(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                limit(_before)


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that get and set the number of threads, from the library that NumPy has loaded."""
    package = Path(np.__file__).parent
    for path in [*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]:
        try:
            library = ctypes.CDLL(str(path))
            return library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
        except (OSError, AttributeError):
            continue
    return None
