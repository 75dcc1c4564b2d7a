"""Linear algebra on stacks of matrices."""

from __future__ import annotations

from perframe.errors import InferenceError
from perframe.layers.base import layer
from perframe.spec import PartialTensor


@layer()
def Det(x: PartialTensor) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) < 2 or (all(isinstance(dim, int) for dim in x.shape[-2:]) and x.shape[-1] != x.shape[-2]):
        raise InferenceError(f"{x} is no square matrix, and no stack of them")
    return x.with_shape(x.shape[:-2])
