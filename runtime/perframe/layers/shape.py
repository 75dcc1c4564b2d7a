"""Layers that make small tensors from shapes and numbers.

The plan evaluates them. Kernels make those that are as long as a size of a trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.ir.declaration import Known, layer
from perframe.ir.shape_arithmetic import MAX_VALUES, listed
from perframe.ir.sizes.partial import (
    Dim,
    DynamicTensorShape,
    PartialTensor,
    dim_of,
    dim_product,
    number_of,
)
from perframe.ir.sizes.size import at_least, is_symbolic
from perframe.safety.records import dataclass
from perframe.tensor import DataType

_INT64 = DataType.INT64


@layer()
def Shape(x: PartialTensor, *, start: int = 0, end: int | None = None) -> PartialTensor:
    if x.shape is None:
        return PartialTensor(_INT64, DynamicTensorShape((None,)))
    return PartialTensor.of_values(_INT64, map(number_of, x.shape[start:end]))


@layer()
def Size(x: PartialTensor) -> PartialTensor:
    size = np.array(None if x.shape is None else number_of(dim_product(*x.shape)), object)
    return PartialTensor.of_values(_INT64, size)


Shape.reads_values = Size.reads_values = False


@layer(host=("shape",), followed=("shape",))
def ConstantOfShape(shape: PartialTensor, *, value: object = None) -> PartialTensor:
    filler = np.zeros((), np.float32) if value is None else np.asarray(value).reshape(())
    dtype = DataType.of(filler.dtype)
    wanted = listed(shape)
    made = PartialTensor(dtype, None if wanted is None else DynamicTensorShape(wanted))
    size = None if made.shape is None else made.shape.size
    if made.shape is None or size is None or is_symbolic(size) or size > MAX_VALUES:
        return made
    return PartialTensor.of(np.full(made.shape.to_shape(), filler))


def _number(scalar: PartialTensor) -> Any:
    """Return a single number or size; None if it is unknown."""
    return None if scalar.values is None else scalar.values.item()


def _length(first: Any, last: Any, step: Any) -> Dim:
    """Return the length of a range of which some numbers are symbolic."""
    if not all(isinstance(number, int) or is_symbolic(number) for number in (first, last)) or type(step) is not int:
        return None
    return dim_of(at_least(-((first - last) // step), 0))


@layer(host=("start", "limit", "delta"), followed=("limit",))
def Range(start: PartialTensor, limit: PartialTensor, delta: PartialTensor) -> PartialTensor:
    first, last, step = map(_number, (start, limit, delta))
    if first is None or last is None or step is None:
        return PartialTensor(start.dtype, DynamicTensorShape((None,)))
    if any(map(is_symbolic, (first, last, step))):
        return PartialTensor(start.dtype, DynamicTensorShape((_length(first, last, step),)))
    count = max(0, math.ceil((last - first) / step))
    if start.dtype.is_float or count > MAX_VALUES:
        return PartialTensor(start.dtype, DynamicTensorShape((count,)))
    return PartialTensor.of(np.arange(count, dtype=start.dtype.numpy) * step + first)


@dataclass(frozen=True)
class MadeNumbers:
    """The numbers of a tensor: one `value`, or the ints `first`, `first + step`, ..., or those of `listed`."""

    value: float | int | bool | None = None
    first: int = 0
    step: int | None = None
    listed: tuple[int, ...] | None = None


@ConstantOfShape.form
def _filled(inputs: Sequence[Known], outputs: Sequence[Known], *, value: object) -> MadeNumbers:
    return MadeNumbers(0.0 if value is None else np.asarray(value).reshape(-1)[0].item())


@Range.form
def _range(inputs: Sequence[Known], outputs: Sequence[Known]) -> MadeNumbers:
    first, _, step = (None if x.dtype not in (DataType.INT32, DataType.INT64) else x.ints() for x in inputs)
    return MadeNumbers() if first is None or step is None else MadeNumbers(first=first[0], step=step[0])


@layer()
def SizeValues(sizes: PartialTensor) -> PartialTensor:
    return sizes.with_shape(sizes.shape)


@SizeValues.form
def _listed(inputs: Sequence[Known], outputs: Sequence[Known]) -> MadeNumbers:
    return MadeNumbers(listed=inputs[0].ints())
