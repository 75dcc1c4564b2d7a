"""Deformable convolution on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.lowering.casting import accumulator
from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.deform_conv import Deformed


def compute(layer: LayerLike, form: Deformed, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Go tap by tap: sample all channels at the tap's positions plus offsets, and multiply by the tap's weights."""
    x, w, offset, b, mask = inputs
    conv, shared = form.convolution, form.offset_groups
    window, dims, wide = conv.window, len(conv.size), accumulator(x.dtype)
    planes = x.astype(wide).reshape(conv.batch, shared, conv.channels // shared, *conv.size)
    taps = math.prod(window.kernel)
    offset = offset.astype(wide).reshape(conv.batch, shared, taps, dims, *conv.output)
    if mask is not None:
        mask = mask.astype(wide).reshape(conv.batch, shared, taps, *conv.output)
    groups, per_group, depth = conv.groups, conv.outputs // conv.groups, conv.channels // conv.groups
    weights = w.astype(wide).reshape(groups, per_group, depth, taps)
    result = np.zeros((conv.batch, groups, per_group, *conv.output), wide)
    for index, tap in enumerate(itertools.product(*(range(k) for k in window.kernel))):
        coordinates = [
            np.arange(conv.output[d]).reshape(-1, *(1,) * (dims - d - 1)) * window.strides[d]
            - window.begin[d]
            + tap[d] * window.dilations[d]
            + offset[:, :, index, d]
            for d in range(dims)
        ]
        values = _sampled(planes, coordinates)
        if mask is not None:
            values = values * mask[:, :, index, None]
        values = values.reshape(conv.batch, groups, depth, *conv.output)
        result += np.einsum("ngc...,goc->ngo...", values, weights[..., index], optimize=True)
    result = result.reshape(conv.batch, conv.outputs, *conv.output)
    return [result if b is None else result + b.astype(wide).reshape(-1, *(1,) * dims)]


def _sampled(planes: Any, coordinates: Sequence[Any]) -> Any:
    """Interpolate at `coordinates`, an array (batch, group, *output) for each dim. Elements outside count as
    0. Return (batch, group, channel, *output).
    """
    size = planes.shape[3:]
    outer = np.ix_(*(np.arange(n) for n in planes.shape[:3]))
    low = [np.floor(at) for at in coordinates]
    total: Any = 0
    for corner in itertools.product((0, 1), repeat=len(size)):
        weight, inside, at = np.ones_like(coordinates[0]), np.full(coordinates[0].shape, True), []
        for bit, coordinate, first, extent in zip(corner, coordinates, low, size, strict=True):
            part = coordinate - first
            index = first + bit
            weight = weight * (part if bit else 1 - part)
            inside &= (index >= 0) & (index < extent)
            at.append(np.clip(np.nan_to_num(index), 0, extent - 1).astype(np.int64)[:, :, None])
        chosen = [part.reshape(*part.shape, *(1,) * len(size)) for part in outer]
        total = total + np.where(inside, weight, 0)[:, :, None] * planes[(*chosen, *at)]
    return total
