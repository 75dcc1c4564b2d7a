"""The largest element of each cell of a region."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Extents
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Bounded
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Cells(Bounded):
    """Scaled regions of pictures of (channels, *size) are cut into (channels, *output) cells of whole elements."""

    scale: float
    channels: int
    size: Ints
    output: Ints
    pictures: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices of pictures; each region begins with one."""
        return (Bounds(1, (self.pictures, None, None, None, None), from_end=False),)


@layer()
def MaxRoiPool(
    x: PartialTensor, rois: PartialTensor, *, pooled_shape: Extents, spatial_scale: float = 1.0
) -> PartialTensor:
    if len(pooled_shape) != 2:
        raise InferenceError(f"pooled_shape is height and width, not {tuple(pooled_shape)}")
    if x.shape is not None and len(x.shape) != 4:
        raise InferenceError(f"regions are pooled from (batch, channels, height, width), not from {x}")
    if rois.shape is not None and not rois.shape.may_be((rois.shape[0] if rois.shape else None, 5)):
        raise InferenceError(f"regions are rows of (picture, x1, y1, x2, y2), not {rois}")
    channels = None if x.shape is None else x.shape[1]
    return x.with_shape((None if rois.shape is None else rois.shape[0], channels, *pooled_shape))


@MaxRoiPool.form
def _max_roi_pool(
    inputs: Sequence[Known], outputs: Sequence[Known], *, pooled_shape: Sequence[int], spatial_scale: float
) -> Cells:
    shape = inputs[0].shape
    return Cells(spatial_scale, shape[1], tuple(shape[2:]), tuple(pooled_shape), shape[0])
