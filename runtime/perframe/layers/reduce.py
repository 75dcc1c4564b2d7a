"""Reductions: a formula before, one of five ways to combine elements, and a formula after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.ir.attributes import Flag
from perframe.ir.declaration import Declaration, Known, layer, normalize_axes, register
from perframe.ir.form import Followed
from perframe.ir.geometry import Ints, View, collapse, row_major
from perframe.ir.shape_arithmetic import Values, each, numbers_of
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor
from perframe.ir.vocabulary import abs, log, sqrt
from perframe.safety.records import dataclass


def identity(x: Any) -> Any:
    """Return x unchanged."""
    return x


def _square(x: Any) -> Any:
    return x * x


def _absolute(x: Any) -> Any:
    return abs(x)


def keep(total: Any, count: Any) -> Any:
    """Return the total unchanged."""
    return total


def average(total: Any, count: Any) -> Any:
    """Return the mean."""
    return total / count


def _root(total: Any, count: Any) -> Any:
    return sqrt(total)


def _logarithm(total: Any, count: Any) -> Any:
    return log(total)


_COMBINED: dict[str, np.ufunc] = {
    "sum": np.add,
    "product": np.multiply,
    "largest": np.maximum,
    "smallest": np.minimum,
}


@dataclass(frozen=True)
class Reduction(Followed):
    """Each output element combines `prepare(x)` over the reduced dims: their sum, product, largest value, ...

    `kept` and `reduced` are collapsed dims with the input's strides; `finish(total, count)` gives the result.
    """

    combine: str  # sum, product, largest, smallest, log_sum_exp
    prepare: Callable[..., Any]
    finish: Callable[..., Any]
    kept: Ints
    kept_strides: Ints
    reduced: Ints
    reduced_strides: Ints
    axes: Ints

    @property
    def count(self) -> int:
        """The number of input elements that one output element combines."""
        return math.prod(self.reduced)

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of plain sums, products and extremes of integers; unknown for other reductions."""
        x, combine = inputs[0], _COMBINED.get(self.combine)
        assert x is not None
        plain = self.prepare is identity and self.finish is keep and not x.dtype.is_float
        if combine is None or not plain or not self.count:
            nothing = combine.identity if combine is not None and plain else None
            return np.full(math.prod(self.kept), nothing, object)
        table = View(self.kept + self.reduced, self.kept_strides + self.reduced_strides).of(numbers_of(x))
        columns = list(table.reshape(-1, self.count).T)
        return each(lambda *row: combine.reduce(row), columns, [x.dtype.numpy] * self.count, output.dtype)


def _infer(
    x: PartialTensor, axes: PartialTensor | None = None, *, keepdims: Flag = 1, noop_with_empty_axes: Flag = 0
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    chosen = _axes(len(x.shape), None if axes is None else axes.ints(), noop_with_empty_axes)
    if axes is not None and axes.ints() is None:
        return x.with_shape((None,) * len(x.shape) if keepdims else None)
    dims: list[Dim] = [1 if axis in chosen else dim for axis, dim in enumerate(x.shape)]
    return x.with_shape(dims if keepdims else [dim for axis, dim in enumerate(dims) if axis not in chosen])


def _axes(rank: int, axes: Sequence[int] | None, noop: int) -> Ints:
    if not axes:
        return () if noop else tuple(range(rank))
    return normalize_axes(axes, rank)


def _reduction(
    shape: Sequence[int], axes: Ints, combine: str, prepare: Callable[..., Any], finish: Callable[..., Any]
) -> Reduction:
    strides = row_major(shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape, (kept_strides,) = collapse([shape[a] for a in kept], [tuple(strides[a] for a in kept)])
    red_shape, (red_strides,) = collapse([shape[a] for a in axes], [tuple(strides[a] for a in axes)])
    return Reduction(combine, prepare, finish, kept_shape, kept_strides, red_shape, red_strides, axes)


def _declare(
    name: str, combine: str, prepare: Callable[..., Any] = identity, finish: Callable[..., Any] = keep
) -> None:
    entry = register(Declaration(name, "reduce", _infer, host=frozenset({"axes"})))

    @entry.form
    def form(
        inputs: Sequence[Known | None], outputs: Sequence[Known], *, keepdims: int, noop_with_empty_axes: int
    ) -> Reduction:
        x, axes = inputs
        assert x is not None
        given = None if axes is None or axes.value is None else [int(v) for v in axes.value.ravel()]
        return _reduction(x.shape, _axes(len(x.shape), given, noop_with_empty_axes), combine, prepare, finish)


_declare("ReduceSum", "sum")
_declare("ReduceMean", "sum", finish=average)
_declare("ReduceMax", "largest")
_declare("ReduceMin", "smallest")
_declare("ReduceProd", "product")
_declare("ReduceSumSquare", "sum", _square)
_declare("ReduceL1", "sum", _absolute)
_declare("ReduceL2", "sum", _square, _root)
_declare("ReduceLogSum", "sum", finish=_logarithm)
_declare("ReduceLogSumExp", "log_sum_exp")


def _pool_shape(x: PartialTensor) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    return PartialTensor(x.dtype, DynamicTensorShape((*x.shape[:2], *(1,) * (len(x.shape) - 2))))


@layer()
def GlobalAveragePool(x: PartialTensor) -> PartialTensor:
    return _pool_shape(x)


@GlobalAveragePool.form
def _global_average(inputs: Sequence[Known], outputs: Sequence[Known]) -> Reduction:
    return _reduction(inputs[0].shape, tuple(range(2, len(inputs[0].shape))), "sum", identity, average)


@layer()
def GlobalMaxPool(x: PartialTensor) -> PartialTensor:
    return _pool_shape(x)


@GlobalMaxPool.form
def _global_largest(inputs: Sequence[Known], outputs: Sequence[Known]) -> Reduction:
    return _reduction(inputs[0].shape, tuple(range(2, len(inputs[0].shape))), "largest", identity, keep)
