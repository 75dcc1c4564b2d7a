"""Symbolic sizes: integers that are polynomials of atoms.

An atom is a size that a computation begins with, or the quotient, the minimum or the maximum of two polynomials. Code
that computes with ints also computes with a `Size`. Its scope answers the questions on which code branches: the scope
of names (names.py) from bounds alone, a trace (trace.py) from the values of one computation, with a guard.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

from perframe.ir.sizes.arithmetic import LARGER, SMALLER
from perframe.ir.sizes.division import quotient
from perframe.ir.sizes.polynomials import Terms, add, multiply, scale, subtract
from perframe.ir.sizes.scope import Answer, NotKnownError, SizeScope

MAX_TERMS = 64  # of a polynomial in a scope without values; one with more is not known
MAX_PRODUCTS, MAX_DEGREE = 256, 64  # of two polynomials that are multiplied


class SymbolicKeyError(TypeError):
    """A symbolic size was hashed: used in a set, or as a key of a table."""


class Size:
    """A symbolic size.

    In a trace `value` is its value there, and the size passes for an int: any use as an int (as an index, a text, a
    float) makes the trace hold for this value alone. Without a value such a use raises NotKnownError.
    """

    __slots__ = ("scope", "terms", "value")

    def __init__(self, scope: SizeScope, terms: Terms, value: Answer = None) -> None:
        self.scope, self.terms, self.value = scope, terms, value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance(size, int)` holds for a size that has a value."""
        return Size if self.value is None else int

    def operand(self, other: Any) -> Terms | None:
        """Return the terms of an operand, or None where it is not an integer.

        Raises NotKnownError for a size of another scope.
        """
        if type(other) is Size:
            if other.scope is not self.scope:
                raise NotKnownError
            return other.terms
        if not isinstance(other, int) and not hasattr(other, "__index__"):
            return None
        number = other.__index__()
        return {(): number} if number else {}

    def _made(self, terms: Terms, value: Answer) -> Any:
        if not any(terms):
            return terms.get((), 0)
        if value is None and len(terms) > MAX_TERMS:
            return self.scope.unwieldy(self, None)
        return Size(self.scope, terms, value) if self.scope.is_open else value

    def __add__(self, other: Any) -> Any:
        right = self.operand(other)
        if right is None:
            return NotImplemented
        return self._made(add(self.terms, right), None if self.value is None else self.value + plain(other))

    def __mul__(self, other: Any) -> Any:
        right = self.operand(other)
        if isinstance(other, float):
            return self.__index__() * other
        if right is None:
            return NotImplemented
        value = None if self.value is None else self.value * plain(other)
        if not any(right):
            return self._made(scale(self.terms, right[()]), value) if right else 0
        if len(self.terms) * len(right) > MAX_PRODUCTS or _degree(self.terms) + _degree(right) > MAX_DEGREE:
            return self.scope.unwieldy(self, other)
        return self._made(multiply(self.terms, right), value)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self._made(scale(self.terms, -1), None if self.value is None else -self.value)

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        right = self.operand(other)
        if right is None:
            return NotImplemented
        return self._made(subtract(self.terms, right), None if self.value is None else self.value - plain(other))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __floordiv__(self, other: Any) -> Any:
        right = self.operand(other)
        return NotImplemented if right is None else self._divided(self.terms, right)

    def __rfloordiv__(self, other: Any) -> Any:
        left = self.operand(other)
        return NotImplemented if left is None else self._divided(left, self.terms)

    def _divided(self, terms: Terms, divisor: Terms) -> Any:
        value, by = self.scope.value(terms), self.scope.value(divisor)
        result = None if value is None or by is None else value // by
        return self._made(quotient(self.scope, terms, divisor), result) if self.scope.is_open else result

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def _decide(self, other: Any, equals: bool, sign: int = 1) -> Any:
        """Whether sign * (self - other) is zero (if `equals`) or negative."""
        right = self.operand(other)
        if right is None:
            if equals and not hasattr(other, "__float__"):
                return False
            bare = self.__index__()
            return bool(bare == other if equals else bare < other if sign > 0 else bare > other)
        difference = scale(subtract(self.terms, right), sign)
        value = None if self.value is None else sign * (self.value - plain(other))
        return self.scope.decide(difference, value, equals)

    def __eq__(self, other: object) -> Any:
        return self._decide(other, True)

    def __ne__(self, other: object) -> Any:
        return not self._decide(other, True)

    def __lt__(self, other: Any) -> Any:
        return self._decide(other, False)

    def __gt__(self, other: Any) -> Any:
        return self._decide(other, False, -1)

    def __le__(self, other: Any) -> Any:
        return not self._decide(other, False, -1)

    def __ge__(self, other: Any) -> Any:
        return not self._decide(other, False)

    def __bool__(self) -> bool:
        return not self._decide(0, True)

    def __hash__(self) -> int:
        """Raise SymbolicKeyError: a look-up by hash would compare sizes without a guard."""
        raise SymbolicKeyError("a symbolic size cannot be in a set or a table: compare it, or use tables.look_up")

    def __index__(self) -> int:
        return self.scope.used_as_int(self)

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __truediv__(self, other: Any) -> Any:
        return self.__index__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__index__()

    def __pow__(self, other: Any) -> Any:
        return self.__index__() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.__index__()

    def __repr__(self) -> str:
        return self.scope.text(self)

    def __format__(self, spec: str) -> str:
        return format(self.scope.text(self), spec) if self.value is None else format(self.__index__(), spec)


