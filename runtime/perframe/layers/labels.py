"""Labels: a table maps keys to values, both of any type."""

from __future__ import annotations

from typing import Any

from perframe.errors import InferenceError
from perframe.ir.declaration import layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor import DataType


@layer()
def LabelEncoder(x: PartialTensor, *, keys: Any, values: Any, default: Any) -> PartialTensor:
    if keys.ndim != 1 or keys.shape != values.shape:
        raise InferenceError(f"keys of shape {keys.shape} and values of shape {values.shape} do not make pairs")
    if DataType.of(keys.dtype) is not x.dtype:
        raise InferenceError(f"the keys are {DataType.of(keys.dtype)}, and the input is {x}")
    return x.with_shape(x.shape, DataType.of(values.dtype))
