"""Regions of pictures are resampled to one size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from perframe.errors import InferenceError
from perframe.ir.attributes import Natural, Positive
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Bounded
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Regions(Bounded):
    """Regions of pictures of (channels, *size) become (channels, *output).

    An element is the mean or the largest of samples: `samples` on each side, or one for each input element if `samples`
    is 0. With `half_pixel` the edge of a picture is at -0.5.
    """

    mode: str
    half_pixel: bool
    samples: int
    scale: float
    channels: int
    size: Ints
    output: Ints
    count: int
    pictures: int

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices of pictures."""
        return (Bounds(2, (self.pictures,), from_end=False),)


@layer()
def RoiAlign(
    x: PartialTensor,
    rois: PartialTensor,
    batch_indices: PartialTensor,
    *,
    coordinate_transformation_mode: Literal["half_pixel", "output_half_pixel"] = "half_pixel",
    mode: Literal["avg", "max"] = "avg",
    output_height: Positive = 1,
    output_width: Positive = 1,
    sampling_ratio: Natural = 0,
    spatial_scale: float = 1.0,
) -> PartialTensor:
    for value, rank in ((x, 4), (rois, 2), (batch_indices, 1)):
        if value.shape is not None and len(value.shape) != rank:
            raise InferenceError(f"RoiAlign takes pictures of 4 dims, rois of 2 and indices of 1, not {value}")
    if rois.shape is not None and not rois.shape.may_be((*(batch_indices.shape or (None,))[:1], 4)):
        raise InferenceError(f"rois {rois} are not 4 numbers for each of the batch_indices {batch_indices}")
    known = [value.shape[0] for value in (rois, batch_indices) if value.shape is not None]
    count = next((dim for dim in known if isinstance(dim, int)), known[0] if known else None)
    return x.with_shape((count, None if x.shape is None else x.shape[1], output_height, output_width))


@RoiAlign.form
def _roi_align(
    inputs: Sequence[Known],
    outputs: Sequence[Known],
    *,
    coordinate_transformation_mode: str,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Regions:
    shape = inputs[0].shape
    half = coordinate_transformation_mode == "half_pixel"
    output, count = (output_height, output_width), outputs[0].shape[0]
    return Regions(mode, half, sampling_ratio, spatial_scale, shape[1], tuple(shape[2:]), output, count, shape[0])
