"""Pictures to and from what a host has bound, whatever state the host's GL is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from perframe.graphics.functions import Entries, delete, generate, get
from perframe.graphics.headless_context import entry_point
from perframe.host.pixels import Pixels, upright

if TYPE_CHECKING:
    import moderngl

_DRAW_FRAMEBUFFER, _READ_FRAMEBUFFER = 0x8CA9, 0x8CA8
_FRAMEBUFFERS = {_DRAW_FRAMEBUFFER: 0x8CA6, _READ_FRAMEBUFFER: 0x8CAA}  # and what asks for the bound one
_BUFFERS = {0x88EC: 0x88EF, 0x88EB: 0x88ED}  # of unpacking and packing
_COLOR_ATTACHMENT, _COLOR_BUFFER, _NEAREST, _SCISSOR_TEST = 0x8CE0, 0x4000, 0x2600, 0x0C11
_ACTIVE_TEXTURE, _TEXTURE0, _TEXTURE_2D, _TEXTURE_2D_BINDING = 0x84E0, 0x84C0, 0x0DE1, 0x8069
# swap bytes, row length, skip rows, skip pixels, image height, skip images; and alignment
_LAYOUT = dict.fromkeys((0x0CF0, 0x0CF2, 0x0CF3, 0x0CF4, 0x806E, 0x806D), 0) | {0x0CF5: 4}  # of unpacking
_LAYOUT |= dict.fromkeys((0x0D00, 0x0D02, 0x0D03, 0x0D04, 0x806C, 0x806B), 0) | {0x0D05: 4}  # of packing


class Blitter:
    """Copies pictures to and from the framebuffer that is bound for drawing, and leaves GL's state as it was."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self._gl = Entries(partial(entry_point, ctx), ctx.version_code)
        self._unit = _TEXTURE0 + ctx.max_texture_units - 1  # moderngl fills textures there

    def draw(self, pixels: Pixels) -> None:
        """Copy a picture, H×W×3, over the lower left corner."""
        height, width, _ = pixels.shape
        with self.kept():
            texture = self._ctx.texture((width, height), 4, upright(pixels))
            self._blit(texture, _READ_FRAMEBUFFER)
            texture.release()

    def read(self, size: tuple[int, int]) -> Pixels:
        """The colours from the lower left corner, H×W×3, top row first. Waits for the GPU."""
        with self.kept():
            texture = self._ctx.texture(size, 4)
            self._gl.glBindFramebuffer(_READ_FRAMEBUFFER, get(self._gl, _FRAMEBUFFERS[_DRAW_FRAMEBUFFER]))
            self._blit(texture, _DRAW_FRAMEBUFFER)
            rows = np.frombuffer(texture.read(), np.uint8).reshape(size[1], size[0], 4)
            texture.release()
        return np.ascontiguousarray(rows[::-1, :, :3])

    def _blit(self, texture: moderngl.Texture, end: int) -> None:
        """Copy from or to a texture; `end` says which: the framebuffer for reading or that for drawing."""
        gl, (width, height) = self._gl, texture.size
        framebuffer = generate(gl, "Framebuffers")
        gl.glBindFramebuffer(end, framebuffer)
        gl.glFramebufferTexture2D(end, _COLOR_ATTACHMENT, _TEXTURE_2D, texture.glo, 0)
        gl.glBlitFramebuffer(0, 0, width, height, 0, 0, width, height, _COLOR_BUFFER, _NEAREST)
        delete(gl, "Framebuffers", framebuffer)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """In the block, the state is GL's initial one as far as copies need it."""
        gl = self._gl
        active, is_scissored = get(gl, _ACTIVE_TEXTURE), gl.glIsEnabled(_SCISSOR_TEST)
        framebuffers = {target: get(gl, name) for target, name in _FRAMEBUFFERS.items()}
        buffers = {target: get(gl, name) for target, name in _BUFFERS.items()}
        layout = {name: get(gl, name) for name in _LAYOUT}
        gl.glActiveTexture(self._unit)
        texture = get(gl, _TEXTURE_2D_BINDING)
        gl.glDisable(_SCISSOR_TEST)
        for target in buffers:
            gl.glBindBuffer(target, 0)
        for name, value in _LAYOUT.items():
            gl.glPixelStorei(name, value)
        try:
            yield
        finally:
            for name, value in layout.items():
                gl.glPixelStorei(name, value)
            for target, value in buffers.items():
                gl.glBindBuffer(target, value)
            for target, value in framebuffers.items():
                gl.glBindFramebuffer(target, value)
            gl.glActiveTexture(self._unit)
            gl.glBindTexture(_TEXTURE_2D, texture)
            gl.glActiveTexture(active)
            if is_scissored:
                gl.glEnable(_SCISSOR_TEST)
