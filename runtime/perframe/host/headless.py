"""A surface without a screen: a context of its own, through EGL on Linux, and an off-screen framebuffer."""

from __future__ import annotations

import ctypes
from threading import get_ident
from typing import Any

import moderngl
import numpy as np

from perframe.errors import BackendError
from perframe.graphics import current_context
from perframe.graphics.headless_context import claim_process, create_headless, entry_point
from perframe.host import pixels as picture
from perframe.host.input import Event
from perframe.host.pixels import Pixels


class HeadlessSurface:
    """An off-screen RGBA8 framebuffer with a depth buffer. Raises BackendError where there is no GL 3.3."""

    should_close = False

    def __init__(self, size: tuple[int, int]) -> None:
        self.size, self.thread = size, get_ident()
        previous = current_context.current()
        try:
            self.ctx = create_headless(moderngl.create_context)
        except BackendError:
            current_context.restore(previous)
            raise
        try:
            self.framebuffer = self.ctx.simple_framebuffer(size)
        except Exception as error:  # moderngl raises Exception itself
            self._release_context()
            current_context.restore(previous)
            raise BackendError(
                f"this driver cannot make a framebuffer of {size[0]}×{size[1]} pixels: {error}; choose a smaller size"
            ) from None
        self._flush = ctypes.CFUNCTYPE(None)(entry_point(self.ctx, "glFlush"))  # moderngl has no name for it
        self._released = False
        self.begin_frame()

    def poll_events(self) -> list[Event]:
        """Return no events: this surface has none."""
        return []

    def begin_frame(self) -> None:
        """Make the context current, bind the framebuffer, and clear it to black."""
        claim_process()
        picture.require_context(self.ctx)
        self.ctx.__enter__()  # type: ignore[no-untyped-call]
        self.framebuffer.use()
        self.framebuffer.clear(alpha=1.0)

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Fill the framebuffer with a picture. Raises InputError if it is not one."""
        picture.draw(self.ctx, self.framebuffer, picture.fit(pixels, self.size))

    def draw_over(self, pixels: Pixels) -> None:
        """Draw a picture over the lower left corner."""
        picture.draw(self.ctx, self.framebuffer, pixels)

    def read_pixels(self) -> Pixels:
        """The picture so far, H×W×3, top row first. Waits for the GPU."""
        return picture.read(self.framebuffer)

    def swap(self) -> None:
        """Hand the frame's work to the GPU, and return: without a screen there is no display to wait for."""
        self._flush()

    def release(self) -> None:
        """Release the framebuffer and the context, and leave no context current."""
        if self._released:
            return
        self._released = True
        claim_process()
        if not picture.is_released(self.ctx):
            self.ctx.__enter__()  # type: ignore[no-untyped-call]
            self.framebuffer.release()
        self._release_context()

    def _release_context(self) -> None:
        # A released context stays current until another replaces it, and a GLX context cannot replace it.
        current_context.restore(current_context.NOTHING)
        self.ctx.release()
