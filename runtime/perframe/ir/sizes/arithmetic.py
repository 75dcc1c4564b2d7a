"""Arithmetic of sizes as rows. A row is one operation on earlier values.

Values are numbered: first the inputs, then constants, then the rows. `backends/cpu/kernels/arithmetic.py` evaluates
rows natively.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perframe.ir.sizes.polynomials import Terms
from perframe.safety.records import dataclass

# the operation of a row (operation, a, b, c); a, b and c are the numbers of values
MULTIPLY_ADD = 0  # a * b + c
DIVIDE = 1  # a // b
SMALLER, LARGER = 2, 3  # of a and b
ZERO, NEGATIVE = 4, 5  # a guard: the arithmetic holds if a is zero or negative; with 0 for b, if a is not

Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class SizeArithmetic:
    """The number of inputs, the constants, the rows, and the numbers of the values that are the results."""

    inputs: int
    constants: Sequence[int]
    rows: Sequence[Row]
    results: Sequence[int]

    def evaluate(self, inputs: Iterable[int]) -> list[int] | None:
        """Return the results; None if a guard does not hold."""
        values = [*inputs, *self.constants]
        for operation, a, b, c in self.rows:
            made = 0
            if operation == MULTIPLY_ADD:
                made = values[a] * values[b] + values[c]
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
    """Collects rows and constants, each once. Methods return the number of a value, for rows and for the results."""

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        self._rows: dict[Row, int] = {}
        self._constants: dict[int, int] = {}  # numbered from -1 down until `arithmetic` knows their count
        self._zero = self.constant(0)

    def constant(self, number: int) -> int:
        """Add a constant."""
        return self._constants.setdefault(number, -1 - len(self._constants))

    def row(self, operation: int, a: int, b: int, c: int = 0) -> int:
        """Add a row."""
        return self._rows.setdefault((operation, a, b, c), self._inputs + len(self._rows))

    def plus(self, a: int, number: int) -> int:
        """Add the sum of value `a` and a plain number."""
        return self.row(MULTIPLY_ADD, a, self.constant(1), self.constant(number))

    def guard(self, operation: int, a: int, outcome: bool) -> None:
        """Add a guard: the arithmetic holds only if the test of `a` has this outcome."""
        self.row(operation, a, int(outcome))

    def sum(self, terms: Terms, atoms: Sequence[int]) -> int:
        """Add a polynomial. `atoms` has the number of each atom's value."""
        made = self.constant(terms.get((), 0))
        for product, count in terms.items():
            if product:
                value = atoms[product[0]]
                for atom in product[1:]:
                    value = self.row(MULTIPLY_ADD, value, atoms[atom], self._zero)
                if count != 1 or made != self._zero:
                    value = self.row(MULTIPLY_ADD, value, self.constant(count), made)
                made = value
        return made

    def arithmetic(self, results: Iterable[int]) -> SizeArithmetic:
        """Return all rows and constants as arithmetic with these values as results."""

        def numbered(value: int) -> int:
            if value < 0:
                return self._inputs - 1 - value
            return value if value < self._inputs else value + len(self._constants)

        rows = [
            (operation, numbered(a), b if operation in (ZERO, NEGATIVE) else numbered(b), numbered(c))
            for operation, a, b, c in self._rows
        ]
        return SizeArithmetic(self._inputs, [*self._constants], rows, [*map(numbered, results)])
