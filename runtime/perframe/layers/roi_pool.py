"""The largest element of each cell of a region."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.layers.base import layer
from perframe.spec import PartialTensor


@layer()
def MaxRoiPool(
    x: PartialTensor, rois: PartialTensor, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> PartialTensor:
    if len(pooled_shape) != 2:
        raise InferenceError(f"pooled_shape is height and width, not {tuple(pooled_shape)}")
    if x.shape is not None and len(x.shape) != 4:
        raise InferenceError(f"regions are pooled from (batch, channels, height, width), not from {x}")
    channels = None if x.shape is None else x.shape[1]
    return x.with_shape((None if rois.shape is None else rois.shape[0], channels, *pooled_shape))
