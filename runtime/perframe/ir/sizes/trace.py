"""Traces: one computation with sizes, recorded as arithmetic for any sizes.

A trace answers each question by the values of its computation, and notes the answer as a guard. The arithmetic holds
for all sizes for which every guard has the same outcome.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perframe.ir.sizes.arithmetic import NEGATIVE, ZERO, Rows, SizeArithmetic
from perframe.ir.sizes.polynomials import Terms
from perframe.ir.sizes.scope import Answer, Operation, SizeScope
from perframe.ir.sizes.size import Size, is_symbolic, specialized

LEAST = 2  # the least symbolic size; 0 and 1 stay plain numbers, since they decide broadcasting and emptiness
_HELPERS = (str(Path(__file__).parent), str(Path(np.__file__).parent))  # their lines are not those that use a size


class Trace(SizeScope):
    """Follows a computation while it is open. Atoms are the sizes at the begin, and quotients, minima and maxima.

    `losses` lists the lines of code that used a size as an int without `specialized`.
    """

    def __init__(self, values: Sequence[int]) -> None:
        self.losses: list[str] = []
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

    def least(self, atom: int) -> int | None:
        """Return a lower bound of an atom, or None where none is known."""
        return self._lows[atom]

    def operation(self, atom: int) -> Operation | None:
        """Return the operation that makes an atom and its operands, or None for a size at the begin."""
        found = self._operations[atom]
        return None if isinstance(found, int) else found

    def value(self, terms: Terms) -> int:
        """Return the value of a polynomial in this computation."""
        return sum(count * math.prod([self._values[atom] for atom in product]) for product, count in terms.items())

    def answer(self, difference: Terms, value: Answer, equals: bool) -> bool:
        """Whether a difference is zero (if `equals`) or negative in this computation. Notes a guard."""
        assert value is not None
        outcome = value == 0 if equals else value < 0
        if self.is_open:
            self._guards[equals, frozenset(difference.items())] = outcome
            if not equals:
                self._learn(difference, outcome)
        return outcome

    def used_as_int(self, size: Size) -> int:
        """Return the value of a size that code uses as an int: the arithmetic then holds for this value alone."""
        if self.is_open:
            frame = sys._getframe(2)
            while frame.f_back is not None and frame.f_code.co_filename.startswith(_HELPERS):
                frame = frame.f_back
            self.losses.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return specialized(size)  # type: ignore[arg-type]

    def text(self, size: Size) -> str:
        """Return the value of a size as a text: a use as an int."""
        return str(self.used_as_int(size))

    def unwieldy(self, left: Size, right: Any) -> int:
        """Return the product in this computation: the arithmetic then holds for these values alone."""
        return specialized(left) * specialized(right)  # type: ignore[arg-type]

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

    def atom(self, operation: int, left: Terms, right: Terms, value: Answer) -> Any:
        """Return the atom for the result of an operation on two polynomials."""
        assert value is not None
        key = operation, frozenset(left.items()), frozenset(right.items())
        found = self._known.get(key)
        if found is None:
            low = self.low_of(operation, left, right)
            found = self._known[key] = self._atom(value, low, (operation, dict(left), dict(right)))
        return found

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
        found = [rows.sum(x.terms if is_symbolic(x) else {(): x}, atoms) for x in results]
        self._known.clear()
        self._guards.clear()
        return rows.arithmetic(found)
