"""Layers that draw random numbers.

With a seed the numbers are the same in every run and on every backend; without one they differ in every run. Element e
of an output comes from two words: Threefry-2x32 of 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2,
3, 2011) of the counter (e, 0), with a key of two words. The upper 24 bits of each word give a float32 from 0 to below
1. A normal number comes from both words, by the method of Box and Muller.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import Natural, Pads
from perframe.ir.declaration import Known, layer
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType

Key = tuple[int, int]


@dataclass(frozen=True)
class Drawing:
    """The numbers to draw. `kind` is one of:

    - "uniform": from `first` on, in an interval of length `second`;
    - "normal": of mean `first` and deviation `second`;
    - "events": 1 with the probability that the input gives, else 0;
    - "classes": classes by rows of logarithms of probabilities.

    If `key` is None, every run draws other numbers.
    """

    kind: str
    key: Key | None
    first: float = 0.0
    second: float = 1.0


def key_of(seed: float | None) -> Key | None:
    """Return the key of a seed. A seed is a float, and all its bits count."""
    if seed is None:
        return None
    low, high = struct.unpack("<II", struct.pack("<d", seed))
    return low, high


_FLOATS = (DataType.FLOAT32, DataType.FLOAT64, DataType.FLOAT16, DataType.BFLOAT16)


def _drawn(shape: DynamicTensorShape | None, dtype: DataType) -> PartialTensor:
    if dtype not in _FLOATS:
        raise InferenceError(f"random numbers are floats, and {dtype} was asked for")
    return PartialTensor(dtype, shape)


@layer(pure=False)
def RandomNormal(
    *,
    shape: Pads,
    dtype: DataType = DataType.FLOAT32,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(DynamicTensorShape(shape), dtype)


@layer(pure=False)
def RandomUniform(
    *,
    shape: Pads,
    dtype: DataType = DataType.FLOAT32,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(DynamicTensorShape(shape), dtype)


@layer(pure=False)
def RandomNormalLike(
    x: PartialTensor,
    *,
    dtype: DataType | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(x.shape, dtype or x.dtype)


@layer(pure=False)
def RandomUniformLike(
    x: PartialTensor,
    *,
    dtype: DataType | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> PartialTensor:
    return _drawn(x.shape, dtype or x.dtype)


@layer(pure=False)
def Bernoulli(x: PartialTensor, *, dtype: DataType | None = None, seed: float | None = None) -> PartialTensor:
    return x.with_shape(x.shape, dtype or x.dtype)


@layer(pure=False)
def Multinomial(
    x: PartialTensor, *, dtype: DataType = DataType.INT32, sample_size: Natural = 1, seed: float | None = None
) -> PartialTensor:
    if dtype not in (DataType.INT32, DataType.INT64):
        raise InferenceError(f"Multinomial draws indices, and {dtype} was asked for")
    if x.shape is not None and len(x.shape) != 2:
        raise InferenceError(f"Multinomial takes logarithms of shape (batch, classes), not {x}")
    return x.with_shape((x.shape[0] if x.shape is not None else None, sample_size), dtype)


def _form(kind: str, first: str = "", second: str = "") -> Callable[..., Drawing]:
    def form(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Drawing:
        numbers = [attributes[name] for name in (first, second) if name]
        if kind == "uniform":
            numbers[1] -= numbers[0]
        return Drawing(kind, key_of(attributes["seed"]), *numbers)

    return form


for declared in (RandomNormal, RandomNormalLike):
    declared.form(_form("normal", "mean", "scale"))
for declared in (RandomUniform, RandomUniformLike):
    declared.form(_form("uniform", "low", "high"))
Bernoulli.form(_form("events"))
Multinomial.form(_form("classes"))
