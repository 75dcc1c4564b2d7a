"""Conversions between dtypes by ONNX's rules, which in part differ from those of NumPy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.tensor import DataType

_FLOAT8 = {DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ, DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ}


def is_native(dtype: Any) -> bool:
    """Whether the dtype is one of NumPy's own, and not of ml_dtypes."""
    return np.dtype(dtype).isbuiltin != 2


def convert(x: Any, to: DataType, saturate: bool = True, round_mode: str = "up") -> Any:
    """Convert values to another dtype. `saturate` matters only for float8, and `round_mode` only for float8e8m0."""
    dtype = to.numpy
    if to is DataType.FLOAT8E8M0 and np.asarray(x).dtype != dtype:
        return _powers_of_two(np.asarray(x).astype(np.float32), saturate, round_mode).view(dtype)
    if to not in _FLOAT8:
        return np.asarray(x).astype(dtype)
    result = np.asarray(np.asarray(x).astype(dtype))
    if not saturate:
        return result
    import ml_dtypes

    wide, largest = np.asarray(x).astype(np.float32), float(ml_dtypes.finfo(dtype).max)
    lost = ~np.isfinite(result.astype(np.float32)) & ~np.isnan(wide)
    return np.where(lost, np.copysign(np.float32(largest), wide), result.astype(np.float32)).astype(dtype)


def _powers_of_two(x: Any, saturate: bool, round_mode: str) -> Any:
    """The bytes of float8e8m0: an exponent biased by 127, and 255 for NaN."""
    mantissa, exponent = np.frexp(np.abs(x))  # a mantissa of 0.5 is a power of two
    up = {"up": mantissa > 0.5, "down": np.zeros(x.shape, bool), "nearest": mantissa >= 0.75}[round_mode]
    power = np.where(x == 0, -1, np.where(np.isinf(x), 255, exponent + 126 + up))
    outside = (power < 0) | (power > 254)
    return np.where(np.isnan(x) | (outside & (not saturate)), 255, np.clip(power, 0, 254)).astype(np.uint8)


def accumulator(dtype: Any) -> Any:
    """The dtype in which to sum up values of a dtype: float32 or wider for floats."""
    if is_native(dtype):
        return np.dtype(np.float32) if np.dtype(dtype) == np.float16 else np.dtype(dtype)
    return np.dtype(np.float32)
