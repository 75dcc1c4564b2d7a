"""Reductions along dims, and the largest and smallest elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from perframe.errors import InputError
from perframe.functional.calls import (
    apply,
    apply_all,
    axes_of,
    axis_of,
    cast,
    function,
    in_floats,
    ints,
    known_size,
    number,
)
from perframe.functional.elementwise import clamp, div, eq_zero, maximum, minimum, mul, pow_, sub
from perframe.functional.moving import ravel, reshape
from perframe.functional.promotion import category
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.tensor import DataType

DType = DataType | str | None
Dims = int | Sequence[int] | None


class ValuesAndIndices(NamedTuple):
    """Elements that were selected along a dim, and where they were (int64)."""

    values: FunctionalTensor
    indices: FunctionalTensor


def _reduce(op: str, x: FunctionalTensor, dim: Dims, keepdim: bool) -> FunctionalTensor:
    """Reduce dims; None, and an empty list as in PyTorch, are all dims."""
    axes = axes_of(x, dim) or tuple(range(x.ndim))
    return apply(op, x, ints(*axes) if axes else None, keepdims=int(bool(keepdim)))


def _summable(x: FunctionalTensor) -> FunctionalTensor:
    return cast(x, DataType.INT64) if category(x.dtype) < 2 else x


def _only_floats(x: FunctionalTensor) -> FunctionalTensor:
    if not x.dtype.is_float:
        raise InputError(f"the mean is taken of floats, and not of {x.dtype}: convert them by x.float()")
    return x


def _converted(input: Given, dtype: DType) -> FunctionalTensor:
    return to_tensor(input) if dtype is None else cast(input, DataType.of(dtype))


@function
def sum_(input: Given, dim: Dims = None, keepdim: bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the sum along dims (None: all). Integers and bools give int64."""
    return _reduce("ReduceSum", _summable(_converted(input, dtype)), dim, keepdim)