def _degree(terms: Terms) -> int:
    return max(map(len, terms), default=0)


def is_symbolic(number: object) -> TypeGuard[Size]:
    """Whether a number is a symbolic size."""
    return type(number) is Size


def plain(number: Any) -> int:
    """Return the value of a size in its trace, for what each set of sizes makes again: memory, and the numbers that
    kernels read.
    """
    return number.value if type(number) is Size else number  # type: ignore[return-value]


def specialized(number: int) -> int:
    """Return a number as an int, on purpose: a trace then holds for this value of a size alone."""
    if not is_symbolic(number):
        return number
    value = number.value
    if value is None:
        raise NotKnownError
    number.scope.decide(subtract(number.terms, {(): value} if value else {}), 0, True)
    return value


def at_most(number: int, limit: int) -> int:
    """Return the smaller number. With a symbolic size that is an operation, and not a question."""
    return _extreme(SMALLER, number, limit)


def at_least(number: int, limit: int) -> int:
    """Return the larger number. With a symbolic size that is an operation, and not a question."""
    return _extreme(LARGER, number, limit)


def _extreme(operation: int, left: int, right: int) -> int:
    smaller = operation == SMALLER
    if not (is_symbolic(left) or is_symbolic(right)):
        return (min if smaller else max)(left, right)
    size = left if is_symbolic(left) else right
    if not is_symbolic(size) or not size.scope.is_open:
        return (min if smaller else max)(plain(left), plain(right))
    scope, terms, others = size.scope, size.operand(left), size.operand(right)
    assert terms is not None and others is not None
    below = scope.low(subtract(others, terms))
    above = scope.low(subtract(terms, others))
    if below is not None and below >= 0:
        return left if smaller else right
    if above is not None and above >= 0:
        return right if smaller else left
    value = None if size.value is None else (min if smaller else max)(plain(left), plain(right))
    made: int = scope.atom(operation, terms, others, value)
    return made


def is_less(number: int, limit: int) -> int:
    """Return 1 if `number` is less than `limit`, else 0. With symbolic sizes these are operations, not a question."""
    return at_most(at_least(limit - number, 0), 1)


def surely_less(number: int, limit: int) -> bool:
    """Whether `number` is less than `limit` for all sizes. In a trace, whether it is less for the traced sizes."""
    try:
        return number < limit
    except NotKnownError:
        return False


def known_factor(number: int) -> int:
    """Return a number that divides this one for all sizes: a plain number itself."""
    return math.gcd(*number.terms.values()) if is_symbolic(number) else number
