"""Crops of one picture by many regions, whose numbers may lie on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.tensor import Array, DataType, Tensor
from perframe.textures.arrays import sample
from perframe.textures.layout import BATCH, Dims
from perframe.textures.regions import ROTATED
from perframe.textures.transform import TextureTransform

AFFINE = (2, 3)
_RESAMPLING = ("linear", "nearest")
_POINT = 1e-6  # pixels: the size of a region without one, which shows the pixel at its center


def checked_regions(given: Any) -> Tensor:
    """Regions as a tensor of float32. Raises InputError."""
    try:
        regions: Tensor = given if isinstance(given, Tensor) else Tensor(np.asarray(given, np.float32))
    except (TypeError, ValueError):
        raise InputError(f"regions are numbers, not {given!r:.80}") from None
    shape = tuple(regions.shape)
    if not shape or not shape[0] or shape[1:] not in ((ROTATED,), AFFINE) or regions.dtype is not DataType.FLOAT32:
        raise InputError(
            "regions are float32, n x 5 (the center's x and y, width, height, an angle in radians) or n x 2 x 3 "
            f"(matrices from the unit square to pixels), not {regions.dtype} {regions.shape}"
        )
    return regions


def check_crop(how: TextureTransform) -> None:
    """Raise InputError for settings that crops do not have."""
    if how.region is not None or how.letterbox is not None:
        raise InputError("crop() takes the regions by themselves: the transform has no region and no letterbox")
    if how.resample not in _RESAMPLING:
        raise InputError(f'crop() samples by {" or ".join(_RESAMPLING)}, not by "{how.resample}"')


def crop_array(picture: Array, regions: Array, how: TextureTransform, dims: Dims, dtype: DataType) -> Array:
    """The crops of an H x W x C array, as a batch. A region of size 0, such as a free row of `follow_regions`, shows
    the pixel at its center. Raises InputError.
    """
    items = []
    if regions.shape[1:] == (ROTATED,):
        regions = regions.copy()
        regions[:, 2:4][regions[:, 2:4] == 0] = _POINT
    for index, region in enumerate(regions):
        try:
            placed = how.replace(region=region)
        except InputError as error:
            raise InputError(f"regions[{index}]: {error}") from None
        items.append(sample(picture, placed, dims, dtype))
    return np.stack(items, how.layout.index(BATCH))
