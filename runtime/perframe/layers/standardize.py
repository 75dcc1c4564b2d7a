"""Normalizations by mean and variance: of rows (layer), of channels (instance) and of groups of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Positive
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.geometry import Ints, broadcast_strides, collapse
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Standardization:
    """Each row of `size` elements loses its mean (with `centered`) and is divided by sqrt(variance + epsilon).

    Then scales and biases of shape `factors[i]` are applied, broadcast to `view`, a shape of x.
    """

    rows: int
    size: int
    centered: bool
    epsilon: float
    view: Ints
    factors: tuple[Ints | None, ...]
    stash: DataType = DataType.FLOAT32

    def period(self, index: int) -> tuple[int, int] | None:
        """Return (inner, count) so that element o reads factor o // inner % count; None if no such pair exists."""
        shape = self.factors[index]
        if shape is None:
            return 1, 1
        dims, (steps,) = collapse(self.view, (broadcast_strides(shape, self.view),))
        walked = [axis for axis, step in enumerate(steps) if step]
        if not walked:  # one factor for all elements
            return math.prod(dims), 1
        if len(walked) > 1 or steps[walked[0]] != 1:
            return None
        return math.prod(dims[walked[0] + 1 :]), dims[walked[0]]


def _stashed(stash_type: DataType) -> DataType:
    if not stash_type.is_float:
        raise InferenceError(f"stash_type {stash_type} is not a floating point type")
    return stash_type


def _rows(
    inputs: Sequence[Known | None], axis: int, epsilon: float, centered: bool, stash: DataType
) -> Standardization:
    x, *factors = inputs
    assert x is not None
    at = normalize_axis(axis, len(x.shape))
    shapes = tuple(None if value is None else tuple(value.shape) for value in factors)
    for shape in shapes:
        broadcast_strides(shape or (), x.shape)  # raises
    return Standardization(
        math.prod(x.shape[:at]), math.prod(x.shape[at:]), centered, epsilon, tuple(x.shape), shapes, stash
    )


@layer()
def LayerNormalization(
    x: PartialTensor,
    scale: PartialTensor,
    bias: PartialTensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: DataType = DataType.FLOAT32,
) -> tuple[PartialTensor, ...]:
    stash = _stashed(stash_type)
    if x.shape is None:
        return x.with_shape(None), x.with_shape(None, stash), x.with_shape(None, stash)
    at = normalize_axis(axis, len(x.shape))
    numbers = x.with_shape((*x.shape[:at], *(1,) * (len(x.shape) - at)), stash)
    return x.with_shape(x.shape), numbers, numbers


@LayerNormalization.form
def _layer_normalization(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, axis: int, epsilon: float, stash_type: DataType
) -> Standardization:
    return _rows(inputs, axis, epsilon, True, stash_type)


@layer()
def RMSNormalization(
    x: PartialTensor,
    scale: PartialTensor,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: DataType = DataType.FLOAT32,
) -> PartialTensor:
    _stashed(stash_type)
    if x.shape is not None:
        normalize_axis(axis, len(x.shape))
    return x.with_shape(x.shape, scale.dtype)


@RMSNormalization.form
def _rms_normalization(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, axis: int, epsilon: float, stash_type: DataType
) -> Standardization:
    return _rows(inputs, axis, epsilon, False, stash_type)


def _channels(x: PartialTensor, *factors: PartialTensor, also: int = -1) -> PartialTensor:
    """Return x. Raises InferenceError unless each factor has one number for each channel, or `also` numbers."""
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) < 2:
        raise InferenceError(f"{x} has no channels")
    for value in factors:
        if value.shape is not None and len(value.shape) != 1:
            raise InferenceError(f"scale or bias is {value}, and a vector is expected")
        count, channels = (value.shape or (None,))[0], x.shape[1]
        if isinstance(count, int) and isinstance(channels, int) and count not in (channels, also):
            raise InferenceError(f"{count} scales or biases do not fit the {channels} channels of {x}")
    return PartialTensor(x.dtype, DynamicTensorShape(x.shape))


def _grouped(inputs: Sequence[Known], groups: int, epsilon: float, stash: DataType) -> Standardization:
    x, *factors = inputs
    batch, channels = x.shape[:2]
    inner = math.prod(x.shape[2:])
    each = channels // groups if groups else 0
    shapes = tuple((groups, each, 1) if tuple(value.shape) == (channels,) else (groups, 1, 1) for value in factors)
    return Standardization(batch * groups, each * inner, True, epsilon, (batch, groups, each, inner), shapes, stash)


@layer()
def InstanceNormalization(
    x: PartialTensor, scale: PartialTensor, bias: PartialTensor, *, epsilon: float = 1e-5
) -> PartialTensor:
    return _channels(x, scale, bias)


@InstanceNormalization.form
def _instance_normalization(inputs: Sequence[Known], outputs: Sequence[Known], *, epsilon: float) -> Standardization:
    return _grouped(inputs, inputs[0].shape[1], epsilon, DataType.FLOAT32)


@layer()
def GroupNormalization(
    x: PartialTensor,
    scale: PartialTensor,
    bias: PartialTensor,
    *,
    num_groups: Positive,
    epsilon: float = 1e-5,
    stash_type: DataType = DataType.FLOAT32,
) -> PartialTensor:
    _stashed(stash_type)
    y = _channels(x, scale, bias, also=num_groups)
    channels = None if y.shape is None else y.shape[1]
    if isinstance(channels, int) and channels % num_groups:
        raise InferenceError(f"the channels of {x} do not make {num_groups} groups")
    return y


@GroupNormalization.form
def _group_normalization(
    inputs: Sequence[Known], outputs: Sequence[Known], *, num_groups: int, epsilon: float, stash_type: DataType
) -> Standardization:
    return _grouped(inputs, num_groups, epsilon, stash_type)
