"""Bits read as another dtype."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType

_WIDTHS = {
    **dict.fromkeys((DataType.INT4, DataType.UINT4, DataType.FLOAT4E2M1), 4),
    **dict.fromkeys((DataType.INT2, DataType.UINT2), 2),
}


@dataclass(frozen=True)
class Bits:
    """Elements of `width` bits are read as another dtype of the same width."""

    width: int


def _width(dtype: DataType) -> int:
    return _WIDTHS.get(dtype) or 8 * dtype.numpy.itemsize


@layer()
def BitCast(x: PartialTensor, *, to: DataType) -> PartialTensor:
    if DataType.STRING in (x.dtype, to) or _width(x.dtype) != _width(to):
        raise InferenceError(f"the bits of {x.dtype} cannot be read as {to}: their numbers differ")
    return x.with_shape(x.shape, to)


@BitCast.form
def _bit_cast(inputs: Sequence[Known], outputs: Sequence[Known], *, to: DataType) -> Bits:
    return Bits(_width(to))
