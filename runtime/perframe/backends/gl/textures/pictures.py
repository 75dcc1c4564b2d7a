"""The caller's textures: their sizes, channels and mipmaps, and new ones."""

from __future__ import annotations

import ctypes
from numbers import Integral
from typing import Any

import moderngl

from perframe.backends.gl.context.device import Device
from perframe.backends.gl.context.state import TEXTURE_2D_ARRAY, TEXTURE_2D_BINDING
from perframe.backends.gl.textures.steps import TextureLayer, name_of
from perframe.errors import ClosedError, InputError
from perframe.graphics.functions import get

_TEXTURE_2D, _TEXTURE0, _WIDTH, _HEIGHT, _RED_TYPE = 0x0DE1, 0x84C0, 0x1000, 0x1001, 0x8C10
_INTEGERS = (0x1404, 0x1405)
_DRAWABLE = (1, 2, 4, 4)  # the components of a texture with room for one to four: drivers need not draw into three


def check_object(device: Device, thing: Any) -> None:
    """Raise ClosedError for a released texture or framebuffer, and InputError for one of another context."""
    kind = type(thing).__name__
    if isinstance(thing.mglo, moderngl.InvalidObject):
        raise ClosedError(f"this moderngl.{kind} was released")
    if thing.ctx is not device.ctx:
        raise InputError(
            f"this moderngl.{kind} belongs to another moderngl.Context than this object: give both the "
            "same ctx; if two contexts share their textures, pass the texture's GL name, texture.glo"
        )


def size_of(device: Device, texture: Any) -> tuple[int, int]:
    """Width and height of the caller's texture, a moderngl object or a GL name. Raises InputError, ClosedError."""
    if isinstance(texture, (moderngl.Texture, TextureLayer)):
        texture = texture.texture if isinstance(texture, TextureLayer) else texture
        check_object(device, texture)
        samples = getattr(texture, "samples", 0)
        if texture.dtype[0] in "iu" or samples:
            kind = f"{texture.dtype} texture" + (f" of {samples} samples" if samples else "")
            raise InputError(f"a {kind} holds no picture: its values must be float, or 0..1 in bytes")
        return int(texture.width), int(texture.height)
    if not isinstance(texture, Integral) or isinstance(texture, bool):
        advice = ""
        if isinstance(texture, moderngl.Framebuffer):
            advice = ": pass framebuffer.color_attachments[0]"
        elif hasattr(texture, "__array__") or hasattr(texture, "__array_interface__"):
            advice = "; of a picture in memory pass the array, numpy.asarray(picture)"
        raise InputError(f"a texture is a moderngl.Texture or a GL name, not {type(texture).__name__}{advice}")
    value, found, texture = ctypes.c_int(), [], int(texture)
    with device.using() as gl:
        gl.glActiveTexture(_TEXTURE0)
        gl.glBindTexture(_TEXTURE_2D, 0)
        if gl.glIsTexture(texture):
            gl.glBindTexture(_TEXTURE_2D, texture)
            if get(gl, TEXTURE_2D_BINDING) != texture:
                gl.glGetError()  # we caused this error: the texture is not a 2D one
        for name in (_WIDTH, _HEIGHT, _RED_TYPE):
            gl.glGetTexLevelParameteriv(_TEXTURE_2D, 0, name, ctypes.byref(value))
            found.append(value.value)
    if not found[0] or not found[1] or found[2] in _INTEGERS:
        raise InputError(f"GL name {texture} is not a 2D texture with float pixels, or 8-bit pixels for 0..1")
    return found[0], found[1]


def channels_of(texture: Any) -> int:
    """The channels of the caller's texture; four for a GL name."""
    held = texture.texture if isinstance(texture, TextureLayer) else texture
    return 4 if isinstance(held, Integral) else int(held.components)


def mipmap_levels(device: Device, texture: Any, size: tuple[int, int]) -> int:
    """The number of levels of the texture's mipmap. Raises InputError if only the first is there."""
    value, levels = ctypes.c_int(), 1
    with device.using() as gl:
        gl.glActiveTexture(_TEXTURE0)
        target = TEXTURE_2D_ARRAY if isinstance(texture, TextureLayer) else _TEXTURE_2D
        gl.glBindTexture(target, name_of(texture))
        while max(size) >> levels:
            gl.glGetTexLevelParameteriv(target, levels, _WIDTH, ctypes.byref(value))
            if value.value != max(size[0] >> levels, 1):
                break
            levels += 1
    if levels == 1 < max(size):
        raise InputError("this texture has no mipmap: call texture.build_mipmaps(), or resample it by 'antialias'")
    return levels


def new_texture(device: Device, size: tuple[int, int], channels: int, dtype: str) -> moderngl.Texture:
    """Make a texture for the caller, with room for the channels. `dtype` is moderngl's name."""
    with device.using():
        return device.ctx.texture(size, _DRAWABLE[channels - 1], dtype=dtype)
