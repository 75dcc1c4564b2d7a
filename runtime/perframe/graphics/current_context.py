"""The native GL context that is current in this thread: one of EGL, GLX, WGL or CGL.

GL calls go to the current context, and moderngl does not report which one that is. The caller's context must be current
when we use it. A headless context of ours must not stay current in place of the caller's, so `current` and `restore`
put the caller's back. They act only on Linux, because only there our headless contexts are EGL's.
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
"""Returns the handle of this thread's current context as one of the system's interfaces knows it, or None."""


class Current(NamedTuple):
    """A thread's current EGL context and its surfaces. All are None if no EGL context is current."""

    display: int | None
    draw: int | None
    read: int | None
    context: int | None


NOTHING = Current(None, None, None, None)


@cache
def _library(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError:  # a missing interface has no current context
        return None


@cache
def _function(library: str, name: str, result: Any, *arguments: Any) -> Any:
    # A prototype of our own, because moderngl and glfw set other types on the library's shared function objects.
    return ctypes.CFUNCTYPE(result, *arguments)((name, _library(library)))


def _asks() -> list[Ask]:
    asked = _ASKED.get(sys.platform, _ASKED["linux"])
    return [_function(library, name, _P) for library, name in asked if hasattr(_library(library), name)]


def find_current() -> tuple[Ask, int | None]:
    """Return the `Ask` that knows this thread's current context, and the context's handle; None if no context is
    current.
    """
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
    """Make the context current again that `current` returned. Does nothing if that was none."""
    if previous.context is not None and current().context != previous.context:
        _function(_EGL[0], "eglMakeCurrent", ctypes.c_uint, _P, _P, _P, _P)(*previous)
