"""Elements dropped at random, as training does; in inference Dropout is its input (move.py)."""

from __future__ import annotations

from perframe.layers.base import layer
from perframe.spec import PartialTensor
from perframe.tensor import DataType


@layer(pure=False)
def TrainingDropout(
    x: PartialTensor,
    ratio: PartialTensor | None = None,
    training_mode: PartialTensor | None = None,
    *,
    seed: int | None = None,
) -> tuple[PartialTensor, PartialTensor]:
    return x.with_shape(x.shape), x.with_shape(x.shape, DataType.BOOL)
