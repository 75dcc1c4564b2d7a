"""The formulas' vocabulary for Numba, in float32 throughout.

`exp` and the functions that use it are polynomials, so that LLVM vectorizes loops of them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import bits_to_float, float_to_bits, select

__all__ = ["float32", "int32"]

abs = abs

_LOG2E = float32(1.4426950408889634)
_LN2_HIGH = float32(0.693145751953125)
_LN2_LOW = float32(1.42860677e-06)


@inline
def exp(x):
    """Cody-Waite reduction to |r| <= ln(2)/2, and a polynomial. Overflow gives inf, underflow 0, and NaN stays."""
    limited = float32(89.0) if x > float32(89.0) else (float32(-104.0) if x < float32(-104.0) else x)
    limited = limited if limited == limited else float32(0.0)
    shifted = limited * _LOG2E + float32(12582912.0)  # 1.5 * 2**23: rounds to an integer in the low bits
    n = shifted - float32(12582912.0)
    r = (limited - n * _LN2_HIGH) - n * _LN2_LOW
    p = float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    p = (p * r) * r + r + float32(1.0)
    whole = int32(n)
    half = whole >> int32(1)  # two factors, since a single one may overflow though the result does not
    first = bits_to_float((half + int32(127)) << int32(23))
    second = bits_to_float((whole - half + int32(127)) << int32(23))
    result = p * first * second
    return result if x == x else x


@inline
def exp_of_negative(x):
    """exp(x) for x up to 0, and 0 below -86. Relative error: 2e-7 down to -20, 4e-7 down to -86. NaN stays."""
    under = x < float32(-86.0)
    limited = select(under, float32(-86.0), x)
    shifted = limited * _LOG2E + float32(12582912.0)  # its low bits are an integer
    r = limited - (shifted - float32(12582912.0)) * float32(0.6931471805599453)
    p = float32(8.290229365e-3)
    p = p * r + float32(4.189839214e-2)
    p = p * r + float32(1.6667640209e-1)
    p = p * r + float32(4.9999144673e-1)
    p = p * r + float32(9.999997020e-1)
    p = p * r + float32(1.0)
    power = bits_to_float((float_to_bits(shifted) << int32(23)) + int32(0x3F800000))
    return select(under, float32(0), p * power)


@inline
def is_nan(x):
    return x != x


@inline
def is_inf(x):
    return (float_to_bits(x) & int32(0x7FFFFFFF)) == int32(0x7F800000)


@inline
def minimum(a, b):
    return a if (a < b) or (a != a) else b


@inline
def maximum(a, b):
    return a if (a > b) or (a != a) else b


@inline
def clamp(x, low, high):
    return minimum(maximum(x, low), high)


@inline
def tanh(x):
    small = x * x
    # Taylor's series near 0, where the quotient loses digits
    series = x * (
        float32(1.0) + small * (float32(-0.333333333) + small * (float32(0.133333333) + small * float32(-0.053968254)))
    )
    e = exp(float32(-2.0) * (x if x > float32(0.0) else -x))
    quotient = (float32(1.0) - e) / (float32(1.0) + e)
    quotient = quotient if x > float32(0.0) else -quotient
    result = series if small < float32(0.0225) else quotient
    return result if x == x else x


@inline
def sign(x):
    return float32(1.0) if x > float32(0) else (float32(-1.0) if x < float32(0) else x + float32(0))  # -0 becomes 0


@inline
def sqrt(x):
    return math.sqrt(x)


@inline
def log(x):
    """Split x into m * 2**e, m from sqrt(1/2) to sqrt(2); log(m) is a polynomial. Relative error: at most 1e-7."""
    tiny = x < float32(1.1754944e-38)
    bits = float_to_bits(x * float32(8388608.0) if tiny else x)
    e = (bits - int32(0x3F3504F3)) >> int32(23)
    f = bits_to_float(bits - (e << int32(23))) - float32(1.0)
    p = float32(-0.07859546)
    p = p * f + float32(0.12881622)
    p = p * f + float32(-0.13128768)
    p = p * f + float32(0.14181197)
    p = p * f + float32(-0.16624554)
    p = p * f + float32(0.20002286)
    p = p * f + float32(-0.2500081)
    p = p * f + float32(0.33333316)
    exponent = float32(e - int32(23)) if tiny else float32(e)
    z = f * f
    mantissa = (p * f * z + exponent * _LN2_LOW) - float32(0.5) * z
    result = (f + mantissa) + exponent * _LN2_HIGH
    result = result if x > float32(0) else (float32(-math.inf) if x == float32(0) else float32(math.nan))
    return result if x < float32(math.inf) else x


@inline
def log1p(x):
    """log(1 + x), corrected for the digits of x that 1 + x loses."""
    u = float32(1.0) + x
    lost = u - float32(1.0)
    near = select(lost == float32(0.0), x, log(u) * (x / select(lost == float32(0.0), float32(1.0), lost)))
    return select(u < float32(math.inf), near, log(u))


@inline
def erf(x):
    """For |x| up to 1 a polynomial in x * x, else 1 - exp(another polynomial). The relative error is at most 2e-7."""
    t = select(x > float32(0.0), x, -x)
    z = x * x
    p = float32(7.889119e-05)
    p = p * z + float32(-0.0008020841)
    p = p * z + float32(0.005189535)
    p = p * z + float32(-0.026854444)
    p = p * z + float32(0.112836)
    p = p * z + float32(-0.37612626)
    p = p * z + float32(1.1283791)
    u = select(t < float32(4.0), t, float32(4.0))
    q = float32(2.1496124e-05)
    q = q * u + float32(-0.0004391065)
    q = q * u + float32(0.0041936114)
    q = q * u + float32(-0.025178969)
    q = q * u + float32(0.10837248)
    q = q * u + float32(0.63326263)
    q = q * u + float32(1.1295568)
    q = q * u + float32(-0.00018344432)
    far = float32(1.0) - exp_of_negative(-q)
    result = select(t < float32(1.0), x * p, select(x > float32(0.0), far, -far))
    return select(x == x, result, x)


@inline
def floor(x):
    return np.floor(x)


@inline
def ceil(x):
    return np.ceil(x)


@inline
def round_even(x):
    magnitude = float32(8388608.0)  # 2**23: from here on every float32 is whole
    shift = magnitude if x >= float32(0.0) else -magnitude
    whole = (x + shift) - shift
    signed = whole if whole != float32(0.0) else x * float32(0.0)  # -0.3 becomes -0
    return signed if -magnitude < x < magnitude else x


@inline
def trunc_div(a, b):
    return np.trunc(a / b)


@inline
def floor_mod(a, b):
    return a % b


@inline
def trunc_mod(a, b):
    return np.fmod(a, b)
