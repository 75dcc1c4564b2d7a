"""Scopes: where the atoms of symbolic sizes belong, and who answers questions about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from perframe.ir.sizes.arithmetic import LARGER, SMALLER
from perframe.ir.sizes.polynomials import Terms, subtract

Answer = int | None  # the value of a polynomial; None in a scope without values
Operation = tuple[int, Terms, Terms]  # an operation of ir/sizes/arithmetic.py, and its two operands


class NotKnownError(Exception):
    """The answer to a question depends on sizes that are not known."""


class SizeScope(ABC):
    """The atoms of some sizes, and the answers to questions about polynomials of these atoms."""

    is_open = True  # if false, arithmetic makes plain numbers

    @abstractmethod
    def least(self, atom: Any) -> int | None:
        """Return a lower bound of an atom, or None where none is known."""

    @abstractmethod
    def atom(self, operation: int, left: Terms, right: Terms, value: Answer) -> Any:
        """Return the size that an operation of ir/sizes/arithmetic.py makes of two polynomials."""

    @abstractmethod
    def operation(self, atom: Any) -> Operation | None:
        """Return the operation that makes an atom and its operands, or None for a size that is given."""

    @abstractmethod
    def value(self, terms: Terms) -> Answer:
        """Return the value of a polynomial, or None in a scope without values."""

    @abstractmethod
    def answer(self, difference: Terms, value: Answer, equals: bool) -> bool:
        """Whether a difference is zero (if `equals`) or negative, where bounds do not say it.

        Raises NotKnownError in a scope without values.
        """

    @abstractmethod
    def used_as_int(self, size: Any) -> int:
        """Return the value of a size that code uses as an int. Raises NotKnownError in a scope without values."""

    @abstractmethod
    def text(self, size: Any) -> str:
        """Return a size as a text."""

    @abstractmethod
    def unwieldy(self, left: Any, right: Any) -> Any:
        """Return the product of two sizes that would have too many terms or factors."""

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
                low = self.least(atom)
                if low is None or low < 0:
                    return None
                least *= low
            total += least
        return total

    def decide(self, difference: Terms, value: Answer, equals: bool) -> bool:
        """Whether a difference is zero (if `equals`) or negative. Raises NotKnownError where the scope cannot say."""
        if not any(difference):  # a number
            number = difference.get((), 0)
            return number == 0 if equals else number < 0
        least = self.low(difference)
        if least is not None and least >= equals:
            return False
        most = self.low(difference, -1)  # a lower bound of the negative
        if most is not None and most > 0:
            return not equals
        return self.answer(difference, value, equals)

    def low_of(self, operation: int, left: Terms, right: Terms) -> int | None:
        """Return a lower bound of the result of an operation on two polynomials, or None where none is known."""
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
