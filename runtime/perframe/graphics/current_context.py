"""The native context that is current in this thread: EGL's, GLX's, WGL's or CGL's.

GL calls go to whatever is current, and moderngl does not say what that is. A context of the caller's must be current
when we use it; a headless one of ours must neither take the place of the caller's nor stay in its way. The latter is
EGL's, and on Linux alone.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

_P = ctypes.c_void_p
_DRAW, _READ = 0x3059, 0x305A
_EGL = ("libEGL.so.1", "eglGetCurrentContext")
_ASKED = {
    "linux": (_EGL, ("libGL.so.1", "glXGetCurrentContext")),
    "win32": (("opengl32", "wglGetCurrentContext"),),
    "darwin": (("/System/Library/Frameworks/OpenGL.framework/OpenGL", "CGLGetCurrentContext"),),
}

Ask = Callable[[], int | None]
"""Tells the handle of the context that is current in this thread, by one of the system's interfaces; None for none."""


class Current(NamedTuple):
    """A thread's current EGL context and its surfaces; all None where it has none."""

    display: int | None
    draw: int | None
    read: int | None
    context: int | None


NOTHING = Current(None, None, None, None)


@cache
def _library(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError:  # an interface that is not installed has no context either
        return None


@cache
def _function(library: str, name: str, result: Any, *arguments: Any) -> Any:
    # A prototype of our own: moderngl and glfw set others on the library's shared ones.
    return ctypes.CFUNCTYPE(result, *arguments)((name, _library(library)))


def _asks() -> list[Ask]:
    asked = _ASKED.get(sys.platform, _ASKED["linux"])
    return [_function(library, name, _P) for library, name in asked if hasattr(_library(library), name)]


def find_current() -> tuple[Ask, int | None]:
    """Who knows of this thread's current context, and its handle; None where nobody does."""
    asks = _asks()
    for ask in asks:
        if (handle := ask()) is not None:
            return ask, handle
    return (asks[0] if asks else lambda: None), None


def current() -> Current:
    """The EGL context that is current in this thread."""
    library, name = _EGL
    if not sys.platform.startswith("linux") or _library(library) is None:
        return NOTHING
    if not (context := _function(library, name, _P)()):
        return NOTHING
    surface = _function(library, "eglGetCurrentSurface", _P, ctypes.c_int)
    return Current(_function(library, "eglGetCurrentDisplay", _P)(), surface(_DRAW), surface(_READ), context)


def restore(previous: Current) -> None:
    """Make the context current again that `current` told of."""
    if previous.context is not None and current().context != previous.context:
        _function(_EGL[0], "eglMakeCurrent", ctypes.c_uint, _P, _P, _P, _P)(*previous)
