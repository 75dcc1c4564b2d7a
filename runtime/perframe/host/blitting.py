"""Pictures to and from a host's framebuffer, whatever state the host's GL is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_float, sizeof
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from perframe.graphics.functions import Entries, delete, generate, get
from perframe.graphics.headless_context import entry_point
from perframe.graphics.state_tables import FRAMEBUFFER_SRGB, PIXEL_BUFFERS, PIXEL_STORE, SCISSOR_TEST, pixel_transfer
from perframe.host.pixels import Pixels, upright

if TYPE_CHECKING:
    import moderngl

_DRAW_FRAMEBUFFER, _READ_FRAMEBUFFER = 0x8CA9, 0x8CA8
_FRAMEBUFFERS = {_DRAW_FRAMEBUFFER: 0x8CA6, _READ_FRAMEBUFFER: 0x8CAA}  # and what asks for the bound one
_COLOR_ATTACHMENT, _COLOR_BUFFER, _NEAREST = 0x8CE0, 0x4000, 0x2600
_FIRST_DRAW_BUFFER, _READ_BUFFER, _SEVERAL = 0x8825, 0x0C02, (0, 0x0408)  # no buffer, and front and back
_VIEWPORT, _MAX_VIEWPORTS = 0x0BA2, 0x825B
_ACTIVE_TEXTURE, _TEXTURE0, _TEXTURE_2D, _TEXTURE_2D_BINDING = 0x84E0, 0x84C0, 0x0DE1, 0x8069


class Area(NamedTuple):
    """A viewport of a framebuffer, by the framebuffer's GL name."""

    framebuffer: int
    x: int
    y: int
    width: int
    height: int


class Blitter:
    """Copies pictures to and from a framebuffer, and leaves GL's state as it was."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self._gl = Entries(partial(entry_point, ctx), ctx.version_code)
        self._unit = _TEXTURE0 + ctx.max_texture_units - 1  # moderngl fills textures there
        self._transfer = pixel_transfer(self._gl.compatibility, ctx.extensions if self._gl.compatibility else ())

    def draw(self, pixels: Pixels, area: Area) -> None:
        """Copy a picture, H×W×3, over the lower left corner of an area."""
        height, width, _ = pixels.shape
        with self.kept():
            texture = self._ctx.texture((width, height), 4, upright(pixels))
            self._gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, area.framebuffer)
            self._blit(texture, _READ_FRAMEBUFFER, (0, 0), (area.x, area.y))
            texture.release()

    def read(self, area: Area) -> Pixels:
        """The colors of an area, H×W×3, top row first. Waits for the GPU."""
        gl = self._gl
        with self.kept(), ExitStack() as stack:
            texture = self._ctx.texture((area.width, area.height), 4)
            for target in _FRAMEBUFFERS:
                gl.glBindFramebuffer(target, area.framebuffer)
            before, drawn = get(gl, _READ_BUFFER), get(gl, _FIRST_DRAW_BUFFER)
            if drawn not in (before, *_SEVERAL):  # the host may read elsewhere
                gl.glReadBuffer(drawn)
                stack.callback(gl.glReadBuffer, before)
                stack.callback(gl.glBindFramebuffer, _READ_FRAMEBUFFER, area.framebuffer)
            self._blit(texture, _DRAW_FRAMEBUFFER, (area.x, area.y), (0, 0))
            rows = np.frombuffer(texture.read(), np.uint8).reshape(area.height, area.width, 4)
            texture.release()
        return np.ascontiguousarray(rows[::-1, :, :3])

    def _blit(self, texture: moderngl.Texture, end: int, source: tuple[int, int], target: tuple[int, int]) -> None:
        """Copy from or to a texture; `end` says which: the framebuffer for reading or that for drawing."""
        gl, (width, height) = self._gl, texture.size
        framebuffer = generate(gl, "Framebuffers")
        gl.glBindFramebuffer(end, framebuffer)
        gl.glFramebufferTexture2D(end, _COLOR_ATTACHMENT, _TEXTURE_2D, texture.glo, 0)
        (left, low), (x, y) = source, target
        gl.glBlitFramebuffer(
            left, low, left + width, low + height, x, y, x + width, y + height, _COLOR_BUFFER, _NEAREST
        )
        delete(gl, "Framebuffers", framebuffer)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """In the block, the state is GL's initial one as far as copies need it."""
        gl = self._gl
        with ExitStack() as stack:
            stack.callback(gl.glActiveTexture, get(gl, _ACTIVE_TEXTURE))
            self._switch_off(stack)
            for name, first in self._transfer.items():
                value = c_float()
                gl.glGetFloatv(name, byref(value))
                _change(stack, gl.glPixelTransferf, name, value.value, first)
            for name, number in PIXEL_STORE.items():
                _change(stack, gl.glPixelStorei, name, get(gl, name), number)
            for target, name in PIXEL_BUFFERS.items():
                _change(stack, gl.glBindBuffer, target, get(gl, name), 0)
            for target, name in _FRAMEBUFFERS.items():
                stack.callback(gl.glBindFramebuffer, target, get(gl, name))
            gl.glActiveTexture(self._unit)
            stack.callback(gl.glBindTexture, _TEXTURE_2D, get(gl, _TEXTURE_2D_BINDING))
            stack.callback(gl.glActiveTexture, self._unit)
            yield

    def set_viewport(self, framebuffer: moderngl.Framebuffer, area: Area) -> None:
        """Give a moderngl framebuffer its viewport. If it is bound, moderngl sets all viewports of the state, too."""
        gl, count = self._gl, get(self._gl, _MAX_VIEWPORTS) if self._gl.version >= 410 else 0
        before = (c_float * (4 * count))()
        for index in range(count):
            gl.glGetFloati_v(_VIEWPORT, index, byref(before, 4 * index * sizeof(c_float)))
        framebuffer.viewport = area[1:]
        if count:
            gl.glViewportArrayv(0, count, before)

    def _switch_off(self, stack: ExitStack) -> None:
        """Neither the scissor test nor an encoding as sRGB reaches copies. The first viewport's scissor test counts."""
        gl = self._gl
        if gl.glIsEnabled(FRAMEBUFFER_SRGB):
            gl.glDisable(FRAMEBUFFER_SRGB)
            stack.callback(gl.glEnable, FRAMEBUFFER_SRGB)
        index = (0,) if gl.version >= 410 else ()
        suffix = "i" if index else ""
        if gl.glIsEnabled(SCISSOR_TEST):
            getattr(gl, f"glDisable{suffix}")(SCISSOR_TEST, *index)
            stack.callback(getattr(gl, f"glEnable{suffix}"), SCISSOR_TEST, *index)


def _change(stack: ExitStack, function: Callable[..., object], name: int, before: float, wanted: float) -> None:
    """Set a part of the state, also where it is so already: moderngl changes some. Set it back at the stack's end."""
    function(name, wanted)
    stack.callback(function, name, before)
