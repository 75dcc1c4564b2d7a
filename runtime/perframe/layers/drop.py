"""Elements dropped at random, as training does; in inference Dropout is its input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perframe.layers.base import Known, layer
from perframe.tensor import DataType
from perframe.tensor.partial import PartialTensor


@dataclass(frozen=True)
class Dropping:
    """An element is kept where what is drawn for it, from 0 to 1, is not below the ratio. Without a seed every run
    draws other numbers. One that `rests` keeps all.
    """

    seed: int | None
    rests: bool = False

    def drawn(self, shape: Sequence[int]) -> Any:
        """float64. A seed drops what it drops in ONNX's own evaluator, which is why it is the Mersenne twister's."""
        return np.random.RandomState(self.seed).uniform(0, 1, tuple(shape))


@layer(alias=True)
def Dropout(
    x: PartialTensor, ratio: PartialTensor | None = None, training_mode: PartialTensor | None = None, *, seed: int = 0
) -> tuple[PartialTensor, PartialTensor]:
    return x, x.with_shape(x.shape, DataType.BOOL)


@Dropout.form
def _dropout(inputs: Sequence[Known], outputs: Sequence[Known], *, seed: int) -> Dropping:
    return Dropping(seed, rests=True)


@layer(pure=False)
def TrainingDropout(
    x: PartialTensor,
    ratio: PartialTensor | None = None,
    training_mode: PartialTensor | None = None,
    *,
    seed: int | None = None,
) -> tuple[PartialTensor, PartialTensor]:
    return x.with_shape(x.shape), x.with_shape(x.shape, DataType.BOOL)


@TrainingDropout.form
def _training_dropout(inputs: Sequence[Known], outputs: Sequence[Known], *, seed: int | None) -> Dropping:
    return Dropping(seed)
