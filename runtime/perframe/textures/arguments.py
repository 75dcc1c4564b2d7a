"""The arguments of a TextureConverter, checked."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.textures.transform import TextureTransform

Transforms = TextureTransform | Sequence[TextureTransform] | None


def checked_transform(given: Any) -> TextureTransform:
    """A transform; the usual one for None. Raises InputError."""
    if given is not None and not isinstance(given, TextureTransform):
        raise InputError(f"transform is a perframe.TextureTransform, not {type(given).__name__}")
    return given or TextureTransform()


def content_of(picture: Any) -> Any:
    """The pixels or planes of a Picture; anything else unchanged. Raises InputError for a path."""
    if isinstance(picture, (str, os.PathLike)):
        name = repr(str(picture))
        raise InputError(f"{name} is a path, not a picture: read it with next(iter(pf.media.open_source({name})))")
    return getattr(picture, "content", picture)


def checked_targets(targets: Sequence[Any]) -> Sequence[Any]:
    """The textures and arrays to draw into, unchanged. Raises InputError for a path."""
    for target in targets:
        if isinstance(target, (str, os.PathLike)):
            raise InputError(
                f"{str(target)!r} is a path, not a texture or an array: draw into an array of height x width x 3, "
                "uint8, and write it with pf.media.open_sink"
            )
    return targets


@functools.lru_cache(maxsize=256)
def from_bottom(how: TextureTransform) -> TextureTransform:
    """The transform for a picture whose first row is the bottom one."""
    return how.replace(coord_origin="bottom_left")


def checked_transforms(given: Any, count: int) -> list[TextureTransform]:
    """A transform for each picture of a batch."""
    if not count:
        raise InputError("a batch has at least one picture, and this list has none")
    if not isinstance(given, Sequence):
        return [checked_transform(given)] * count
    if len(given) != count:
        raise InputError(f"{count} pictures need one transform, or {count} of them, not {len(given)}")
    hows = [checked_transform(how) for how in given]
    if len({how.layout for how in hows}) > 1:
        raise InputError("the pictures of a batch have the same tensor layout")
    return hows


def checked_area(viewport: Any) -> tuple[int, int, int, int]:
    """The caller's viewport as four ints. Raises InputError."""
    whole = isinstance(viewport, Sequence) and all(isinstance(number, (int, np.integer)) for number in viewport)
    if not whole or len(viewport) != 4 or viewport[2] < 0 or viewport[3] < 0:
        raise InputError(f"a viewport is x, y, width and height in whole pixels, not {viewport!r}")
    x, y, width, height = map(int, viewport)
    return x, y, width, height


def checked_size(given: Any) -> tuple[int, int]:
    """A width and a height. Raises InputError."""
    whole = isinstance(given, Sequence) and all(isinstance(number, (int, np.integer)) for number in given)
    if not whole or len(given) != 2 or min(given) < 1:
        raise InputError(f"size is a width and a height in pixels, not {given!r}")
    return int(given[0]), int(given[1])
