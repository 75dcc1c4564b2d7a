"""Pictures as inputs of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InputError
from perframe.media.picture import PICTURES, on_white, open_picture, upright_of
from perframe.tensor import DataType

Array = NDArray[Any]


class ModelInput(Protocol):
    """An input of a model."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dtype(self) -> DataType:
        """Its element type."""

    @property
    def shape(self) -> Iterable[int | str | None] | None:
        """Its dims: numbers, names, or None for an unknown dim. None if the rank is unknown."""


@dataclass(frozen=True)
class Normalization:
    """How a picture's values become those of an input: (value * scale - mean) / std. Values are 0 to 1 before.

    `mean` and `std` are one number, or one for each channel.
    """

    scale: float = 1.0
    mean: Sequence[float] = (0.0,)
    std: Sequence[float] = (1.0,)

    def apply(self, values: Array, axis: int) -> Array:
        """Normalize float values, whose channels lie along `axis`. Raises InputError for another number of channels."""
        channels = values.shape[axis]
        for what, given in (("--mean", self.mean), ("--std", self.std)):
            if len(given) not in (1, channels):
                raise InputError(f"{what} has {len(given)} numbers, and a picture has {channels} channels")
        shape = [-1 if index == axis % values.ndim else 1 for index in range(values.ndim)]
        mean, std = (
            np.broadcast_to(np.array(given, np.float32), channels).reshape(shape) for given in (self.mean, self.std)
        )
        made: Array = (values * np.float32(self.scale) - mean) / std
        return made


def parse_numbers(text: str, option: str) -> list[float]:
    """Parse "0.5" or "0.5,0.4,0.3". Raises InputError."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        wanted = "a number, or one for each channel such as 0.5,0.4,0.3"
        raise InputError(f"{option} takes {wanted}, not {text!r}") from None
    if not np.isfinite(numbers).all() or (option == "--std" and 0 in numbers):
        raise InputError(f"{option} takes finite numbers{' other than 0' * (option == '--std')}, not {text!r}")
    return numbers


def picture_array(
    path: Path, wanted: ModelInput, dims: Sequence[int | None], normalization: Normalization | None = None
) -> Array:
    """Read a picture in the layout of the dims, with the channels (1, 3 or 4) last or first, and normalize it for an
    input of floats. An unknown height or width is the picture's own. Raises InputError.
    """
    from PIL import Image, UnidentifiedImageError

    modes = {1: "L", 3: "RGB", 4: "RGBA"}
    channels_first = len(dims) >= 3 and dims[-1] not in modes
    rows = [*dims[-2:], dims[-3]] if channels_first else list(dims[-3:])
    if len(rows) != 3 or rows[2] not in modes or any(dim not in (1, None) for dim in dims[:-3]):
        raise InputError(f"input {wanted.name!r} has shape {wanted.shape}, which is not that of one picture")
    try:
        with open_picture(path) as file:
            picture = upright_of(file)
            if rows[2] != 4 and picture.has_transparency_data:
                picture = Image.fromarray(on_white(np.asarray(picture.convert("RGBA"))))
            size = (rows[1] or picture.width, rows[0] or picture.height)
            pixels = np.asarray(picture.convert(modes[rows[2]]).resize(size, Image.Resampling.BILINEAR))
    except UnidentifiedImageError as error:
        raise InputError(f"the picture {path} cannot be read: it is not a {', '.join(PICTURES)}") from error
    values = pixels.reshape(size[1], size[0], rows[2])
    if channels_first:
        values = values.transpose(2, 0, 1)
    scaled = values / 255 if wanted.dtype.is_float else values
    if wanted.dtype.is_float and normalization is not None:
        scaled = normalization.apply(scaled, 0 if channels_first else -1)
    return np.ascontiguousarray(scaled.reshape((1,) * (len(dims) - 3) + values.shape), wanted.dtype.numpy)
