"""An app as a guest: the window, its loop and its GL context belong to another toolkit."""

from __future__ import annotations

import ctypes
import logging
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.errors import BackendError, InputError, PerframeError
from perframe.graphics.current_context import find_current
from perframe.graphics.headless_context import claim_process, entry_point, making_contexts
from perframe.host import pixels as picture
from perframe.host.app import App
from perframe.host.blitting import Area, Blitter
from perframe.host.input import Event
from perframe.host.pixels import Pixels
from perframe.host.scripts import AnyScript

if TYPE_CHECKING:
    import moderngl

log = logging.getLogger("perframe")

_DRAW_FRAMEBUFFER_BINDING, _VIEWPORT = 0x8CA6, 0x0BA2
_OTHER_WAY = (
    "run pf.App(headless=True), and copy app.surface.read_pixels() to the window in each frame (page "
    '"In another toolkit\'s window")'
)


class GuestSurface:
    """The framebuffer and the viewport that the host has bound when a frame begins. Nothing is cleared or swapped.

    `ctx` is a moderngl context; without it one is made for the GL context that is current in this thread. Raises
    BackendError if none is current.
    """

    should_close = False

    def __init__(self, ctx: moderngl.Context | None = None) -> None:
        claim_process()
        import moderngl

        if ctx is not None and not isinstance(ctx, moderngl.Context):
            raise InputError(f"ctx is a moderngl.Context, not {type(ctx).__name__}")
        self._ask, self._handle = find_current()
        if self._handle is None:
            raise BackendError(
                "attach() found no current GL context in this thread: call it when the window exists and its context "
                "is current (Qt: in initializeGL; others: after the window is made). A window without GL (pygame "
                f"without pygame.OPENGL, tkinter) cannot be drawn into: {_OTHER_WAY}"
            )
        if ctx is None and _pygame_draws_over():
            log.warning(
                "attach(): the window of pygame has no pygame.OPENGL, and pygame.display.flip() draws over what the "
                "app draws there: pass pygame.OPENGL | pygame.DOUBLEBUF to set_mode, or %s",
                _OTHER_WAY,
            )
        self.ctx = ctx if ctx is not None else _context_of_this_thread()
        get_integers = entry_point(self.ctx, "glGetIntegerv")
        self._get_integers = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_void_p)(get_integers)
        self._area = Area(-1, 0, 0, 1, 1)
        self._blit = Blitter(self.ctx)
        self._detect()

    def poll_events(self) -> list[Event]:
        """Return no events: the host passes on those that it has by `App.post`."""
        return []

    def begin_frame(self) -> None:
        """Take the framebuffer and the viewport that are bound. Raises BackendError if another context is current."""
        claim_process()
        if self._ask() != self._handle:
            raise BackendError(
                "the GL context to which this app is attached is not current: call loop_once() where the window draws, "
                "and attach a new app if the toolkit has recreated the window"
            )
        self._detect()

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Fill the viewport with a picture. Raises InputError if it is not one."""
        self.draw_over(picture.fit(pixels, self.size))

    def draw_over(self, pixels: Pixels) -> None:
        """Draw a picture over the lower left corner of the viewport, and leave GL's state as it was."""
        self._blit.draw(pixels, self._area)

    def read_pixels(self) -> Pixels:
        """Return the viewport's picture in this frame, H×W×3, top row first. Waits for the GPU."""
        return self._blit.read(self._area)

    def swap(self) -> None:
        """Do nothing: the host shows the picture."""

    def release(self) -> None:
        """Do nothing: the context is the host's."""

    def _detect(self) -> None:
        numbers = (ctypes.c_int * 5)()
        self._get_integers(_DRAW_FRAMEBUFFER_BINDING, numbers)
        self._get_integers(_VIEWPORT, ctypes.byref(numbers, ctypes.sizeof(ctypes.c_int)))
        name, x, y, width, height = numbers
        area = Area(name, x, y, max(1, width), max(1, height))  # a minimized window has no pixels
        if area != self._area:
            self._area, self.size = area, (area.width, area.height)
            with self._blit.kept():  # moderngl binds what it looks at
                self.framebuffer = self.ctx.detect_framebuffer()
            self._blit.set_viewport(self.framebuffer, area)
        self.ctx.fbo = self.framebuffer  # moderngl cannot know what others have bound


class Guest(App):
    """An app in another toolkit's loop, which calls `loop_once` where it draws."""

    def run(self, *scripts: AnyScript, frames: int | None = None) -> None:
        """Raise PerframeError: the loop is the host's."""
        raise PerframeError("this app is a guest in another loop: call its loop_once() where the window draws")


def attach(*scripts: AnyScript, ctx: moderngl.Context | None = None, **settings: Any) -> App:
    """Return an app inside the window and the loop of another toolkit: call its `loop_once()` where the window draws,
    and its `release()` before the window closes.

    The window's GL context must be current. `ctx` is moderngl's, if there is one. `app.framebuffer` is the framebuffer
    that is bound when `loop_once` begins, and `app.size` its viewport's. `settings` are those of `App`. Raises
    BackendError if no GL context is current.
    """
    app = Guest(surface=GuestSurface(ctx), **settings)
    try:
        for script in scripts:
            app.add(script)
    except BaseException:
        app.release()
        raise
    return app


def _pygame_draws_over() -> bool:
    """Whether pygame has a window of pixels. SDL may show them by a GL context of its own, which is current then, and
    sets the flag OPENGL, too.
    """
    pygame: Any = sys.modules.get("pygame")
    surface = pygame.display.get_surface() if pygame is not None and pygame.display.get_init() else None
    return surface is not None and bool(surface.get_flags() & pygame.PREALLOC)


def _context_of_this_thread() -> moderngl.Context:
    """Make a moderngl context. `moderngl.create_context()` would return that of another window if there is one."""
    import moderngl

    try:
        with making_contexts:
            moderngl.init_context()
            ctx: moderngl.Context = moderngl.get_context()
    except Exception as error:  # moderngl raises Exception itself
        raise BackendError(f"moderngl cannot use the current GL context: {error}") from None
    if ctx.version_code < 330:
        raise BackendError(
            f"the window's GL context has version {ctx.version_code / 100:.1f}: ask the toolkit for a core profile of "
            "3.3, or of 4.3 for gpu_compute"
        )
    return ctx
