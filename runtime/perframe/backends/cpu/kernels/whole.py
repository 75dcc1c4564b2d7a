"""The functions of the formulas' vocabulary that differ between integers and floats. As in NumPy, a division of
integers by zero gives 0, and results that overflow wrap around.
"""

from __future__ import annotations

from perframe.backends.cpu.kernels.inlining import inline


@inline
def sign(x):
    return (1 if x > 0 else 0) - (1 if x < 0 else 0)


@inline
def _divisor(b):
    """A divisor that never traps: 1 in place of 0, and of -1, by which the smallest number cannot be divided."""
    return 1 if b == 0 or b == -1 else b


@inline
def trunc_div(a, b):
    quotient = a // _divisor(b)
    quotient += 1 if quotient < 0 and quotient * _divisor(b) != a else 0
    return 0 if b == 0 else (-a if b == -1 else quotient)


@inline
def floor_mod(a, b):
    return 0 if b == 0 or b == -1 else a % _divisor(b)


@inline
def trunc_mod(a, b):
    return 0 if b == 0 or b == -1 else a - trunc_div(a, b) * b
