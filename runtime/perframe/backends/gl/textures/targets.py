"""The caller's pixels that GL draws into: a framebuffer, a texture or a layer of one, or what is bound."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import moderngl

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.state import DRAW_BINDING, VIEWPORT
from perframe.backends.gl.texels import SHEETS
from perframe.backends.gl.textures import pictures
from perframe.backends.gl.textures.steps import TextureLayer, name_of
from perframe.errors import InputError
from perframe.graphics.functions import get, get_four
from perframe.graphics.state_tables import FRAMEBUFFER_SRGB

_TEXTURE_2D, _DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _COMPLETE = 0x0DE1, 0x8CA9, 0x8CE0, 0x8CD5
_DRAW_BUFFER, _NO_CHANNEL = 0x8825, (False,) * 4


class DrawTarget:
    """A framebuffer to draw into, with one draw buffer of the caller's. Textures are attached to one of ours."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._bound, self._encodes = 0, False

    def viewport(self, framebuffer: Any) -> tuple[int, int, int, int]:
        """The viewport of the caller's framebuffer; without one, the current viewport."""
        if framebuffer is not None:
            x, y, width, height = self._framebuffer(framebuffer).viewport
            return x, y, width, height
        with self._device.current():
            return get_four(self._device.gl, VIEWPORT)

    def choose(self, gl: Any, target: Any, encodes: bool = True) -> None:
        """Choose a texture, a framebuffer, or (None) the bound framebuffer for the next draw. Raises InputError.

        `encodes` says that an sRGB texture takes linear colors.
        """
        self._encodes = False
        if target is None:
            self._bound = get(gl, DRAW_BINDING)
        elif isinstance(target, (moderngl.Texture, TextureLayer, Integral)):
            self._bound, self._encodes = self._attach(gl, target), encodes
        else:
            self._bound = self._framebuffer(target).glo

    def begin(self, gl: Any, viewport: Sequence[int], written: Sequence[bool] = (True,) * 4) -> dict[int, Any]:
        """Bind the target. Colors are encoded for an sRGB texture. `written` says which of the four channels may
        change. Returns what `end` restores.
        """
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self._bound)
        gl.glViewport(*viewport)
        gl.glBindVertexArray(self._device.vertex_array)
        if self._encodes:
            gl.glEnable(FRAMEBUFFER_SRGB)
        channels = {0: written, **dict.fromkeys(self._other_draw_buffers(gl), _NO_CHANNEL)}
        masked = {index: each for index, each in channels.items() if not all(each)}
        for index, each in masked.items():
            gl.glColorMaski(index, *each)
        return masked

    def end(self, gl: Any, masked: dict[int, Any]) -> None:
        """Restore what `begin` has changed."""
        for index in masked:
            gl.glColorMaski(index, 1, 1, 1, 1)
        gl.glDisable(FRAMEBUFFER_SRGB)
        if self._bound == self._device.framebuffer:
            gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, 0, 0)

    def _other_draw_buffers(self, gl: Any) -> list[int]:
        """The draw buffers after the first of the caller's framebuffer: our programs write none of them."""
        if self._bound in (0, self._device.framebuffer):
            return []
        return [index for index in range(1, SHEETS) if get(gl, _DRAW_BUFFER + index)]

    def _attach(self, gl: Any, texture: Any) -> int:
        """Attach the caller's texture to our framebuffer, and return the framebuffer's name."""
        gl.glBindFramebuffer(_DRAW_FRAMEBUFFER, self._device.framebuffer)
        if isinstance(texture, TextureLayer):
            gl.glFramebufferTextureLayer(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, texture.glo, 0, texture.layer)
        else:
            gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, name_of(texture), 0)
        if gl.glCheckFramebufferStatus(_DRAW_FRAMEBUFFER) != _COMPLETE:
            gl.glFramebufferTexture2D(_DRAW_FRAMEBUFFER, _COLOR_ATTACHMENT, _TEXTURE_2D, 0, 0)
            raise InputError(f"this driver cannot draw into {texture}: use a texture of one, two or four channels")
        return self._device.framebuffer

    def _framebuffer(self, target: Any) -> moderngl.Framebuffer:
        if not isinstance(target, moderngl.Framebuffer):
            raise InputError(f"tensors are drawn into a moderngl.Framebuffer, not {type(target).__name__}")
        pictures.check_object(self._device, target)
        return target
