"""Layers that make a tensor from positions: diagonals, triangles, one-hot codes, windows of signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Diagonal:
    """Matrices of (rows, columns), and the diagonal that is `offset` columns right of the main one."""

    rows: int
    columns: int
    offset: int


@dataclass(frozen=True)
class Triangle(Diagonal):
    """The elements on and above a diagonal with `upper`, otherwise those on and below it."""

    upper: bool


@dataclass(frozen=True)
class Coding:
    """Indices of (outer, inner) become (outer, depth, inner)."""

    outer: int
    depth: int
    inner: int


@layer()
def EyeLike(x: PartialTensor, *, dtype: DataType | None = None, k: int = 0) -> PartialTensor:
    if x.shape is not None and len(x.shape) == 1:  # ONNX asks for two dims; its reference takes one
        return x.with_shape((*x.shape, *x.shape), dtype)
    if x.shape is not None and len(x.shape) != 2:
        raise InferenceError(f"{x} is not a matrix")
    return x.with_shape(x.shape or (None, None), dtype)


@EyeLike.form
def _eye_like(inputs: Sequence[Known], outputs: Sequence[Known], *, dtype: DataType | None, k: int) -> Diagonal:
    rows, columns = outputs[0].shape
    return Diagonal(rows, columns, k)


@layer(host=("k",))
def Trilu(x: PartialTensor, k: PartialTensor | None = None, *, upper: Flag = 1) -> PartialTensor:
    if x.shape is not None and len(x.shape) < 2:
        raise InferenceError(f"{x} is not a matrix or a stack of matrices")
    return x.with_shape(x.shape)


@Trilu.form
def _trilu(inputs: Sequence[Known | None], outputs: Sequence[Known], *, upper: int) -> Triangle:
    rows, columns = outputs[0].shape[-2:]
    _, k = inputs
    offset = 0 if k is None or k.value is None else int(k.value.ravel()[0])
    return Triangle(rows, columns, max(-rows, min(columns, offset)), bool(upper))


@layer(host=("depth",))
def OneHot(indices: PartialTensor, depth: PartialTensor, values: PartialTensor, *, axis: int = -1) -> PartialTensor:
    if indices.shape is None:
        return values.with_shape(None)
    at = normalize_axis(axis, len(indices.shape) + 1)
    size = _count("depth", depth)
    return values.with_shape((*indices.shape[:at], size, *indices.shape[at:]))


@OneHot.form
def _one_hot(inputs: Sequence[Known], outputs: Sequence[Known], *, axis: int) -> Coding:
    shape = outputs[0].shape
    at = normalize_axis(axis, len(shape))
    return Coding(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]))


def _count(name: str, number: PartialTensor) -> Dim:
    """Return the size that a number gives a dim; None if it is unknown. Raises InferenceError if it is not a size."""
    known: tuple[Dim, ...] | None = listed(number) if number.value is None else number.ints()  # it may be a float
    if known is None:
        return None
    if len(known) != 1 or (isinstance(known[0], int) and known[0] < 0):
        raise InferenceError(f"{name} is {known}, and one number that is not negative is expected")
    return known[0]


@dataclass(frozen=True)
class Cosines:
    """A sum of cosines of 0, 1, ... turns, weighted by `factors` of alternating signs.

    A `periodic` one leaves out its last element, which is its first.
    """

    factors: tuple[float, ...]
    periodic: bool


def _window(size: PartialTensor, dtype: DataType) -> PartialTensor:
    return PartialTensor(dtype, DynamicTensorShape((_count("size", size),)))


@layer(host=("size",))
def HannWindow(
    size: PartialTensor, *, periodic: Flag = 1, output_datatype: DataType = DataType.FLOAT32
) -> PartialTensor:
    return _window(size, output_datatype)


@layer(host=("size",))
def HammingWindow(
    size: PartialTensor, *, periodic: Flag = 1, output_datatype: DataType = DataType.FLOAT32
) -> PartialTensor:
    return _window(size, output_datatype)


@layer(host=("size",))
def BlackmanWindow(
    size: PartialTensor, *, periodic: Flag = 1, output_datatype: DataType = DataType.FLOAT32
) -> PartialTensor:
    return _window(size, output_datatype)


def _cosines(*factors: float) -> Callable[..., Cosines]:
    return lambda inputs, outputs, *, periodic, output_datatype: Cosines(factors, bool(periodic))


HannWindow.form(_cosines(0.5, 0.5))
HammingWindow.form(_cosines(25 / 46, 21 / 46))
BlackmanWindow.form(_cosines(0.42, 0.5, 0.08))
