"""Quantization: a small number q stands for x = (q - zero point) * scale, about.

A scale belongs to a tensor, to an index of an axis, or to a block of an axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag, Natural
from perframe.ir.declaration import Attributes, Known, layer, normalize_axis
from perframe.ir.geometry import Ints
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType

WHOLE_RANGES = {
    DataType.UINT8: (0, 255),
    DataType.INT8: (-128, 127),
    DataType.UINT16: (0, 65535),
    DataType.INT16: (-32768, 32767),
    DataType.UINT4: (0, 15),
    DataType.INT4: (-8, 7),
    DataType.UINT2: (0, 3),
    DataType.INT2: (-2, 1),
}
FLOATS = (
    DataType.FLOAT8E4M3FN,
    DataType.FLOAT8E4M3FNUZ,
    DataType.FLOAT8E5M2,
    DataType.FLOAT8E5M2FNUZ,
    DataType.FLOAT4E2M1,
)
_DIVISIBLE = (DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT64)


@dataclass(frozen=True)
class Scaling:
    """Data of (outer, size, inner) is divided by its scales (`quantizes`), or multiplied with them.

    The scale of element (o, s, i) is at o * steps[0] + s // block * steps[1] + i * steps[2]. `precision` is the dtype
    of the division or product. With `saturate` a number that does not fit a small float becomes its largest number.
    """

    quantizes: bool
    outer: int
    size: int
    inner: int
    block: int
    steps: Ints
    precision: DataType
    saturate: bool = True


@dataclass(frozen=True)
class OwnRange:
    """A tensor is quantized by its own range, which contains 0: the outputs are bytes, scale and zero point."""


def _wide(dtype: DataType) -> DataType:
    """Return the dtype of the arithmetic with scales of `dtype`."""
    return dtype if dtype in _DIVISIBLE else DataType.FLOAT32


def _scaling(
    quantizes: bool,
    inputs: Sequence[Known | None],
    attributes: Attributes,
    precision: DataType,
    saturate: bool = True,
) -> Scaling:
    x, scale, zero = inputs
    assert x is not None and scale is not None
    block_size = attributes["block_size"]
    shape, scales = x.shape, tuple(scale.shape)
    if zero is not None and math.prod(zero.shape) != math.prod(scales):
        raise InferenceError(f"zero points of {zero.shape} do not fit scales of {scales}")
    if math.prod(scales) == 1 and not block_size:
        return Scaling(quantizes, 1, math.prod(shape), 1, 1, (0, 0, 0), precision, saturate)
    at = normalize_axis(attributes["axis"], len(shape))
    outer, size, inner = math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])
    if not block_size:
        if scales != (size,):
            raise InferenceError(f"scales of {scales} do not fit axis {at} of {shape}")
        return Scaling(quantizes, outer, size, inner, 1, (0, 1, 0), precision, saturate)
    blocks = -(-size // block_size)
    if scales != (*shape[:at], blocks, *shape[at + 1 :]):
        raise InferenceError(f"scales of {scales} do not fit blocks of {block_size} on axis {at} of {shape}")
    return Scaling(quantizes, outer, size, inner, block_size, (blocks * inner, inner, 1), precision, saturate)


@layer()
def QuantizeLinear(
    x: PartialTensor,
    scale: PartialTensor,
    zero_point: PartialTensor | None = None,
    *,
    axis: int = 1,
    saturate: Flag = 1,
    block_size: Natural = 0,
    output_dtype: DataType | None = None,
    precision: DataType | None = None,
) -> PartialTensor:
    dtype = output_dtype or DataType.UINT8
    if zero_point is not None:
        if output_dtype is not None and output_dtype is not zero_point.dtype:
            raise InferenceError(f"output_dtype is {output_dtype}, but the zero point is {zero_point.dtype}")
        dtype = zero_point.dtype
    if dtype not in WHOLE_RANGES and dtype not in FLOATS:
        raise InferenceError(f"numbers cannot be quantized to {dtype}")
    return x.with_shape(x.shape, dtype)


@QuantizeLinear.form
def _quantize(inputs: Sequence[Known | None], outputs: Sequence[Known], **attributes: Any) -> Scaling:
    precision = attributes["precision"]
    if precision is None:  # then the dtype of the scale, if division has that dtype
        assert inputs[1] is not None
        precision = _wide(inputs[1].dtype)
    return _scaling(True, inputs, attributes, precision, bool(attributes["saturate"]))


@layer()
def DequantizeLinear(
    x: PartialTensor,
    scale: PartialTensor,
    zero_point: PartialTensor | None = None,
    *,
    axis: int = 1,
    block_size: Natural = 0,
    output_dtype: DataType | None = None,
) -> PartialTensor:
    return x.with_shape(x.shape, output_dtype or _wide(scale.dtype))


@DequantizeLinear.form
def _dequantize(inputs: Sequence[Known | None], outputs: Sequence[Known], **attributes: Any) -> Scaling:
    return _scaling(False, inputs, attributes, outputs[0].dtype)


@layer()
def DynamicQuantizeLinear(x: PartialTensor) -> tuple[PartialTensor, PartialTensor, PartialTensor]:
    return x.with_shape(x.shape, DataType.UINT8), x.with_shape((), DataType.FLOAT32), x.with_shape((), DataType.UINT8)


@DynamicQuantizeLinear.form
def _dynamic(inputs: Sequence[Known], outputs: Sequence[Known]) -> OwnRange:
    return OwnRange()
