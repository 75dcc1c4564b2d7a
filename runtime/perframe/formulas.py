"""Formulas of whole numbers as rows: each is one step of arithmetic on the values before it.

Values are numbered: first the inputs, then the rows. kernels/formulas.py computes the same natively.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perframe.polynomials import Terms

# what a row (operation, a, b, c) is, where a, b and c are values by their numbers
CONSTANT = 0  # the number a itself
MULTIPLY_ADD = 1  # a * b + c
DIVIDE = 2  # a // b
SMALLER, LARGER = 3, 4  # of a and b
ZERO, NEGATIVE = 5, 6  # a guard: the formulas hold where a is so, or with 0 for b where it is not

Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class Formulas:
    """Rows, and which values are the results."""

    inputs: int
    rows: Sequence[Row]
    results: Sequence[int]

    def evaluate(self, inputs: Iterable[int]) -> list[int] | None:
        """The results; None where a guard does not hold."""
        values = list(inputs)
        for operation, a, b, c in self.rows:
            made = 0
            if operation == MULTIPLY_ADD:
                made = values[a] * values[b] + values[c]
            elif operation == CONSTANT:
                made = a
            elif operation == DIVIDE:
                made = values[a] // values[b]
            elif operation == SMALLER:
                made = min(values[a], values[b])
            elif operation == LARGER:
                made = max(values[a], values[b])
            elif (values[a] == 0 if operation == ZERO else values[a] < 0) != b:
                return None
            values.append(made)
        return [values[index] for index in self.results]


class Rows:
    """Collects rows, each once."""

    def __init__(self, inputs: int) -> None:
        self.rows: list[Row] = []
        self._inputs, self._known = inputs, dict[Row, int]()
        self._zero = self.row(CONSTANT, 0)

    def row(self, operation: int, a: int, b: int = 0, c: int = 0) -> int:
        """The value of a row."""
        row = (operation, a, b, c)
        found = self._known.get(row)
        if found is None:
            found = self._known[row] = self._inputs + len(self.rows)
            self.rows.append(row)
        return found

    def sum(self, terms: Terms, atoms: Sequence[int]) -> int:
        """The value of a polynomial, whose atoms are these values."""
        number = terms.get((), 0)
        made = self.row(CONSTANT, number) if number else self._zero
        for product, count in terms.items():
            if product:
                value = atoms[product[0]]
                for atom in product[1:]:
                    value = self.row(MULTIPLY_ADD, value, atoms[atom], self._zero)
                if count != 1 or made != self._zero:
                    value = self.row(MULTIPLY_ADD, value, self.row(CONSTANT, count), made)
                made = value
        return made
