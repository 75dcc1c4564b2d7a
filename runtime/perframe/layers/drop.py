"""Layers that drop elements at random, for training. In inference Dropout returns its input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import specialized
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Dropping:
    """For each element a number from 0 to 1 is drawn; the element is kept if the number is not below the ratio.

    Without a seed every run draws other numbers. With `rests` all elements are kept.
    """

    seed: int | None
    rests: bool = False

    def drawn(self, shape: Sequence[int]) -> Any:
        """Draw float64 numbers. The Mersenne twister drops the same elements for a seed as ONNX's own evaluator."""
        return np.random.RandomState(self.seed).uniform(0, 1, tuple(map(specialized, shape)))


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
