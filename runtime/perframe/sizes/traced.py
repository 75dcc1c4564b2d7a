"""Whole numbers whose making is followed: what is computed from one set of sizes becomes arithmetic with any.

Code that computes with ints computes with a `Size` as well. Where it branches on one, the trace notes the outcome as a
guard: the arithmetic holds for all sizes for which every guard comes out the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, TypeGuard, TypeVar

from perframe.sizes.arithmetic import DIVIDE, LARGER, NEGATIVE, SMALLER, ZERO, Rows, SizeArithmetic
from perframe.sizes.polynomials import Terms, add, multiply, scale, subtract, without

Found = TypeVar("Found")
Operation = tuple[int, Terms, Terms]  # what it does (see sizes/arithmetic.py), and with what

LEAST = 2  # of a followed size; 0 and 1 are numbers of their own, since broadcasting and emptiness hang on them


class Trace:
    """A computation that is followed while it is open. Its atoms are the sizes that it began with, and quotients."""

    def __init__(self, values: Sequence[int]) -> None:
        self.is_open = True
        self._operations: list[Operation | int] = []  # what each atom is, or which of the inputs
        self._known: dict[Any, Size] = {}
        self._lows: list[int | None] = []  # what each atom is at least, where that is known
        self._values: list[int] = []  # and is, in this computation
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
        """What a polynomial is in this computation."""
        return sum(count * math.prod([self._values[atom] for atom in product]) for product, count in terms.items())

    def low(self, terms: Terms, sign: int = 1) -> int | None:
        """What a polynomial (or its negative) is at least; None where that is not known."""
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
        """Whether a difference is zero (else: negative); noted where the sizes decide it."""
        outcome = value == 0 if equals else value < 0
        if not any(difference):  # a number
            return outcome
        least, most = self.low(difference), self.low(difference, -1)  # most: of the negative
        if (least is not None and least >= equals) or (most is not None and most > 0):
            return outcome
        if self.is_open:
            self._guards[equals, frozenset(difference.items())] = outcome
            if not equals:
                self._learn(difference, outcome)
        return outcome

    def _learn(self, difference: Terms, negative: bool) -> None:
        """What a guard on one atom says of the least that it can be: it decides later questions."""
        products = [product for product in difference if product]
        if len(products) != 1 or len(products[0]) != 1:
            return
        (atom,), count, rest = products[0], difference[products[0]], difference.get((), 0)
        if (count < 0) == negative:
            least = rest // -count + 1 if negative else -(rest // count)
            known = self._lows[atom]
            self._lows[atom] = least if known is None else max(known, least)

    def atom(self, operation: int, left: Terms, right: Terms, value: int) -> Any:
        """The atom that is an operation's result on two polynomials."""
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
        """The results from the sizes. Ends the trace."""
        self.is_open = False
        rows, atoms = Rows(len(self._given)), list[int]()
        for index, size in enumerate(self._given):
            if size >= LEAST:
                rows.guard(NEGATIVE, rows.plus(index, -LEAST), False)
            else:
                rows.guard(ZERO, rows.plus(index, -size), True)
        guards: dict[int, list[tuple[int, Terms, bool]]] = {}  # as early as their last atom is there
        for (equals, items), outcome in self._guards.items():
            last = max(atom for product, _ in items for atom in product)
            guards.setdefault(last, []).append((ZERO if equals else NEGATIVE, dict(items), outcome))
        for atom, formula in enumerate(self._operations):
            if isinstance(formula, int):
                atoms.append(formula)
            else:
                operation, left, right = formula
                atoms.append(rows.row(operation, rows.sum(left, atoms), rows.sum(right, atoms)))
            for guard, terms, outcome in guards.get(atom, ()):
                rows.guard(guard, rows.sum(terms, atoms), outcome)
        found = [rows.sum(x.terms if is_followed(x) else {(): x}, atoms) for x in results]
        self._known.clear()
        self._guards.clear()
        return rows.arithmetic(found)


def at_most(number: int, limit: int) -> int:
    """The smaller one, as a formula rather than a guard."""
    return _extreme(SMALLER, number, limit)


def at_least(number: int, limit: int) -> int:
    """The larger one, as a formula rather than a guard."""
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
    """1 where it is, else 0: as a formula rather than a guard."""
    return at_most(at_least(limit - number, 0), 1)


def known_factor(number: int) -> int:
    """A number that divides this one whatever the sizes are: itself, where it is no followed one."""
    return math.gcd(*number.terms.values()) if is_followed(number) else number


def is_followed(number: object) -> TypeGuard[Size]:
    """Whether a whole number belongs to a trace."""
    return type(number) is Size


def plain(number: int) -> int:
    """The bare value, for what every set of sizes gets anew: memory, and the numbers that kernels read."""
    return number.value if is_followed(number) else number


class FollowedKeyError(TypeError):
    """A size that is followed was to be found by its hash."""


def key_of(value: Any) -> Any:
    """What stands for a value in a table: tuples of their parts, and sizes that are followed of their terms."""
    if is_followed(value):
        return id(value.trace), frozenset(value.terms.items())
    return tuple(map(key_of, value)) if isinstance(value, tuple) else value


def look_up(table: Mapping[Any, Found], key: Any) -> tuple[Any, Found | None]:
    """What a table has for a key that may hold sizes that are followed, and the key under which it has it."""
    try:
        return key, table.get(key)
    except FollowedKeyError:
        key = key_of(key)
        return key, table.get(key)


def remembered(most: int) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """For a function of numbers and tuples: it remembers results, but for sizes that are followed."""

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
    """A whole number of a trace: an int to all that asks, a polynomial of the trace's atoms to the trace.

    Whatever takes its bare value (an index, a text, a float) makes the trace hold for this value alone.
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
        """The terms and the value of an operand; None where it is no whole number."""
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
        """Whether sign * (self - other) is zero (else: negative)."""
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
        """It has none: a set of numbers would tell by it whether a size is among them, and no guard would know."""
        raise FollowedKeyError("a size that is followed is in no set and no table: compare it, or use traced.look_up")

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
    """left // right: the terms that divide exactly are divided, a quotient of the rest is an atom."""
    (terms, value), (divisor, by) = left, right
    result = value // by
    if not trace.is_open:
        return result
    positive = (trace.low(divisor) or 0) > 0
    if positive and all(count < 0 for count in terms.values()):  # rounded up: -(-n // 8) is (n + 7) // 8
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
        trace.decide(divisor, by, True)  # for other sizes it may be zero
        exact = add(exact, trace.atom(DIVIDE, rest, divisor, value // by).terms)
    elif value // by:
        exact = add(exact, {(): value // by})
    return Size(trace, exact, result) if any(exact) else result


WHOLE = (int, Size)  # the types of whole numbers; others are converted
