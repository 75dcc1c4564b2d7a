"""The surface that a loop draws into: a window, an off-screen framebuffer, or host memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Integral
from threading import get_ident
from typing import Any, Protocol

import numpy as np

from perframe.errors import BackendError, InputError
from perframe.graphics import GLContext, GLFramebuffer
from perframe.host.input import Event
from perframe.host.pixels import Pixels, fit

log = logging.getLogger("perframe")


class Surface(Protocol):
    """The surface that a loop draws into. `perframe.App` calls the methods in the order of this class."""

    @property
    def ctx(self) -> GLContext | None:
        """The GL context, or None where there is no GL."""
        ...

    @property
    def framebuffer(self) -> GLFramebuffer | None:
        """The framebuffer to render into, or None where there is no GL."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; never 0."""
        ...

    @property
    def should_close(self) -> bool:
        """Whether the user wants to close the surface."""
        ...

    def poll_events(self) -> list[Event]:
        """Return the events since the last call. Never blocks."""
        ...

    def begin_frame(self) -> None:
        """Make the context current, bind the framebuffer, and clear it to black."""
        ...

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Fill the surface with a picture from host memory: H×W×3 or H×W×4, uint8, top row first.

        A picture of another size is stretched. This method copies the picture; to show a texture, render it instead.
        """
        ...

    def draw_over(self, pixels: np.ndarray[Any, Any]) -> None:
        """Draw a picture, H×W×3 of uint8 and no larger than the surface, over the lower left corner."""
        ...

    def read_pixels(self) -> np.ndarray[Any, Any]:
        """Return the picture of this frame as an H×W×3 uint8 array, top row first. Waits for the GPU.

        Raises PerframeError for a window between two frames: a window keeps no picture that it has shown.
        """
        ...

    def swap(self) -> None:
        """Show the picture. Waits for the display if the surface is synchronized with it."""
        ...

    def release(self) -> None:
        """Free all resources. May be called twice."""
        ...


def require_thread(surface: Surface) -> None:
    """Raise BackendError in another thread than the one that made the surface, if its GL context is its own: GL would
    draw nothing there, and say nothing. The context of a guest may move with its owner.
    """
    thread = getattr(surface, "thread", None)
    if thread is not None and thread != get_ident():
        raise BackendError(
            "an App was used from another thread than the one that made it, to which its GL context belongs: make the "
            "App in the thread that runs it, and let other threads call app.post()"
        )


def check_surface(surface: Surface) -> Surface:
    """Return a caller's surface. Raises InputError for anything else."""
    missing = [
        name for name in ("size", "should_close", "poll_events", "begin_frame", "swap") if not hasattr(surface, name)
    ]
    if missing or isinstance(surface, type):
        raise InputError(
            f"{surface!r} is not a surface (see perframe.host.Surface): it lacks {', '.join(missing) or 'self'}"
        )
    return surface


def open_surface(size: tuple[int, int], title: str, headless: bool | None = None, vsync: bool = True) -> Surface:
    """Open a surface of `size` pixels.

    `headless` False opens a window, and True an off-screen framebuffer. Both raise BackendError with the reason if that
    fails. None tries a window, then an off-screen framebuffer, and then a surface without GL, and warns of each
    failure. Raises InputError for a wrong `size`, `title` or `headless`.
    """
    if not isinstance(size, Sequence) or len(size) != 2 or not all(isinstance(side, Integral) for side in size):
        raise InputError(f"a size is width and height in whole pixels, as size=(1280, 720), not {size!r}")
    if not isinstance(title, str):
        raise InputError(f"a title is a text, not {title!r}")
    size = int(size[0]), int(size[1])
    if min(size) < 1:
        raise InputError(f"a surface of {size[0]}×{size[1]} pixels: both sides must be at least 1")
    if headless not in (True, False, None):
        raise InputError(f"headless is True, False or None, not {headless!r}")
    if headless is False:
        return _open_window(size, title, vsync)
    if headless is True:
        return _open_headless(size)
    try:
        return _open_window(size, title, vsync)
    except BackendError as error:
        log.warning(
            "%s. Drawing off screen: to end it, pass frames=100 to `run`, call app.quit(), or press Ctrl-C, which ends "
            "the program, too. headless=True silences this warning",
            error,
        )
    try:
        return _open_headless(size)
    except BackendError as error:
        log.warning("drawing without GL: %s", error)
    return BlankSurface(size)


def _open_window(size: tuple[int, int], title: str, vsync: bool) -> Surface:
    try:
        from perframe.host.window import Window
    except ImportError as error:  # glfw is a dependency, but its library may need a missing library of the system
        raise BackendError(f"no window: {error}; reinstall glfw and moderngl, or pass headless=True") from error
    return Window(size, title, vsync)


def _open_headless(size: tuple[int, int]) -> Surface:
    try:
        from perframe.host.headless import HeadlessSurface
    except ImportError as error:
        raise BackendError(f"no OpenGL: {error}; reinstall moderngl") from error
    return HeadlessSurface(size)


class BlankSurface:
    """A surface that shows nothing, and keeps the picture of `present`."""

    ctx = None
    framebuffer = None
    should_close = False

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self._pixels: Pixels | None = None

    def poll_events(self) -> list[Event]:
        """Return no events: this surface has none."""
        return []

    def begin_frame(self) -> None:
        """Forget the picture."""
        self._pixels = None

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Keep a copy of the picture, stretched to the surface. Raises InputError if it is not a picture."""
        self._pixels = fit(pixels, self.size).copy()

    def draw_over(self, pixels: Pixels) -> None:
        """Copy a picture over the lower left corner."""
        picture = self.read_pixels()
        picture[picture.shape[0] - pixels.shape[0] :, : pixels.shape[1]] = pixels
        self._pixels = picture

    def read_pixels(self) -> Pixels:
        """This frame's picture; black if there is none."""
        if self._pixels is None:
            return np.zeros((self.size[1], self.size[0], 3), np.uint8)
        return self._pixels.copy()

    def swap(self) -> None:
        """Do nothing: there is no screen."""

    def release(self) -> None:
        """Forget the picture."""
        self._pixels = None
