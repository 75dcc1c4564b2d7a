"""The words of formulas, as NumPy functions. `lib/math.glsl` and `math.py` of the CPU kernels define them too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.ir.sizes.size import at_least, at_most

_smaller, _larger = np.frompyfunc(at_most, 2, 1), np.frompyfunc(at_least, 2, 1)  # of symbolic sizes
_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(x: Any) -> Any:
    """Return the error function of x, in the dtype of x."""
    return _erf(x).astype(np.result_type(x))


def clamp(x: Any, low: Any, high: Any) -> Any:
    """Limit x to low..high; NaN stays NaN."""
    return np.minimum(np.maximum(x, low), high)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers; NaN wins."""
    return np.minimum(a, b) if np.result_type(a, b).kind != "O" else _smaller(a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two numbers; NaN wins."""
    return np.maximum(a, b) if np.result_type(a, b).kind != "O" else _larger(a, b)


def trunc_div(a: Any, b: Any) -> Any:
    """Divide and round towards zero, as C and ONNX do for integers; an integer divided by zero gives 0."""
    if np.result_type(a, b).kind == "f":
        return np.trunc(a / b)
    quotient = np.floor_divide(a, b)
    negative = quotient < 0
    if not np.any(negative):  # of symbolic sizes, nothing else is known in most cases
        return quotient
    return quotient + (negative & (quotient * b != a)).astype(quotient.dtype)


def power(a: Any, b: Any) -> Any:
    """Raise a to the power of b. Of integers, a negative power is rounded towards zero, as C does."""
    if np.result_type(a, b).kind not in "iu":
        return np.power(a, b)
    inverse = np.where(np.asarray(a) == -1, 1 - 2 * (np.asarray(b) & 1), np.asarray(a) == 1)
    return np.where(np.asarray(b) < 0, inverse, np.power(a, np.maximum(b, 0))).astype(np.result_type(a, b))


def to_float(x: Any) -> Any:
    """Return x as float32."""
    return np.asarray(x).astype(np.float32)


abs, floor, ceil, round_even, sign = np.abs, np.floor, np.ceil, np.rint, np.sign
exp, log, log1p, sqrt = np.exp, np.log, np.log1p, np.sqrt
sin, cos, tan, asin, acos, atan = np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan
sinh, cosh, tanh, asinh, acosh, atanh = np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh
where, is_nan, is_inf = np.where, np.isnan, np.isinf
floor_mod, trunc_mod = np.mod, np.fmod
