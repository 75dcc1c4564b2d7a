"""Regions of pictures, resampled to one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer
from perframe.layers.geometry import Ints
from perframe.spec import PartialTensor


@dataclass(frozen=True)
class Regions:
    """Regions of pictures of (channels, *size) become (channels, *output).

    An element is the mean or the largest of samples, `samples` a side, or as many as there are elements where that is
    0; `half_pixel` says that -0.5 is the edge.
    """

    mode: str
    half_pixel: bool
    samples: int
    scale: float
    channels: int
    size: Ints
    output: Ints
    count: int


@layer()
def RoiAlign(
    x: PartialTensor,
    rois: PartialTensor,
    batch_indices: PartialTensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> PartialTensor:
    if mode not in ("avg", "max") or coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise InferenceError(f"RoiAlign has no mode {mode!r} with {coordinate_transformation_mode!r}")
    for value, rank in ((x, 4), (rois, 2), (batch_indices, 1)):
        if value.shape is not None and len(value.shape) != rank:
            raise InferenceError(f"RoiAlign takes pictures of 4 dims, rois of 2 and indices of 1, not {value}")
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
    return Regions(mode, half, sampling_ratio, spatial_scale, shape[1], tuple(shape[2:]), output, count)
