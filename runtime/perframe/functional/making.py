"""Functions that make tensors from numbers and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, exact, function, ints, real
from perframe.functional.reductions import DType
from perframe.functional.sizes import Size, Sizes, listed, row_of, sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.tensor import DataType
from perframe.tensor.checks import too_large

_SMALL = 1024  # elements; larger constants stay layers until the model is optimised


@function
def constant(values: Given, dtype: DType = None) -> FunctionalTensor:
    """Return numbers, a list or an array as a tensor. Floats in lists are float32, and integers int64.

    A float64 array takes the dtype of the floats with which it is combined, unless `dtype` is "float64".
    """
    made = to_tensor(values)
    follows = made.follows and dtype is None
    made = made if dtype is None else cast(made, DataType.of(dtype))
    return FunctionalTensor(made.value, made.graph, follows=follows, spec=made.spec, name=made.name)


tensor = constant
as_tensor = constant


def filled(sizes: FunctionalTensor, value: Any, dtype: DataType) -> FunctionalTensor:
    """Return a tensor of one value."""
    if dtype in (DataType.STRING, DataType.COMPLEX64, DataType.COMPLEX128):
        filler = np.array([value]).astype(dtype.numpy)
    else:
        filler = exact(value, dtype).reshape(1)
    shape = sizes.spec.ints()
    if shape is not None and min(shape, default=0) >= 0 and math.prod(shape) <= _SMALL:
        return of_array(np.full(shape, filler[0]))
    return apply("ConstantOfShape", sizes, value=filler)


@function
def full(size: Sizes, fill_value: float | int | bool, *, dtype: DType = None) -> FunctionalTensor:
    """Return a tensor of one value. The dtype is that of the value: float32, int64 or bool."""
    return filled(row_of(size), fill_value, to_tensor(fill_value).dtype if dtype is None else DataType.of(dtype))


@function
def zeros(*size: Any, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a tensor of zeros."""
    return filled(row_of(listed(size)), 0, DataType.of(dtype))


@function
def ones(*size: Any, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a tensor of ones."""
    return filled(row_of(listed(size)), 1, DataType.of(dtype))


def _like(input: Given, value: Any, dtype: DType) -> FunctionalTensor:
    x = to_tensor(input)
    return filled(sizes_of(x), value, x.dtype if dtype is None else DataType.of(dtype))


@function
def full_like(input: Given, fill_value: float | int | bool, *, dtype: DType = None) -> FunctionalTensor:
    """Return a tensor of one value, in the shape and the dtype of the input."""
    return _like(input, fill_value, dtype)


@function
def zeros_like(input: Given, *, dtype: DType = None) -> FunctionalTensor:
    """Return zeros in the shape and the dtype of the input."""
    return _like(input, 0, dtype)


@function
def ones_like(input: Given, *, dtype: DType = None) -> FunctionalTensor:
    """Return ones in the shape and the dtype of the input."""
    return _like(input, 1, dtype)


@function
def arange(start: Size, end: Size | None = None, step: int | float = 1, *, dtype: DType = None) -> FunctionalTensor:
    """Return start, start + step, ... below end; with one argument from 0. int64, or float32 if a number is a float."""
    first, last = (0, start) if end is None else (start, end)
    if step == 0:
        raise InputError("step is 0: the numbers would never reach the end")
    bounds = [to_tensor(value) for value in (first, last, step)]
    floats = any(bound.dtype.is_float for bound in bounds)
    wanted = (DataType.FLOAT32 if floats else DataType.INT64) if dtype is None else DataType.of(dtype)
    if all(bound.is_constant for bound in bounds):
        count = max(0, math.ceil((last - first) / step))  # type: ignore[operator, arg-type]
        reason = too_large((count,), wanted)
        if reason:
            raise InputError(f"the result would be too large: {reason}")
        return of_array((np.arange(count) * step + first).astype(wanted.numpy))  # type: ignore[operator]
    scalars = [apply("Reshape", cast(bound, wanted), ints()) for bound in bounds]
    return apply("Range", *scalars)


def _steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
        raise InputError(f"steps is a number from 0, not {steps!r}")
    reason = too_large((int(steps),), DataType.FLOAT64)
    if reason:
        raise InputError(f"the result would be too large: {reason}")
    return int(steps)


@function
def linspace(start: float, end: float, steps: int, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return `steps` numbers from start to end, both included, evenly spaced."""
    return of_array(np.linspace(real(start), real(end), _steps(steps)).astype(DataType.of(dtype).numpy))


@function
def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: DType = DataType.FLOAT32
) -> FunctionalTensor:
    """Return `steps` powers of a base, with exponents from start to end, evenly spaced."""
    return of_array(
        np.logspace(real(start), real(end), _steps(steps), base=real(base)).astype(DataType.of(dtype).numpy)
    )


@function
def eye(n: int, m: int | None = None, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a matrix with ones on the diagonal."""
    return apply("EyeLike", filled(ints(n, n if m is None else m), 0, DataType.of(dtype)), dtype=DataType.of(dtype))


@function
def meshgrid(*tensors: Any, indexing: Literal["ij", "xy"] = "ij") -> tuple[FunctionalTensor, ...]:
    """Return the coordinates of a grid, one tensor for each row of coordinates."""
    several = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    given = [to_tensor(row) for row in several]
    if indexing not in ("ij", "xy"):
        raise InputError(f"indexing is 'ij' or 'xy', not {indexing!r}")
    if any(row.ndim > 1 for row in given):
        raise InputError("the coordinates of a grid are rows")
    order = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        order[:2] = [1, 0]
    shaped = [
        apply("Reshape", row, ints(*(-1 if at == place else 1 for at in range(len(given)))))
        for row, place in zip(given, order, strict=True)
    ]
    sizes = [sizes_of(shaped[order.index(at)], at, at + 1) for at in range(len(given))]
    shape = apply("Concat", *sizes, axis=0) if sizes else ints()
    return tuple(apply("Expand", one, shape) for one in shaped)


# --- windows of signals ---


def _window(factors: Sequence[float], window_length: int, periodic: bool, dtype: DType) -> FunctionalTensor:
    count = _steps(window_length)
    turns = 2 * np.pi * np.arange(count) / max(count if periodic else count - 1, 1)
    values = sum(factor * np.cos(at * turns) for at, factor in enumerate(factors))
    return of_array(np.asarray(values if count > 1 else np.ones(count)).astype(DataType.of(dtype).numpy))


@function
def hann_window(window_length: int, periodic: bool = True, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a Hann window; a periodic one leaves out its last number."""
    return _window((0.5, -0.5), window_length, periodic, dtype)


@function
def hamming_window(window_length: int, periodic: bool = True, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a Hamming window; a periodic one leaves out its last number."""
    return _window((0.54, -0.46), window_length, periodic, dtype)


@function
def blackman_window(window_length: int, periodic: bool = True, *, dtype: DType = DataType.FLOAT32) -> FunctionalTensor:
    """Return a Blackman window; a periodic one leaves out its last number."""
    return _window((0.42, -0.5, 0.08), window_length, periodic, dtype)
