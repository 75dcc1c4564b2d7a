"""What passes ask: which layer may be fused, and what a constant holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Layer, Value
from perframe.tensor import DataType


def sole_producer(value: Value | None, *families: str) -> Layer | None:
    """Return the layer of one of these families that makes `value` as its first output, if only one layer reads it."""
    layer = None if value is None else value.producer
    if value is None or layer is None or layer.family not in families or layer.output is not value:
        return None
    return layer if value.only_user else None


def all_float32(*layers: Layer) -> bool:
    """Whether all inputs and outputs of these layers are float32."""
    return all(value.spec.dtype is DataType.FLOAT32 for layer in layers for value in (*layer.operands, *layer.results))


def constant_of(value: Value | None) -> NDArray[Any] | None:
    """Return the array of a constant; None for any other value and for an absent one."""
    return None if value is None else value.constant


def scalar(value: NDArray[Any] | None) -> float | None:
    """Return the number in a constant of one float32 element; None for any other constant."""
    if value is None or value.size != 1 or value.dtype != np.float32:
        return None
    return float(value.reshape(()))


RANGE = 40  # powers of two
FACTOR = 12  # powers of two


def may_fold(*constants: NDArray[Any] | float) -> bool:
    """Whether constants may be multiplied with each other before the run.

    The order of products decides what overflows and what is lost below the least number. With finite constants whose
    largest numbers lie within 2^40 and 2^-40, only values do so that are near the end of float32's range anyway.
    """
    return all(_size_within(constant, RANGE) for constant in constants)


def may_move(factor: float) -> bool:
    """Whether a factor of an operand may become a factor of the product: values 2^12 times as large do not occur."""
    return _size_within(factor, FACTOR)


def _size_within(constant: NDArray[Any] | float, most: int) -> bool:
    sizes = np.abs(np.asarray(constant, np.float64))
    largest = sizes.max(initial=0.0)  # NaN if one is
    return bool(largest == 0 or 2.0**-most <= largest <= 2.0**most)


def in_float32(*constants: NDArray[Any]) -> list[NDArray[Any]] | None:
    """Return constants in float32; None if one of their numbers is not finite in float32."""
    with np.errstate(over="ignore"):
        made = [np.asarray(constant).astype(np.float32) for constant in constants]
    return made if all(np.isfinite(value).all() for value in made) else None


def is_near_halves(value: NDArray[Any] | None) -> bool:
    """Whether float16 holds a constant: in each row, the first dim's, the error is at most 2^-10 of the row's norm."""
    if value is None or not value.size:
        return False
    rows = np.asarray(value, np.float32).reshape(len(value) if value.ndim else 1, -1)
    with np.errstate(over="ignore", invalid="ignore"):  # NaN is near nothing
        errors = rows.astype(np.float16).astype(np.float32) - rows
        return bool((np.linalg.norm(errors, axis=1) <= 2.0**-10 * np.linalg.norm(rows, axis=1)).all())


def channel_vector(value: NDArray[Any] | None, channels: int, rank: int, axis: int) -> NDArray[Any] | None:
    """Return a constant that broadcasts over a tensor of `rank` only along `axis`, as a vector of `channels` numbers.

    None for any other constant.
    """
    if value is None or value.dtype != np.float32:
        return None
    if value.size == 1 and value.ndim <= rank:
        return np.full(channels, value.reshape(()), np.float32)
    shape = (1,) * (rank - value.ndim) + value.shape
    if value.ndim > rank or value.size != channels or shape[axis] != channels:
        return None
    return value.reshape(channels)


def channel_affine(
    layer: Layer, source: Value, channels: int, rank: int, axis: int = 1
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return (scale, shift) in float64 if the layer scales and shifts each channel of `source`, else None."""
    if layer.op == "BatchNormalization":
        if layer.x is not source or axis != 1:
            return None
        given = [constant_of(value) for value in layer.inputs[1:5]]
        if any(value is None or value.dtype != np.float32 for value in given):
            return None
        scale, bias, mean, variance = (value.astype(np.float64) for value in given if value is not None)
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + layer.epsilon)
            return factor, bias - mean * factor
    if layer.op == "MultiplyAdd":
        given = [channel_vector(constant_of(value), channels, rank, axis) for value in layer.inputs[1:]]
        if layer.inputs[0] is not source or any(value is None for value in given):
            return None
        scale, shift = (value.astype(np.float64) for value in given if value is not None)
        return scale, shift
    if layer.op not in ("Mul", "Add"):
        return None
    other = layer.inputs[1] if layer.inputs[0] is source else layer.inputs[0]
    vector = channel_vector(constant_of(other), channels, rank, axis)
    if vector is None:
        return None
    number = vector.astype(np.float64)
    return (number, np.zeros(channels)) if layer.op == "Mul" else (np.ones(channels), number)
