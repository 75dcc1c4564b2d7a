"""Pictures in host memory, drawn into framebuffers and read from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import ClosedError, InputError, MissingFolderError
from perframe.graphics import GLContext, GLFramebuffer

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
FORMATS = {"": "PNG", ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP"}  # by suffix


def fit(pixels: np.ndarray[Any, Any], size: tuple[int, int]) -> Pixels:
    """Stretch an H×W×3 or H×W×4 uint8 picture to `size` by nearest pixels, and return its colors as H×W×3.

    Raises InputError for any other array.
    """
    if not isinstance(pixels, np.ndarray):
        raise InputError(f"a picture is an array, H×W×3 or H×W×4 of uint8, not {type(pixels).__name__}")
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.size == 0:
        raise InputError(f"a picture is H×W×3 or H×W×4 of uint8; this is {pixels.dtype} of shape {pixels.shape}")
    width, height = size
    picture = pixels[:, :, :3]
    if picture.shape[:2] != (height, width):
        rows = np.arange(height) * picture.shape[0] // height
        columns = np.arange(width) * picture.shape[1] // width
        picture = picture[rows[:, None], columns]
    return picture


def upright(pixels: Pixels) -> Pixels:
    """An H×W×3 picture as the opaque RGBA rows of a texture, the bottom row first."""
    rgba = np.full((*pixels.shape[:2], 4), 255, np.uint8)
    rgba[:, :, :3] = pixels[::-1]
    return rgba


def is_released(ctx: GLContext) -> bool:
    """Whether somebody has released the context."""
    import moderngl

    return isinstance(ctx.mglo, moderngl.InvalidObject)


def require_context(ctx: GLContext) -> None:
    """Raise ClosedError if somebody has released the context."""
    if is_released(ctx):
        raise ClosedError(
            "the app's GL context was released by somebody else, and nothing can be drawn any more: leave it to "
            "App.release(), and make a new app"
        )


def draw(ctx: GLContext, framebuffer: GLFramebuffer, pixels: Pixels) -> None:
    """Draw a picture into a framebuffer, from its lower left corner."""
    require_context(ctx)
    height, width, _ = pixels.shape
    texture = ctx.texture((width, height), 4, upright(pixels))
    with _bound(ctx, ctx.framebuffer([texture])) as source:
        ctx.copy_framebuffer(framebuffer, source)
    texture.release()


def read_screen(ctx: GLContext, screen: GLFramebuffer, size: tuple[int, int]) -> Pixels:
    """Return a window's colors, top row first. Waits for the GPU.

    They are read from a copy, because moderngl reads a window's own framebuffer at the size that it had first.
    """
    buffer = ctx.renderbuffer(size)
    with _bound(ctx, ctx.framebuffer([buffer])) as copy:
        ctx.copy_framebuffer(copy, screen)
        pixels = read(copy)
    buffer.release()
    return pixels


@contextmanager
def _bound(ctx: GLContext, framebuffer: GLFramebuffer) -> Iterator[GLFramebuffer]:
    """Bind a framebuffer in the block, and release it at the end. While a window's own framebuffer is bound, moderngl
    cannot copy below GL 4.5.
    """
    before = ctx.fbo
    framebuffer.use()
    try:
        yield framebuffer
    finally:
        before.use()
        framebuffer.release()


def read(framebuffer: GLFramebuffer) -> Pixels:
    """Return a framebuffer's colors, top row first. Waits for the GPU."""
    width, height = framebuffer.size
    rows = np.frombuffer(framebuffer.read(components=3, alignment=1), np.uint8).reshape(height, width, 3)
    return np.ascontiguousarray(rows[::-1])


def as_path(path: Any, what: str) -> Path:
    """A path that the caller gives. Raises InputError for anything else."""
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"{what} is a path, and got {path!r}") from None


def picture_format(path: Path) -> str:
    """The format that a picture file's suffix names; PNG without a suffix. Raises InputError for another suffix."""
    found = FORMATS.get(path.suffix.lower())
    if found is None:
        known = ", ".join(filter(None, FORMATS))
        raise InputError(f"{path.name!r} is not the name of a picture: its suffix must be one of {known}")
    return found


def write_picture(pixels: Any, path: Path) -> None:
    """Write a picture file of the suffix's format, which appears only when it is complete. Raises InputError."""
    from PIL import Image

    part, kind = path.parent / f".{path.name}.{os.getpid()}.part", picture_format(path)
    quality = {"quality": 95} if kind in ("JPEG", "WEBP") else {}
    try:
        Image.fromarray(pixels).save(part, format=kind, **quality)
        part.replace(path)
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        wrong = MissingFolderError if missing else InputError
        reason = f"there is no folder {str(path.parent)!r}" if missing else error
        raise wrong(f"the screenshot {str(path)!r} cannot be written: {reason}") from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
