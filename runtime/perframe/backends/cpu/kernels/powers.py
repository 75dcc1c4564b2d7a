"""Hyperbolic functions and powers for the formulas' vocabulary, as polynomials, so that LLVM vectorizes their loops."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, int32, int64

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import exp, log, log1p
from perframe.backends.cpu.kernels.memory import bits_to_double, bits_to_float, float_to_bits, select


@inline
def _magnitude(x):
    return select(x > float32(0.0), x, -x)


@inline
def _signed(x, value):
    """The value with the sign of x; x itself if it is NaN or a zero."""
    return select(x > float32(0.0), value, select(x < float32(0.0), -value, x))


@inline
def _half_exponential(t):
    """exp(t) / 2, which may be finite although exp(t) is not."""
    root = exp(float32(0.5) * t)
    return (float32(0.5) * root) * root


@inline
def sinh(x):
    t = _magnitude(x)
    z = x * x
    p = float32(2.8174395083624404e-06)
    p = p * z + float32(1.983606634894386e-04)
    p = p * z + float32(0.008333350531756878)
    p = p * z + float32(0.1666666716337204)
    half = _half_exponential(t)
    far = _signed(x, half - float32(0.25) / half)
    return select(t < float32(1.0), p * z * x + x, far)


@inline
def cosh(x):
    half = _half_exponential(_magnitude(x))
    return half + float32(0.25) / half


@inline
def asinh(x):
    """From 1e4 on, leave out the 1 in sqrt(x * x + 1): it is negligible, and x * x might overflow."""
    t = _magnitude(x)
    near = select(t < float32(1e4), t, float32(1.0))
    z = near * near
    value = log1p(near + z / (float32(1.0) + math.sqrt(z + float32(1.0))))
    far = log(t) + float32(math.log(2.0))
    return _signed(x, select(t < float32(1e4), value, far))


@inline
def acosh(x):
    above = x - float32(1.0)
    near = select(x < float32(1e4), above, float32(1.0))
    value = log1p(near + math.sqrt(near * near + float32(2.0) * near))
    value = select(x < float32(1e4), value, log(x) + float32(math.log(2.0)))
    return select(x < float32(1.0), float32(math.nan), value)


@inline
def atanh(x):
    t = _magnitude(x)
    return _signed(x, float32(0.5) * log1p((t + t) / (float32(1.0) - t)))


@inline
def _binary_logarithm(x):
    """The base-2 logarithm of a positive number, in float64: that of m * 2**e, m from sqrt(1/2) to sqrt(2)."""
    tiny = x < float32(1.1754944e-38)
    bits = float_to_bits(select(tiny, x * float32(8388608.0), x))
    e = (bits - int32(0x3F3504F3)) >> int32(23)
    f = float64(bits_to_float(bits - (e << int32(23)))) - 1.0
    p = -0.06164684733189574
    p = p * f + 0.10762490055946888
    p = p * f - 0.10798430093035852
    p = p * f + 0.11009129462147181
    p = p * f - 0.12424113129989592
    p = p * f + 0.14287083904711434
    p = p * f - 0.16669489052371805
    p = p * f + 0.2000003346919706
    p = p * f - 0.24999965174930028
    p = p * f + 0.33333332875709665
    z = f * f
    mantissa = f + (p * f * z - 0.5 * z)
    return mantissa * 1.4426950408889634 + float64(e - select(tiny, int32(23), int32(0)))


@inline
def _exponential(y):
    """2**y for y from -200 to 200, in float64."""
    n = (y + 6755399441055744.0) - 6755399441055744.0  # rounds to an integer
    r = (y - n) * 0.6931471805599453
    p = 0.00019919357455051902
    p = p * r + 0.0013947198557752334
    p = p * r + 0.008333262685738264
    p = p * r + 0.041666254238147626
    p = p * r + 0.16666666867315658
    p = p * r + 0.5000000082545702
    return (p * r * r + r + 1.0) * bits_to_double((int64(n) + int64(1023)) << int64(52))


@inline
def power(a, b):
    """a to the power of b as in C: 1 for an exponent of 0 and for a base of 1, NaN for roots of negative numbers."""
    a, b = float32(a), float32(b)
    t = _magnitude(a)
    infinity = float32(math.inf)
    ordinary = (t > float32(0.0)) & (t < infinity)
    logarithm = select(t > float32(0.0), math.inf, -math.inf)
    logarithm = select(ordinary, _binary_logarithm(select(ordinary, t, float32(1.0))), logarithm)
    y = float64(b) * logarithm
    y = select(y < -200.0, -200.0, select(y > 200.0, 200.0, y))
    value = float32(_exponential(select(y == y, y, 0.0)))
    whole = np.floor(b) == b
    half = float32(0.5) * b
    odd = whole & (np.floor(half) != half)
    negative = float_to_bits(a) < int32(0)
    value = select(negative & odd, -value, value)
    value = select(negative & ordinary & (b - b == float32(0.0)) & (np.floor(b) != b), float32(math.nan), value)
    value = select((t == float32(1.0)) & ((b == infinity) | (b == -infinity)), float32(1.0), value)
    value = select((a == a) & (b == b), value, float32(math.nan))
    return select((b == float32(0.0)) | (a == float32(1.0)), float32(1.0), value)
