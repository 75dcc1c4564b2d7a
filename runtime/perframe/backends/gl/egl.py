"""Which EGL context is current: a headless one of ours must neither take the place of the caller's nor stay in its way.

Elsewhere than on Linux there is no EGL to ask, and all of this does nothing.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, NamedTuple

_DRAW, _READ = 0x3059, 0x305A
_P = ctypes.c_void_p


class Current(NamedTuple):
    """A thread's current context and its surfaces; all None where it has none."""

    display: int | None
    draw: int | None
    read: int | None
    context: int | None


@cache
def _library() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError:
        return None
    for name, arguments in {
        "eglGetCurrentContext": [],
        "eglGetCurrentDisplay": [],
        "eglGetCurrentSurface": [ctypes.c_int],
        "eglMakeCurrent": [_P, _P, _P, _P],
    }.items():
        function = getattr(egl, name)
        function.restype, function.argtypes = _P, arguments
    egl.eglMakeCurrent.restype = ctypes.c_uint
    return egl


def current() -> Current:
    """What is current in this thread."""
    egl = _library()
    if egl is None or not (context := egl.eglGetCurrentContext()):
        return Current(None, None, None, None)
    return Current(
        egl.eglGetCurrentDisplay(), egl.eglGetCurrentSurface(_DRAW), egl.eglGetCurrentSurface(_READ), context
    )


def restore(previous: Current) -> None:
    """Make the context current again that `current` told of."""
    if previous.context is not None and current().context != previous.context:
        _library().eglMakeCurrent(*previous)
