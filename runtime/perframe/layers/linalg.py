"""Linear algebra on stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Determinants:
    """The determinants of `count` matrices of (size, size)."""

    count: int
    size: int


@layer()
def Det(x: PartialTensor) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    if len(x.shape) < 2 or (all(isinstance(dim, int) for dim in x.shape[-2:]) and x.shape[-1] != x.shape[-2]):
        raise InferenceError(f"{x} is not a square matrix or a stack of square matrices")
    return x.with_shape(x.shape[:-2])


@Det.form
def _det(inputs: Sequence[Known], outputs: Sequence[Known]) -> Determinants:
    shape = inputs[0].shape
    return Determinants(math.prod(shape[:-2]), shape[-1])