@function
def mean(input: Given, dim: Dims = None, keepdim: bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the mean along dims (None: all)."""
    return _reduce("ReduceMean", _only_floats(_converted(input, dtype)), dim, keepdim)


@function
def prod(input: Given, dim: Dims = None, keepdim: bool = False, *, dtype: DType = None) -> FunctionalTensor:
    """Return the product along dims (None: all). Integers and bools give int64."""
    return _reduce("ReduceProd", _summable(_converted(input, dtype)), dim, keepdim)


@function
def amax(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the largest element along dims (None: all)."""
    return _reduce("ReduceMax", to_tensor(input), dim, keepdim)


@function
def amin(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the smallest element along dims (None: all)."""
    return _reduce("ReduceMin", to_tensor(input), dim, keepdim)


@function
def logsumexp(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return log(sum(exp(x))) along dims (None: all)."""
    return _reduce("ReduceLogSumExp", in_floats(input), dim, keepdim)


@function
def reduce_l1(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the sum of absolute values along dims (None: all)."""
    return _reduce("ReduceL1", to_tensor(input), dim, keepdim)


@function
def reduce_l2(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the square root of the sum of squares along dims (None: all)."""
    return _reduce("ReduceL2", in_floats(input), dim, keepdim)


@function
def reduce_sum_square(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the sum of squares along dims (None: all)."""
    return _reduce("ReduceSumSquare", to_tensor(input), dim, keepdim)


reduce_sum = sum_
reduce_mean = mean
reduce_max = amax
reduce_min = amin
reduce_prod = prod
reduce_log_sum_exp = logsumexp


def _count(x: FunctionalTensor, axes: Sequence[int]) -> FunctionalTensor:
    """Return the number of elements that are reduced, in the dtype of x."""
    dims = [x.shape[axis] for axis in axes]
    if all(isinstance(dim, int) for dim in dims):
        return number(math.prod(dims), x)  # type: ignore[arg-type]
    picked = apply("Gather", sizes_of(x), ints(*axes), axis=0)
    return cast(apply("ReduceProd", picked, keepdims=0), x.dtype)


@function
def var(input: Given, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> FunctionalTensor:
    """Return the variance along dims (None: all): the sum of squared distances / (count - correction)."""
    x = _only_floats(to_tensor(input))
    axes = axes_of(x, dim) or tuple(range(x.ndim))
    distance = apply("Sub", x, mean(x, axes, keepdim=True))
    squares = _reduce("ReduceSumSquare", distance, axes, keepdim)
    return apply("Div", squares, apply("Max", sub(_count(x, axes), correction), number(0, x)))


@function
def reduce_variance(input: Given, dim: Dims = None, keepdim: bool = False, correction: float = 1.0) -> FunctionalTensor:
    """Return the variance along dims (None: all), with Sentis' order of arguments."""
    return var(input, dim, correction=correction, keepdim=keepdim)


@function
def std(input: Given, dim: Dims = None, *, correction: float = 1, keepdim: bool = False) -> FunctionalTensor:
    """Return the standard deviation along dims (None: all)."""
    return apply("Sqrt", var(input, dim, correction=correction, keepdim=keepdim))


@function
def var_mean(
    input: Given, dim: Dims = None, *, correction: float = 1, keepdim: bool = False
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Return the variance and the mean along dims (None: all)."""
    return var(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim)


@function
def std_mean(
    input: Given, dim: Dims = None, *, correction: float = 1, keepdim: bool = False
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Return the standard deviation and the mean along dims (None: all)."""
    return std(input, dim, correction=correction, keepdim=keepdim), mean(input, dim, keepdim)


@function
def norm(input: Given, p: float | str = "fro", dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the p-norm along dims (None: all); "fro" is 2."""
    x = in_floats(input)
    power = 2.0 if p == "fro" else float(p)
    if power == 1:
        return _reduce("ReduceL1", x, dim, keepdim)
    if power == 2:
        return _reduce("ReduceL2", x, dim, keepdim)
    size = apply("Abs", x)
    if math.isinf(power):
        return _reduce("ReduceMax" if power > 0 else "ReduceMin", size, dim, keepdim)
    if power == 0:
        return cast(count_nonzero(x, dim, keepdim), x.dtype)
    return pow_(_reduce("ReduceSum", pow_(size, power), dim, keepdim), 1 / power)


@function
def normalize(input: Given, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> FunctionalTensor:
    """Divide by the p-norm along a dim, or by eps where the norm is smaller."""
    x = in_floats(input)
    return apply("Div", x, clamp(norm(x, p, dim, keepdim=True), min=eps))


@function
def cosine_similarity(x1: Given, x2: Given, dim: int = 1, eps: float = 1e-8) -> FunctionalTensor:
    """Return the cosine of the angle between vectors along a dim."""
    a, b = in_floats(x1), in_floats(x2)
    lengths = [clamp(norm(x, 2, dim, keepdim=True), min=eps) for x in (a, b)]
    return sum_(mul(div(a, lengths[0]), div(b, lengths[1])), dim)


@function
def any_(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return whether any element along dims (None: all) is true."""
    truth = cast(cast(input, DataType.BOOL), DataType.INT32)
    return cast(_reduce("ReduceMax", truth, dim, keepdim), DataType.BOOL)


@function
def all_(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return whether all elements along dims (None: all) are true."""
    truth = cast(cast(input, DataType.BOOL), DataType.INT32)
    return cast(_reduce("ReduceMin", truth, dim, keepdim), DataType.BOOL)


@function
def count_nonzero(input: Given, dim: Dims = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the number of elements along dims (None: all) that are not 0, as int64 (`keepdim` is not PyTorch's)."""
    return sum_(apply("Not", eq_zero(_countable(to_tensor(input)))), dim, keepdim)


def _countable(x: FunctionalTensor) -> FunctionalTensor:
    return cast(x, DataType.INT32) if x.dtype is DataType.BOOL else x


def _arg(op: str, input: Given, dim: int | None, keepdim: bool) -> FunctionalTensor:
    x = _countable(to_tensor(input))
    if dim is None:
        found = apply(op, ravel(x), axis=0, keepdims=0)
        return reshape(found, (1,) * x.ndim) if keepdim and x.ndim else found
    return apply(op, x, axis=axis_of(x, dim), keepdims=int(bool(keepdim)))


@function
def argmax(input: Given, dim: int | None = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the index of the largest element along a dim, or among all (None); the first of equal ones, as int64."""
    return _arg("ArgMax", input, dim, keepdim)


@function
def argmin(input: Given, dim: int | None = None, keepdim: bool = False) -> FunctionalTensor:
    """Return the index of the smallest element along a dim, or among all (None); the first of equal ones, as int64."""
    return _arg("ArgMin", input, dim, keepdim)


def _extreme(input: Given, dim: Any, keepdim: bool, both: Any, reduce: Any, arg: Any) -> Any:
    if dim is None:
        return reduce(input)
    if not isinstance(dim, int):
        return both(input, dim)
    return ValuesAndIndices(reduce(input, dim, keepdim), arg(input, dim, keepdim))


@function
def max_(input: Given, dim: int | Given | None = None, keepdim: bool = False) -> Any:
    """Return the largest element of all; along a dim (a number) values and indices; or `maximum` with a tensor."""
    return _extreme(input, dim, keepdim, maximum, amax, argmax)


@function
def min_(input: Given, dim: int | Given | None = None, keepdim: bool = False) -> Any:
    """Return the smallest element of all; along a dim (a number) values and indices; or `minimum` with a tensor."""
    return _extreme(input, dim, keepdim, minimum, amin, argmin)


@function
def topk(
    input: Given, k: int | FunctionalTensor, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """Return the k largest (or smallest) elements along a dim in order, and their indices."""
    x = to_tensor(input)
    count = k if isinstance(k, FunctionalTensor) else ints(int(k))
    values, indices = apply_all(
        "TopK", (x, count), 2, axis=axis_of(x, dim), largest=int(bool(largest)), sorted=int(bool(sorted))
    )
    return ValuesAndIndices(values, indices)


@function
def sort(input: Given, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesAndIndices:
    """Return the elements along a dim in order, and their indices; equal elements keep their order."""
    x = to_tensor(input)
    at = axis_of(x, dim)
    if not x.ndim:
        return ValuesAndIndices(x, of_array(ints(0).spec.value.reshape(())))  # type: ignore[union-attr]
    return topk(x, known_size(x, at, "sort"), at, descending)


@function
def argsort(input: Given, dim: int = -1, descending: bool = False, stable: bool = False) -> FunctionalTensor:
    """Return the indices that sort the elements along a dim."""
    return sort(input, dim, descending, stable).indices


@function
def cumsum(input: Given, dim: int, *, dtype: DType = None) -> FunctionalTensor:
    """Return running sums along a dim."""
    x = _summable(_converted(input, dtype))
    return apply("CumSum", x, ints(axis_of(x, dim)))


@function
def cumprod(input: Given, dim: int, *, dtype: DType = None) -> FunctionalTensor:
    """Return running products along a dim."""
    x = _summable(_converted(input, dtype))
    return apply("CumProd", x, ints(axis_of(x, dim)))
