"""A picture of a source, and pictures in files."""

from __future__ import annotations

import glob
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.graphics.yuv import Pixels as Pixels
from perframe.graphics.yuv import YuvFrame
from perframe.safety.wording import arranged_picture

Size = tuple[int, int]

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
VIDEOS = (".mp4", ".mkv", ".mov", ".avi", ".webm")
_LONGEST_SIDE = 8192  # the largest texture side that every GPU supports


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, its place among the pictures of its source, and its time."""

    content: Pixels | YuvFrame
    """The pixels, or the planes of a frame of video, which a TextureConverter uploads unchanged."""
    index: int
    """0 for the first picture."""
    time: float
    """Seconds from the beginning of the source."""
    aspect: Fraction = Fraction(1)
    """A displayed pixel's width by its height. Some films have pixels that are not square."""

    @property
    def pixels(self) -> Pixels:
        """H x W x 3 of uint8, the picture's top row first, in displayed colors (sRGB).

        For a frame of video, the first use converts it.
        """
        return self.content.pixels if isinstance(self.content, YuvFrame) else self.content

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        content = self.content
        return content.size if isinstance(content, YuvFrame) else (content.shape[1], content.shape[0])


def expanded(path: str | os.PathLike[str]) -> Path:
    """A path whose `~` is the user's folder. If the system knows no such folder, the `~` stays."""
    return Path(os.path.expanduser(path))


def is_name(given: object) -> bool:
    """Whether something is a name or a path that is not empty: an empty one would be the current folder."""
    return isinstance(given, (str, os.PathLike)) and bool(str(given))


def is_size(given: object) -> bool:
    """Whether something is a width and a height in whole pixels."""
    if not isinstance(given, Sequence) or len(given) != 2:
        return False
    return all(isinstance(side, Integral) and int(side) > 0 for side in given)


def covering(size: Size, enough: Size | None) -> Size:
    """The size to which a picture is scaled down so that it still covers `enough`; its own without."""
    scale = 1.0 if enough is None else max(enough[0] / size[0], enough[1] / size[1])
    scale = min(1.0, scale, _LONGEST_SIDE / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


@contextmanager
def open_picture(path: Path) -> Iterator[Any]:
    """A picture file as a Pillow image, of one of the formats that the pages name.

    Raises InputError if it cannot be read, also within the block, and PIL.UnidentifiedImageError if it is not a
    picture.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=_FORMATS) as image:
            yield image
    except UnidentifiedImageError:
        raise
    except (OSError, ValueError, IndexError, EOFError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow's
        if isinstance(error, InputError):
            raise
        raise InputError(f"the picture {str(path)!r} cannot be read: {error}") from error


def read_picture(path: Path, enough: Size | None = None) -> Pixels:
    """Read a picture file: upright, on white where it is transparent, scaled down to cover `enough`.

    Raises as `open_picture` does.
    """
    with open_picture(path) as image:
        return pixels_of(image, enough)


def pixels_of(image: Any, enough: Size | None = None) -> Pixels:
    """The pixels of a Pillow image: upright, on white where it is transparent, scaled down to cover `enough`."""
    from PIL import Image

    upright = upright_of(image)
    if upright.has_transparency_data:
        flat = Image.fromarray(on_white(np.asarray(upright.convert("RGBA"))))
    else:
        flat = upright.convert("RGB")
    return np.array(flat.resize(covering(flat.size, enough), Image.Resampling.LANCZOS))


def upright_of(image: Any) -> Any:
    """A Pillow image with 8 bits a channel, turned and mirrored as its file says."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(image)
    if not upright.mode.startswith("I"):
        return upright
    values = np.asarray(upright).astype(np.int64).clip(0, 0xFFFF)  # 16 bits of gray, which Pillow would clip to 8
    grey = ((values * 255 + 0x7FFF) // 0xFFFF).astype(np.uint8)
    clear = upright.info.get("transparency")
    if clear is None:
        return Image.fromarray(grey)
    return Image.merge(
        "LA", [Image.fromarray(grey), Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8))]
    )


