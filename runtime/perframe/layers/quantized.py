"""Layers that compute with quantized numbers directly. A number x stands for (x - zero point) * scale.

The sums of a product are int32. With scales they become floats. With a zero point of the output they are
quantized again: sums * (x_scale * w_scale), rounded to integers with halves to even, plus the zero point, and
clamped. `w_scale`, if present, is the scale of the weights, times that of the output if the output is quantized too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.ir.declaration import Known, attributes_of, layer
from perframe.ir.form import Counted
from perframe.ir.sizes.partial import PartialTensor
from perframe.layers.conv import Conv, Convolution
from perframe.layers.matmul import MatMul, Product
from perframe.layers.quantize import WHOLE_RANGES
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class QuantizedProduct(Counted):
    """A product of integers. Results that are quantized again are clamped to `low` and `high`; None stands for the
    end of the dtype's range.
    """

    product: Convolution | Product
    low: int | None
    high: int | None

    def limits(self, dtype: DataType) -> tuple[int, int]:
        """Return the least and the largest quantized result."""
        least, most = WHOLE_RANGES[dtype]
        return least if self.low is None else self.low, most if self.high is None else self.high

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return self.product.operations


def _result(
    output: PartialTensor | tuple[PartialTensor, ...], scale: PartialTensor | None, zero: PartialTensor | None
) -> PartialTensor:
    assert isinstance(output, PartialTensor)
    dtype = zero.dtype if zero is not None else DataType.INT32 if scale is None else DataType.FLOAT32
    return output.with_shape(output.shape, dtype)


@layer(spatial=("x",))
@attributes_of(Conv.infer)
def QuantizedConv(
    x: PartialTensor,
    w: PartialTensor,
    bias: PartialTensor | None = None,
    x_zero: PartialTensor | None = None,
    w_zero: PartialTensor | None = None,
    x_scale: PartialTensor | None = None,
    w_scale: PartialTensor | None = None,
    y_zero: PartialTensor | None = None,
    *,
    low: int | None = None,
    high: int | None = None,
    **convolution: Any,
) -> PartialTensor:
    """A bias of int32 is added to the sums; a bias of float32 is added before the rounding."""
    return _result(Conv.infer(x, w, bias, **convolution), w_scale, y_zero)


@QuantizedConv.form
def _conv(
    inputs: Sequence[Known], outputs: Sequence[Known], *, low: int | None, high: int | None, **attributes: Any
) -> QuantizedProduct:
    return QuantizedProduct(Conv.canonical(inputs[:2], outputs, attributes), low, high)


@layer()
def QuantizedMatMul(
    x: PartialTensor,
    w: PartialTensor,
    bias: PartialTensor | None = None,
    x_zero: PartialTensor | None = None,
    w_zero: PartialTensor | None = None,
    x_scale: PartialTensor | None = None,
    w_scale: PartialTensor | None = None,
    y_zero: PartialTensor | None = None,
    *,
    low: int | None = None,
    high: int | None = None,
) -> PartialTensor:
    """A product of matrices, like QuantizedConv. Bias, zero point and scale of w are those of its columns."""
    return _result(MatMul.infer(x, w), w_scale, y_zero)


@QuantizedMatMul.form
def _matmul(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, low: int | None, high: int | None
) -> QuantizedProduct:
    return QuantizedProduct(MatMul.canonical(inputs[:2], outputs, {}), low, high)
