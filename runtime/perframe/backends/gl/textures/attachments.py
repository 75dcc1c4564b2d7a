"""Which textures GL draws into: those attached to a framebuffer of the context."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator
from numbers import Integral
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import moderngl
import numpy as np

from perframe.backends.gl.replay import CommandList
from perframe.errors import InputError
from perframe.graphics.functions import get

log = logging.getLogger("perframe")
_READ_FRAMEBUFFER, _READ_BINDING, _DRAW_BINDING = 0x8CA8, 0x8CAA, 0x8CA6
_COLOR_ATTACHMENT, _DEPTH_ATTACHMENT, _MOST_COLORS = 0x8CE0, 0x8D00, 0x8CDF
_OBJECT_TYPE, _OBJECT_NAME, _TEXTURE = 0x8CD0, 0x8CD1, 0x1702
_BLOCK = 512  # names that native code asks for at once
_OLDEST, _NEWEST = 8192, 2048  # names that are asked for where an application has used more


class DrawnTextures:
    """Tells textures that GL draws (first row at the bottom) from uploaded pictures (first row at the top)."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._drawn: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
        self._uses: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # of textures that were not attached so far
        self._told: WeakSet[Any] = WeakSet()  # textures that hold pictures, and that GL may draw into
        self._blocks: list[CommandList] = []
        self._last = 0  # the newest name of a framebuffer, when this was asked

    def texture_of(self, framebuffer: moderngl.Framebuffer) -> Any:
        """The texture that a framebuffer draws into. Raises InputError if there is none to read."""
        texture = next(iter(framebuffer.color_attachments or ()), None)
        if not isinstance(texture, moderngl.Texture):
            raise InputError(
                "a framebuffer is read through its first color attachment, and here that is not a texture: attach one "
                "(ctx.framebuffer([texture])), or copy the picture with perframe.media.SurfaceTexture"
            )
        self._drawn[texture] = True
        return texture

    def is_drawn(self, texture: Any) -> bool:
        """Whether GL draws into a texture: whether it is attached to a framebuffer, or was when this was asked before.
        A texture filled by `TextureConverter.upload` is a picture; a warning says so once if GL may draw into it, too.

        GL is asked at a texture's uses 1, 2, 4, 8 and so on, because asking takes 0.1 ms.
        """
        if isinstance(texture, Integral):  # a name says nothing of an earlier texture
            return self._is_attached(int(texture))
        owner = getattr(texture, "texture", texture)  # of a layer
        known = self._drawn.get(owner)
        if known or owner in self._told:
            return bool(known)
        uses = self._uses[owner] = self._uses.get(owner, 0) + 1
        found = uses & (uses - 1) == 0 and self._is_attached(owner.glo, uses == 1)
        if found and known is False:
            self._told.add(owner)
            log.warning(
                "a texture that TextureConverter.upload filled is attached to a framebuffer; it is read as a picture, "
                'its first row at the top. If GL has drawn into it since, pass coord_origin="bottom_left"'
            )
        elif found:
            self._drawn[owner] = True
        return found and known is None

    def note_upload(self, texture: Any) -> None:
        """Note that a texture holds an uploaded picture."""
        self._drawn[texture] = False

    def _is_attached(self, name: int, is_new: bool = False) -> bool:
        """Whether one of the application's framebuffers has the texture of this name as an attachment.

        GL has no question for it, so this asks each framebuffer. It binds them for reading and restores the binding.
        For a new texture it makes a name, to learn how far the names go: a steady frame makes none.
        """
        with self._device.current():
            gl = self._device.gl
            if is_new or not self._last:
                self._last = max(self._last, _new_name(gl))
            points = (_DEPTH_ATTACHMENT, *(_COLOR_ATTACHMENT + k for k in range(min(get(gl, _MOST_COLORS), 16))))
            before = get(gl, _READ_BINDING)
            try:
                return any(name in _textures(gl, framebuffer, points) for framebuffer in self._framebuffers(gl))
            finally:
                gl.glBindFramebuffer(_READ_FRAMEBUFFER, before)

    def _framebuffers(self, gl: Any) -> Iterator[int]:
        """The names of the application's framebuffers.

        Drivers count upwards, and some take a name again once it is free. So the names end with a block without one,
        beyond the newest and those that are known. Of an application that makes framebuffers all the time, only the
        oldest names and the newest ones are asked for.
        """
        last = max(get(gl, _READ_BINDING), get(gl, _DRAW_BINDING), self._last, *gl.own_framebuffers)
        for first in range(1, _OLDEST, _BLOCK):
            index = first // _BLOCK
            if index == len(self._blocks):
                self._blocks.append(CommandList(gl, {}))
                for name in range(first, first + _BLOCK):
                    self._blocks[-1].call("glIsFramebuffer", name)
                self._blocks[-1].finish()
            self._blocks[index].run()
            found = np.flatnonzero(self._blocks[index].flags(slice(None)))
            for name in (first + found).tolist():
                if name not in gl.own_framebuffers:
                    yield name
            if not found.size and first + _BLOCK > max(last, _NEWEST):
                return
        for name in range(max(last - _NEWEST, _OLDEST) + 1, last + 1):
            if gl.glIsFramebuffer(name) and name not in gl.own_framebuffers:
                yield name


def _new_name(gl: Any) -> int:
    """A name that no framebuffer has."""
    name = ctypes.c_uint()
    gl.glGenFramebuffers(1, ctypes.byref(name))
    gl.glDeleteFramebuffers(1, ctypes.byref(name))
    return name.value


def _textures(gl: Any, framebuffer: int, points: tuple[int, ...]) -> Iterator[int]:
    """The names of the textures attached to a framebuffer."""
    gl.glBindFramebuffer(_READ_FRAMEBUFFER, framebuffer)
    value = ctypes.c_int()
    for point in points:
        gl.glGetFramebufferAttachmentParameteriv(_READ_FRAMEBUFFER, point, _OBJECT_TYPE, ctypes.byref(value))
        if value.value == _TEXTURE:
            gl.glGetFramebufferAttachmentParameteriv(_READ_FRAMEBUFFER, point, _OBJECT_NAME, ctypes.byref(value))
            yield value.value