def on_white(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> Pixels:
    """RGBA pixels over white, as RGB."""
    alpha = pixels[..., 3:].astype(np.uint16)
    made: Pixels = ((pixels[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)
    return made


def pictures_in(folder: Path) -> list[Path]:
    """The picture files of a folder in the order of their names, in which 2 comes before 10. Raises InputError."""
    try:
        found = [path for path in folder.iterdir() if path.suffix.lower() in PICTURES and path.name[0] != "."]
    except OSError as error:
        raise InputError(f"the folder {str(folder)!r} cannot be read: {error}") from error
    if not found:
        raise InputError(f"the folder {str(folder)!r} has no pictures: {', '.join(PICTURES)}")
    return sorted(found, key=lambda path: (_numbers_as_numbers(path.name), path.name))


def _numbers_as_numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a path beside, and put the file in its place when it is whole and on the disk.

    Raises InputError if the system cannot write it.
    """
    if not path.parent.is_dir():
        raise InputError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    beside = path_beside(path)
    try:
        write(beside)
        put_in_place(beside, path)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}") from error
    finally:
        with suppress(OSError):  # it has its place, or was never made
            beside.unlink()


_STALE = 3600.0  # seconds
_BESIDE = re.compile(r"\.perframe-[0-9a-f]{8}\.")


def path_beside(path: Path) -> Path:
    """A new path beside a file, under which it can be written before it is put in its place."""
    return path.with_name(f".perframe-{secrets.token_hex(4)}.{path.name}")


def remove_stale(path: Path) -> None:
    """Remove what processes that were killed long ago have left beside a file."""
    for other in path.parent.glob(f".perframe-????????.{glob.escape(path.name)}"):
        with suppress(OSError):
            if _BESIDE.match(other.name) and time.time() - other.stat().st_mtime > _STALE:
                other.unlink()


def remove_unfinished(folder: Path) -> None:
    """Remove the files of a folder that a killed process has left under such paths."""
    if folder.is_dir():
        for path in folder.iterdir():
            if _BESIDE.match(path.name):
                path.unlink()


def put_in_place(beside: Path, path: Path) -> None:
    """Put a finished file in its place when it is on the disk."""
    with open(beside, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(beside, path)


def save_picture(pixels: Pixels, path: Path) -> None:
    """Write a picture file of the suffix's format, whole or not at all. Raises InputError."""
    from PIL import Image

    quality: dict[str, Any] = {"quality": 95} if path.suffix.lower() in (".jpg", ".jpeg", ".webp") else {}
    write_whole(path, lambda beside: Image.fromarray(pixels).save(beside, **quality))


def checked(pixels: Any, where: str) -> Pixels:
    """A picture as an array. Raises InputError for anything else."""
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        is_array = isinstance(pixels, np.ndarray)
        found = f"{pixels.dtype} of shape {pixels.shape}" if is_array else type(pixels).__name__
        advice = _advice(pixels) if is_array else ""
        raise InputError(f"{where}: a picture is H x W x 3 of uint8, and this is {found}{advice}")
    if not pixels.size:
        raise InputError(f"{where}: the picture has no pixels; its shape is {pixels.shape}")
    return pixels


def _advice(array: np.ndarray[Any, Any]) -> str:
    """How to make a picture, H x W x 3 of uint8, of an array that is nearly one."""
    picture, said = arranged_picture(array)
    if picture.ndim == 2:
        said = f"np.stack([{said}] * 3, -1)"
    elif picture.ndim == 3 and picture.shape[2] == 1:
        said = f"np.repeat({said}, 3, -1)"
    elif picture.ndim == 3 and picture.shape[2] == 4:
        said += "[..., :3]"
    elif picture.ndim != 3 or picture.shape[2] != 3:
        return ""
    if picture.dtype.kind == "f":
        return f"; for values of 0 to 1, use np.uint8({said}.clip(0, 1) * 255)"
    if picture.dtype.kind == "b":
        return f"; use np.uint8({said}) * 255"
    if picture.dtype.kind not in "iu":
        return ""
    return f"; use {said}" if picture.dtype == np.uint8 else f"; for values of 0 to 255, use np.uint8({said})"
