"""Deformable convolution: offsets move the taps, and a mask weighs them (Zhu et al., Deformable ConvNets v2, 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Extents, Pads, Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.layers.conv import Conv, Convolution
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Deformed:
    """A convolution with offsets (batch, offset_groups, taps, dims, *output) and a mask of that shape without dims."""

    convolution: Convolution
    offset_groups: int


@layer()
def DeformConv(
    x: PartialTensor,
    w: PartialTensor,
    offset: PartialTensor,
    b: PartialTensor | None = None,
    mask: PartialTensor | None = None,
    *,
    dilations: Extents | None = None,
    group: Positive = 1,
    kernel_shape: Extents | None = None,
    offset_group: Positive = 1,
    pads: Pads | None = None,
    strides: Extents | None = None,
) -> PartialTensor:
    known = {"dilations": dilations, "group": group, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    (result,) = Conv.outputs_for([x, w], known)
    channels, outputs = (None if value.shape is None else value.shape[at] for value, at in ((x, 1), (w, 0)))
    if b is not None and b.shape is not None and not b.shape.may_be((outputs,)):
        raise InferenceError(f"the bias is {b}, and one number for each of {outputs} output channels is expected")
    if isinstance(channels, int) and channels % offset_group:
        raise InferenceError(f"{channels} channels do not make {offset_group} groups with offsets")
    return result


@DeformConv.form
def _deform_conv(
    inputs: Sequence[Known | None],
    outputs: Sequence[Known],
    *,
    dilations: Extents | None,
    group: int,
    kernel_shape: Extents | None,
    offset_group: int,
    pads: Pads | None,
    strides: Extents | None,
) -> Deformed:
    known = {"strides": strides, "dilations": dilations, "pads": pads, "auto_pad": "NOTSET", "group": group}
    convolution: Convolution = Conv.canonical(inputs[:2], outputs, known)
    _, _, offset, _, mask = inputs
    assert offset is not None
    taps, dims = math.prod(convolution.window.kernel), len(convolution.size)
    wanted = (convolution.batch, offset_group * taps * dims, *convolution.output)
    if tuple(offset.shape) != wanted:
        raise InferenceError(f"offsets of {offset.shape} do not fit: {wanted} expected")
    wanted = (convolution.batch, offset_group * taps, *convolution.output)
    if mask is not None and tuple(mask.shape) != wanted:
        raise InferenceError(f"a mask of {mask.shape} does not fit: {wanted} expected")
    return Deformed(convolution, offset_group)
