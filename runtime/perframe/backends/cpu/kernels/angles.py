"""Trigonometric functions for the formulas' vocabulary. They are polynomials, so that LLVM vectorizes loops of them.
All have relative errors of at most 2e-7.
"""

from __future__ import annotations

import math
from fractions import Fraction

from numba import float32, float64, int32, int64, uint64

from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import float_to_bits, select

# pi with enough digits to reduce the largest float32
_PI = Fraction(3141592653589793238462643383279502884197169399375105820974944592307816406286208998628, 10**84)


def _cut(value: Fraction, bits: int) -> float:
    """Cut a number off after `bits` binary digits."""
    scale = Fraction(2) ** (bits - math.frexp(float(value))[1])
    return float(Fraction(int(value * scale)) / scale)


def _parts(value: Fraction, *bits: int) -> list[float]:
    """Split a number into a sum of parts. A part has few digits, so that its products with short numbers are exact."""
    parts = []
    for count in bits:
        parts.append(_cut(value, count))
        value -= Fraction(parts[-1])
    return parts


_QUARTER_HIGH, _QUARTER_MIDDLE, _QUARTER_LOW = _parts(_PI / 2, 26, 26, 53)
# the binary digits of 1 / pi
_DIGITS = [uint64(int(2 ** (64 * (index + 1)) / _PI) % 2**64) for index in range(4)]
_FIRST, _SECOND, _THIRD, _FOURTH = _DIGITS
_FIXED = math.pi / 2 * 2.0**-62


@inline
def _huge_quadrant(x):
    """Reduce x = m * 2**(k + 1), 2**24 or more, like `_quadrant`. Compute the digits of x * 2 / pi around the point."""
    bits = float_to_bits(x)
    k = uint64(max(((bits >> int32(23)) & int32(255)) - int32(151), 0))
    m = uint64((bits & int32(0x7FFFFF)) | int32(0x800000))
    late, by = k >= uint64(64), k & uint64(63)
    back = uint64(63) - by
    a = select(late, _SECOND, _FIRST)
    b = select(late, _THIRD, _SECOND)
    c = select(late, _FOURTH, _THIRD)
    high = (a << by) | ((b >> uint64(1)) >> back)
    low = (b << by) | ((c >> uint64(1)) >> back)
    turns = m * high + ((m * (low >> uint64(32))) >> uint64(32))  # quarter turns, times 2**62
    q = (turns + uint64(1 << 61)) >> uint64(62)
    r = float32(float64(int64(turns - (q << uint64(62)))) * _FIXED)
    negative = bits < int32(0)
    return select(negative, -r, r), select(negative, int32(-int32(q)), int32(q))


@inline
def _quadrant(x):
    """Return (r, q), where x is q quarter turns plus r, and |r| is at most an eighth of a turn."""
    huge = (float_to_bits(x) & int32(0x7FFFFFFF)) >= int32(0x4B800000)
    v = float64(select(huge, float32(0.0), x))
    n = (v * 0.6366197723675814 + 6755399441055744.0) - 6755399441055744.0  # rounds to an integer
    r = ((v - n * _QUARTER_HIGH) - n * _QUARTER_MIDDLE) - n * _QUARTER_LOW
    far, turns = _huge_quadrant(x)
    return select(huge, far, float32(r)), select(huge, turns, int32(n))


@inline
def _sine(r):
    z = r * r
    p = float32(-0.000195140833966434)
    p = p * z + float32(0.008332154713571072)
    p = p * z + float32(-0.16666655242443085)
    return p * z * r + r


@inline
def _cosine(r):
    z = r * r
    p = float32(2.4434844817733392e-05)
    p = p * z + float32(-0.0013887337408959866)
    p = p * z + float32(0.04166664555668831)
    return (p * z * z - float32(0.5) * z) + float32(1.0)


@inline
def _finite(x, value):
    """The value if x is finite, else NaN."""
    whole = (float_to_bits(x) & int32(0x7F800000)) != int32(0x7F800000)
    return select(whole, value, float32(math.nan))


@inline
def sin(x):
    r, q = _quadrant(x)
    value = select((q & int32(1)) == int32(0), _sine(r), _cosine(r))
    value = select((q & int32(2)) == int32(0), value, -value)
    return _finite(x, select(x == float32(0.0), x, value))


@inline
def cos(x):
    r, q = _quadrant(x)
    value = select((q & int32(1)) == int32(0), _cosine(r), _sine(r))
    return _finite(x, select(((q + int32(1)) & int32(2)) == int32(0), value, -value))


@inline
def tan(x):
    r, q = _quadrant(x)
    s, c = _sine(r), _cosine(r)
    even = (q & int32(1)) == int32(0)
    value = select(even, s, -c) / select(even, c, s)
    return _finite(x, select(x == float32(0.0), x, value))


@inline
def _arcsine(x, z):
    """The arcsine of x up to a half, where z is x * x."""
    p = float32(0.04221847280859947)
    p = p * z + float32(0.02414765954017639)
    p = p * z + float32(0.04547708481550217)
    p = p * z + float32(0.07495241612195969)
    p = p * z + float32(0.16666753590106964)
    return p * z * x + x


@inline
def _halved(x):
    """(whether |x| is at most a half, the argument of `_arcsine`, its square)."""
    t = select(x > float32(0.0), x, -x)
    near = t <= float32(0.5)
    z = select(near, x * x, float32(0.5) * (float32(1.0) - t))
    return near, select(near, t, math.sqrt(z)), z


@inline
def asin(x):
    near, s, z = _halved(x)
    value = _arcsine(s, z)
    value = select(near, value, float32(math.pi / 2) - float32(2.0) * value)
    return select(x > float32(0.0), value, select(x < float32(0.0), -value, x))


@inline
def acos(x):
    near, s, z = _halved(x)
    value = _arcsine(s, z)
    middle = float32(math.pi / 2) - select(x > float32(0.0), value, -value)
    far = select(x > float32(0.0), float32(2.0) * value, float32(math.pi) - float32(2.0) * value)
    return select(x == x, select(near, middle, far), x)


@inline
def atan(x):
    t = select(x > float32(0.0), x, -x)
    near = t <= float32(1.0)
    s = select(near, t, float32(1.0) / t)
    z = s * s
    p = float32(-0.0018271900480613112)
    p = p * z + float32(0.011064340360462666)
    p = p * z + float32(-0.03145551681518555)
    p = p * z + float32(0.05823437124490738)
    p = p * z + float32(-0.08419448882341385)
    p = p * z + float32(0.10957573354244232)
    p = p * z + float32(-0.1426524519920349)
    p = p * z + float32(0.19998638331890106)
    p = p * z + float32(-0.33333301544189453)
    value = p * z * s + s
    value = select(near, value, float32(math.pi / 2) - value)
    return select(x > float32(0.0), value, select(x < float32(0.0), -value, x))
