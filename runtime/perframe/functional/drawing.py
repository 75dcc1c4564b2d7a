"""Functions that draw random numbers. With a seed each run draws the same numbers, on every backend.

PyTorch takes a generator; here `seed` is a number, or None for other numbers in every run.
"""

from __future__ import annotations

import math
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, axis_of, cast, function, in_floats, ints, number
from perframe.functional.gathering import take
from perframe.functional.making import filled
from perframe.functional.moving import ravel, unsqueeze
from perframe.functional.reductions import DType, topk
from perframe.functional.sizes import Sizes, listed, row_of, sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.tensor import DataType

Seed = int | float | None


def _drawn(op: str, sizes: FunctionalTensor, dtype: DataType, seed: Seed, **numbers: float) -> FunctionalTensor:
    chosen = None if seed is None else float(seed)
    shape = sizes.spec.ints()
    if shape is not None:
        return apply(op, shape=shape, dtype=dtype, seed=chosen, **numbers)
    return apply(f"{op}Like", filled(sizes, 0, dtype), dtype=dtype, seed=chosen, **numbers)


def _uniform(sizes: FunctionalTensor, dtype: DataType, seed: Seed) -> FunctionalTensor:
    return _drawn("RandomUniform", sizes, dtype, seed, low=0.0, high=1.0)


def _normal(sizes: FunctionalTensor, dtype: DataType, seed: Seed, mean: float, std: float) -> FunctionalTensor:
    return _drawn("RandomNormal", sizes, dtype, seed, mean=float(mean), scale=float(std))


def _floats_like(input: Given, dtype: DType) -> tuple[FunctionalTensor, DataType]:
    x = to_tensor(input)
    return sizes_of(x), (in_floats(x).dtype if dtype is None else DataType.of(dtype))


@function
def rand(*size: Any, dtype: DType = DataType.FLOAT32, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers from 0 to below 1."""
    return _uniform(row_of(listed(size)), DataType.of(dtype), seed)


@function
def rand_like(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers from 0 to below 1, in the shape and the dtype of the input."""
    return _uniform(*_floats_like(input, dtype), seed)


@function
def randn(*size: Any, dtype: DType = DataType.FLOAT32, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers of the standard normal distribution."""
    return _normal(row_of(listed(size)), DataType.of(dtype), seed, 0, 1)


@function
def randn_like(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers of the standard normal distribution, in the shape and the dtype of the input."""
    return _normal(*_floats_like(input, dtype), seed, 0, 1)


@function
def normal(
    mean: float, std: float, size: Sizes, *, dtype: DType = DataType.FLOAT32, seed: Seed = None
) -> FunctionalTensor:
    """Draw numbers of a normal distribution."""
    return _normal(row_of(size), DataType.of(dtype), seed, mean, std)


@function
def normal_like(mean: float, std: float, input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw numbers of a normal distribution, in the shape and the dtype of a tensor."""
    return _normal(*_floats_like(input, dtype), seed, mean, std)


def _whole(sizes: FunctionalTensor, low: int, high: int, dtype: DataType, seed: Seed) -> FunctionalTensor:
    if not low < high:
        raise InputError(f"there is no integer from {low} to below {high}")
    if high - low > 1 << 24:
        raise InputError(
            f"{low}..{high} are more numbers than float32 tells apart: at most {1 << 24} can be drawn from"
        )
    share = _uniform(sizes, DataType.FLOAT32, seed)
    steps = apply("Floor", apply("Mul", share, number(high - low, share)))
    inside = apply("Min", steps, number(high - low - 1, share))  # rounding may reach the end
    return apply("Add", cast(inside, dtype), number(low, cast(inside, dtype)))


@function
def randint(
    low: int, high: int | None = None, size: Sizes = (), *, dtype: DType = DataType.INT64, seed: Seed = None
) -> FunctionalTensor:
    """Draw integers from low to below high; with one number from 0."""
    first, end = (0, low) if high is None else (low, high)
    return _whole(row_of(size), first, end, DataType.of(dtype), seed)


@function
def randint_like(
    input: Given, low: int, high: int | None = None, *, dtype: DType = None, seed: Seed = None
) -> FunctionalTensor:
    """Draw integers from low to below high, in the shape and the dtype of the input."""
    x = to_tensor(input)
    first, end = (0, low) if high is None else (low, high)
    return _whole(sizes_of(x), first, end, x.dtype if dtype is None else DataType.of(dtype), seed)


@function
def bernoulli(input: Given, *, dtype: DType = None, seed: Seed = None) -> FunctionalTensor:
    """Draw 1 with the probability that the input gives, and 0 otherwise."""
    x = in_floats(input)
    wanted = x.dtype if dtype is None else DataType.of(dtype)
    return cast(apply("Bernoulli", x, seed=None if seed is None else float(seed)), wanted)


@function
def multinomial(input: Given, num_samples: int, replacement: bool = False, *, seed: Seed = None) -> FunctionalTensor:
    """Draw indices by rows of weights (a row, or (rows, classes)); without replacement no index comes twice."""
    weights = in_floats(input)
    if weights.ndim not in (1, 2):
        raise InputError(f"weights are a row or rows, not {weights.spec}")
    rows = unsqueeze(weights, 0) if weights.ndim == 1 else weights
    if replacement:
        chosen = None if seed is None else float(seed)
        drawn = apply(
            "Multinomial", apply("Log", rows), dtype=DataType.INT64, sample_size=int(num_samples), seed=chosen
        )
    else:  # the largest of weight ** (1 / uniform): Efraimidis and Spirakis, Weighted random sampling, 2006
        share = _uniform(sizes_of(rows), rows.dtype, seed)
        drawn = topk(apply("Div", apply("Log", share), rows), num_samples, -1).indices
    return apply("Squeeze", drawn, ints(0)) if weights.ndim == 1 else drawn


@function
def random_choice(input: Given, size: Sizes, p: Given | None = None, *, seed: Seed = None) -> FunctionalTensor:
    """Draw elements of the flattened input, with replacement: all alike, or by probabilities `p`."""
    values, sizes = ravel(to_tensor(input)), row_of(size)
    count = sizes.spec.ints()
    if p is None:
        many = values.shape[axis_of(values, 0)]
        if not isinstance(many, int):
            raise InputError(f"{values.spec} has an unknown number of elements to choose from")
        return take(values, _whole(sizes, 0, many, DataType.INT64, seed))
    if count is None:
        raise InputError("with probabilities the size is made of numbers")
    drawn = multinomial(ravel(to_tensor(p)), math.prod(count), True, seed=seed)
    return take(values, apply("Reshape", drawn, sizes))
