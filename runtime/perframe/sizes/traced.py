"""Followed numbers: a trace records what is computed from one set of sizes, as arithmetic for any sizes.

Code that computes with ints also computes with a `Size`. Where code branches on a `Size`, the trace notes the outcome
as a guard. The arithmetic holds for all sizes for which every guard has the same outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeGuard, TypeVar

from perframe.sizes.arithmetic import DIVIDE, LARGER, NEGATIVE, SMALLER, ZERO, Rows, SizeArithmetic
from perframe.sizes.polynomials import Terms, add, multiply, scale, subtract, without

Found = TypeVar("Found")
Operation = tuple[int, Terms, Terms]  # an operation of sizes/arithmetic.py, and its two operands

LEAST = 2  # the least followed size; 0 and 1 stay plain numbers, since they decide broadcasting and emptiness


class Trace:
    """Follows a computation while it is open. Atoms are the sizes at the begin, and quotients, minima and maxima."""

    def __init__(self, values: Sequence[int]) -> None:
        self.is_open = True
        self._operations: list[Operation | int] = []  # the operation that makes each atom, or the index of an input
        self._known: dict[Any, Size] = {}
        self._lows: list[int | None] = []  # a lower bound of each atom, where one is known
        self._values: list[int] = []  # the value of each atom in this computation
        self._guards: dict[tuple[bool, frozenset[Any]], bool] = {}
        self._given = list(values)
        self.sizes: list[int] = [
            self._atom(value, LEAST, index) if value >= LEAST else value for index, value in enumerate(values)
        ]

    def _atom(self, value: int, low: int | None, operation: Operation | int) -> Any:
        self._operations.append(operation)
        self._lows.append(low)
        self._values.append(value)
        return Size(self, {(len(self._lows) - 1,): 1}, value)

    def value(self, terms: Terms) -> int:
        """Return the value of a polynomial in this computation."""
        return sum(count * math.prod([self._values[atom] for atom in product]) for product, count in terms.items())

    def low(self, terms: Terms, sign: int = 1) -> int | None:
        """Return a lower bound of a polynomial (or of its negative), or None where none is known."""
        total = 0
        for product, count in terms.items():
            if not product:
                total += sign * count
                continue
            if sign * count < 0:
                return None
            least = sign * count
            for atom in product:
                low = self._lows[atom]
                if low is None or low < 0:
                    return None
                least *= low
            total += least
        return total

    def decide(self, difference: Terms, value: int, equals: bool) -> bool:
        """Whether a difference is zero (if `equals`) or negative. If that depends on the sizes, note a guard."""
        outcome = value == 0 if equals else value < 0
        if not any(difference):  # a number
            return outcome
        least, most = self.low(difference), self.low(difference, -1)  # `most` is a lower bound of the negative
        if (least is not None and least >= equals) or (most is not None and most > 0):
            return outcome
        if self.is_open:
            self._guards[equals, frozenset(difference.items())] = outcome
            if not equals:
                self._learn(difference, outcome)
        return outcome

    def _learn(self, difference: Terms, negative: bool) -> None:
        """Raise the lower bound of an atom where a guard on it alone allows that. The bound decides later questions."""
        products = [product for product in difference if product]
        if len(products) != 1 or len(products[0]) != 1:
            return
        (atom,), count, rest = products[0], difference[products[0]], difference.get((), 0)
        if (count < 0) == negative:
            least = rest // -count + 1 if negative else -(rest // count)
            known = self._lows[atom]
            self._lows[atom] = least if known is None else max(known, least)

    def atom(self, operation: int, left: Terms, right: Terms, value: int) -> Any:
        """Return the atom for the result of an operation on two polynomials."""
        key = operation, frozenset(left.items()), frozenset(right.items())
        found = self._known.get(key)
        if found is None:
            low = self._low_of(operation, left, right)
            found = self._known[key] = self._atom(value, low, (operation, dict(left), dict(right)))
        return found

    def _low_of(self, operation: int, left: Terms, right: Terms) -> int | None:
        lows = self.low(left), self.low(right)
        if operation == LARGER:
            return max((low for low in lows if low is not None), default=None)
        if lows[0] is None or lows[1] is None:
            return None
        if operation == SMALLER:
            return min(lows[0], lows[1])
        if lows[0] < 0 or lows[1] <= 0:
            return None
        if not any(right):
            return lows[0] // lows[1]
        more = self.low(subtract(left, right))
        return int(more is not None and more >= 0)

    def arithmetic(self, results: Sequence[int]) -> SizeArithmetic:
        """Return the arithmetic that computes the results from the sizes. Ends the trace."""
        self.is_open = False
        rows, atoms = Rows(len(self._given)), list[int]()
        for index, size in enumerate(self._given):
            if size >= LEAST:
                rows.guard(NEGATIVE, rows.plus(index, -LEAST), False)
            else:
                rows.guard(ZERO, rows.plus(index, -size), True)
        guards: dict[int, list[tuple[int, Terms, bool]]] = {}  # by their last atom: each guard comes right after it
        for (equals, items), outcome in self._guards.items():
            last = max(atom for product, _ in items for atom in product)
            guards.setdefault(last, []).append((ZERO if equals else NEGATIVE, dict(items), outcome))
        for atom, source in enumerate(self._operations):
            if isinstance(source, int):
                atoms.append(source)
            else:
                operation, left, right = source
                atoms.append(rows.row(operation, rows.sum(left, atoms), rows.sum(right, atoms)))
            for guard, terms, outcome in guards.get(atom, ()):
                rows.guard(guard, rows.sum(terms, atoms), outcome)
        found = [rows.sum(x.terms if is_followed(x) else {(): x}, atoms) for x in results]
        self._known.clear()
        self._guards.clear()
        return rows.arithmetic(found)


def at_most(number: int, limit: int) -> int:
    """Return the smaller number. The trace follows it as an operation, and not as a guard."""
    return _extreme(SMALLER, number, limit)


def at_least(number: int, limit: int) -> int:
    """Return the larger number. The trace follows it as an operation, and not as a guard."""
    return _extreme(LARGER, number, limit)


def _extreme(operation: int, left: int, right: int) -> int:
    choose: Callable[[int, int], int] = min if operation == SMALLER else max
    size = left if is_followed(left) else right
    if not is_followed(size) or not size.trace.is_open:
        return choose(plain(left), plain(right))
    (terms, value), (others, other) = _operand(size, left), _operand(size, right)
    below = size.trace.low(subtract(others, terms))
    above = size.trace.low(subtract(terms, others))
    if below is not None and below >= 0:
        return left if operation == SMALLER else right
    if above is not None and above >= 0:
        return right if operation == SMALLER else left
    made: int = size.trace.atom(operation, terms, others, choose(value, other))
    return made


def _operand(size: Size, number: int) -> tuple[Terms, int]:
    found = size.operand(number)
    assert found is not None
    return found


def is_less(number: int, limit: int) -> int:
    """Return 1 if `number` is less than `limit`, else 0. The trace follows it as operations, and not as a guard."""
    return at_most(at_least(limit - number, 0), 1)


def known_factor(number: int) -> int:
    """Return a number that divides this one for all sizes: a plain number itself."""
    return math.gcd(*number.terms.values()) if is_followed(number) else number


def is_followed(number: object) -> TypeGuard[Size]:
    """Whether an integer belongs to a trace."""
    return type(number) is Size


def plain(number: int) -> int:
    """Return the bare value, for what each set of sizes makes again: memory, and the numbers that kernels read."""
    return number.value if is_followed(number) else number


class FollowedKeyError(TypeError):
    """A symbolic size was hashed: used in a set, or as a key of a table."""


def key_of(value: Any) -> Any:
    """Return a key for a value in a table. The terms stand for a symbolic size; tuples become tuples of keys."""
    if is_followed(value):
        return id(value.trace), frozenset(value.terms.items())
    return tuple(map(key_of, value)) if isinstance(value, tuple) else value


def look_up(table: Mapping[Any, Found], key: Any) -> tuple[Any, Found | None]:
    """Look up a key that may hold symbolic sizes. Return the key for the table, and the value or None."""
    try:
        return key, table.get(key)
    except FollowedKeyError:
        key = key_of(key)
        return key, table.get(key)


def remembered(most: int) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """Decorate a function of numbers and tuples: it remembers up to `most` results, none for symbolic sizes."""

    def decorate(function: Callable[..., Found]) -> Callable[..., Found]:
        known = lru_cache(most)(function)

        @wraps(function)
        def call(*arguments: Any) -> Found:
            try:
                return known(*arguments)
            except FollowedKeyError:
                return function(*arguments)

        return call

    return decorate


class Size:
    """A symbolic size. Other code sees an int; the trace sees a polynomial of its atoms.

    Any use of the bare value (as an index, a text, a float) makes the trace hold for this value alone.
    """

    __slots__ = ("terms", "trace", "value")
    __class__ = property(lambda self: int)  # isinstance(size, int) holds

    def __init__(self, trace: Trace, terms: Terms, value: int) -> None:
        self.trace, self.terms, self.value = trace, terms, value

    def _made(self, terms: Terms, value: int) -> Any:
        if not self.trace.is_open or not any(terms):
            return value
        return Size(self.trace, terms, value)

    def operand(self, other: Any) -> tuple[Terms, int] | None:
        """Return the terms and the value of an operand, or None where it is not an integer."""
        if is_followed(other) and other.trace is self.trace:
            return other.terms, other.value
        if not isinstance(other, int) and not hasattr(other, "__index__"):
            return None
        number = other.__index__()
        return {(): number} if number else {}, number

    def __add__(self, other: Any) -> Any:
        right = self.operand(other)
        return NotImplemented if right is None else self._made(add(self.terms, right[0]), self.value + right[1])

    def __mul__(self, other: Any) -> Any:
        right = self.operand(other)
        if isinstance(other, float):
            return self.__index__() * other
        return NotImplemented if right is None else self._made(multiply(self.terms, right[0]), self.value * right[1])

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        right = self.operand(other)
        if right is None:
            return NotImplemented
        return self._made(subtract(self.terms, right[0]), self.value - right[1])

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __floordiv__(self, other: Any) -> Any:
        right = self.operand(other)
        return NotImplemented if right is None else _divide(self.trace, (self.terms, self.value), right)

    def __rfloordiv__(self, other: Any) -> Any:
        left = self.operand(other)
        return NotImplemented if left is None else _divide(self.trace, left, (self.terms, self.value))

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def _decide(self, other: Any, equals: bool, sign: int = 1) -> bool:
        """Whether sign * (self - other) is zero (if `equals`) or negative."""
        right = self.operand(other)
        if right is None and equals and not hasattr(other, "__float__"):
            return False
        if right is None:
            bare = self.__index__()
            return bool(bare == other if equals else bare < other if sign > 0 else bare > other)
        difference = subtract(self.terms, right[0])
        return self.trace.decide(scale(difference, sign), sign * (self.value - right[1]), equals)

    def __eq__(self, other: Any) -> bool:
        return self._decide(other, True)

    def __ne__(self, other: Any) -> bool:
        return not self._decide(other, True)

    def __lt__(self, other: Any) -> bool:
        return self._decide(other, False)

    def __gt__(self, other: Any) -> bool:
        return self._decide(other, False, -1)

    def __le__(self, other: Any) -> bool:
        return not self._decide(other, False, -1)

    def __ge__(self, other: Any) -> bool:
        return not self._decide(other, False)

    def __bool__(self) -> bool:
        return not self._decide(0, True)

    def __hash__(self) -> int:
        """Raise FollowedKeyError: a look-up by hash would compare sizes without a guard."""
        raise FollowedKeyError("a symbolic size cannot be in a set or a table: compare it, or use traced.look_up")

    def __index__(self) -> int:
        self._decide(self.value, True)
        return self.value

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
        return str(self.__index__())

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)


def _divide(trace: Trace, left: tuple[Terms, int], right: tuple[Terms, int]) -> Any:
    """Return left // right: divide the terms that divide exactly, and make an atom of the quotient of the rest."""
    (terms, value), (divisor, by) = left, right
    result = value // by
    if not trace.is_open:
        return result
    positive = (trace.low(divisor) or 0) > 0
    if positive and all(count < 0 for count in terms.values()):  # round up: -(-n // 8) is (n + 7) // 8
        up = subtract(subtract(divisor, terms), {(): 1})
        return -_divide(trace, (up, by - 1 - value), right)
    if positive and len(divisor) == 1:
        ((product, times),) = divisor.items()
        exact: Terms = {}
        for factors, count in terms.items():
            left_over = None if count % times else without(factors, product)
            if left_over is not None:
                exact[left_over] = count // times
        taken = multiply(exact, divisor)
        rest = {factors: count for factors, count in terms.items() if factors not in taken}
        value -= trace.value(taken)
    else:
        exact, rest = {}, terms
    if any(rest) or (rest and any(divisor)):
        trace.decide(divisor, by, True)  # a guard, since the divisor may be zero for other sizes
        exact = add(exact, trace.atom(DIVIDE, rest, divisor, value // by).terms)
    elif value // by:
        exact = add(exact, {(): value // by})
    return Size(trace, exact, result) if any(exact) else result


WHOLE = (int, Size)  # the types of integers; shapes convert all others
