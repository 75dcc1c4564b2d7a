"""The native GL context that is current in this thread: one of EGL, GLX, WGL or CGL.

GL calls go to the current context, and moderngl does not report which one that is. The caller's context must be current
when we use it. A headless context of ours must not stay current in place of the caller's, so `current` and `restore`
put the caller's back: an EGL context on Linux, a WGL context on Windows, a CGL context on macOS.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

_P = ctypes.c_void_p
_DRAW, _READ = 0x3059, 0x305A


class _Interface(NamedTuple):
    """A system's interface to contexts. `parts` are the functions, with their arguments, whose results `make_current`
    takes; the last one returns the context.
    """

    library: str
    make_current: str
    parts: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def asks(self) -> str:
        """The function that returns the current context."""
        return self.parts[-1][0]


_EGL = _Interface(
    "libEGL.so.1",
    "eglMakeCurrent",
    (
        ("eglGetCurrentDisplay", ()),
        ("eglGetCurrentSurface", (_DRAW,)),
        ("eglGetCurrentSurface", (_READ,)),
        ("eglGetCurrentContext", ()),
    ),
)
_WGL = _Interface("opengl32", "wglMakeCurrent", (("wglGetCurrentDC", ()), ("wglGetCurrentContext", ())))
_CGL = _Interface(
    "/System/Library/Frameworks/OpenGL.framework/OpenGL", "CGLSetCurrentContext", (("CGLGetCurrentContext", ()),)
)
_HEADLESS = {"win32": _WGL, "darwin": _CGL}  # the interface of our headless contexts; elsewhere EGL
_GLX = ("libGL.so.1", "glXGetCurrentContext")

Ask = Callable[[], int | None]
"""Returns the handle of this thread's current context as one of the system's interfaces knows it, or None."""


class Current(NamedTuple):
    """A thread's current context, and what it was made current with: displays, surfaces, and last the context."""

    handles: tuple[int | None, ...]

    @property
    def context(self) -> int | None:
        """The context's handle; None if no context is current."""
        return self.handles[-1]


NOTHING = Current((None,))


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


def _interface() -> _Interface:
    return _HEADLESS.get(sys.platform, _EGL)


def _asks() -> list[Ask]:
    own = _interface()
    asked = [(own.library, own.asks), *([_GLX] if own is _EGL else [])]
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
    """The context that is current in this thread, of the kind that our headless contexts are."""
    library, _, parts = _interface()
    if _library(library) is None or not _function(library, parts[-1][0], _P)():
        return NOTHING
    return Current(tuple(_function(library, name, _P, *[ctypes.c_int] * len(given))(*given) for name, given in parts))


def restore(previous: Current) -> None:
    """Make the context current again that `current` returned, or no context if that was none."""
    now = current()
    if now.context == previous.context:
        return
    library, make_current, parts = own = _interface()
    handles = previous.handles
    if previous.context is None:  # EGL needs its display even then
        handles = (now.handles[0] if own is _EGL else None, *[None] * (len(parts) - 1))
    _function(library, make_current, ctypes.c_uint, *[_P] * len(parts))(*handles)
