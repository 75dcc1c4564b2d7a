"""The code of a function that computes one pixel of a network: scalars, and the lines that make them.

A scalar is a number of one pixel: a constant, or a component of a variable. Lines make variables of up to four scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from perframe.errors import ModelError
from perframe.exporters.glsl.library import FormulaLibrary
from perframe.exporters.glsl.words import LETTERS, joined, literal, vector
from perframe.tensor import Array

MOST_WEIGHTS = 16_384  # a software driver takes half a minute to compile a function of this size


class Scalar(NamedTuple):
    """A scalar: its kind ("float", "int" or "bool"), its variable or constant, and its component; "" for all of it."""

    kind: str
    base: str
    component: str = ""

    @property
    def text(self) -> str:
        """The expression that reads it."""
        return f"{self.base}.{self.component}" if self.component else self.base


class PixelProgram:
    """The lines of a function, and all scalars by their numbers."""

    def __init__(self, prefix: str) -> None:
        self.library = FormulaLibrary(prefix)
        self.lines: list[str] = []
        self.weights = 0  # of products
        self._scalars: list[Scalar] = []
        self._constants: dict[tuple[str, str], int] = {}
        self._widths: dict[str, int] = {}  # of variables

    def __getitem__(self, number: int) -> Scalar:
        """The scalar of this number."""
        return self._scalars[number]

    def add(self, scalars: Sequence[Scalar], variable: str = "") -> list[int]:
        """Add scalars, which may be all components of a variable, and return their numbers."""
        if variable:
            self._widths[variable] = len(scalars)
        self._scalars += scalars
        return [*range(len(self._scalars) - len(scalars), len(self._scalars))]

    def constants(self, values: Array, kind: str) -> list[int]:
        """Return the numbers of constants. Raises ModelError for integers beyond 32 bits."""
        found = []
        for value in values.ravel():
            text = literal(value, kind)
            if (kind, text) not in self._constants:
                (self._constants[kind, text],) = self.add([Scalar(kind, text)])
            found.append(self._constants[kind, text])
        return found

    def computed(self, expressions: Sequence[str], kind: str) -> list[int]:
        """Add lines that compute expressions, and return the numbers of the results."""
        made = []
        for first in range(0, len(expressions), 4):
            four = [*expressions[first : first + 4]]
            made += self._variable(joined(four, kind), kind, len(four))
        return made

    def product(
        self, weights: Array, bias: Array | None, given: Sequence[int], finish: Callable[[str], str] | None
    ) -> list[int]:
        """Add lines that multiply `weights` (results, len(given)) with scalars, add `bias` (results) and apply `finish`
        to each result. Returns the numbers of the results.

        Raises ModelError if the program gets too many weights.
        """
        self.weights += weights.size
        if self.weights > MOST_WEIGHTS:
            raise ModelError(
                f"the products have {self.weights:,} weights up to here, and a function has at most {MOST_WEIGHTS:,}, "
                "since drivers compile it for long: make the layers narrower, or run the model with a Worker"
            )
        groups = [*self._groups(given)]
        made = []
        for first in range(0, len(weights), 4):
            rows = weights[first : first + 4]
            start = np.zeros(len(rows), np.float32) if bias is None else bias[first : first + 4]
            numbers = self._variable(joined([literal(value, "float") for value in start], "float"), "float", len(rows))
            name = self[numbers[0]].base
            for at, width, text in groups:
                self.lines.append(f"{name} += {self._multiplied(rows[:, at : at + width], text)};")
            if finish is not None:
                self.lines.append(f"{name} = {joined([finish(self[number].text) for number in numbers], 'float')};")
            made += numbers
        return made

    def joined(self, numbers: Sequence[int]) -> str:
        """Return an expression of the vector of 1 to 4 scalars of floats."""
        groups = [text for _, _, text in self._groups(numbers)]
        return groups[0] if len(groups) == 1 else joined([self[number].text for number in numbers], "float")

    def _variable(self, expression: str, kind: str, width: int) -> list[int]:
        name = f"v{len(self._widths)}"
        self.lines.append(f"{vector(kind, width)} {name} = {expression};")
        return self.add([Scalar(kind, name, LETTERS[at] if width > 1 else "") for at in range(width)], name)

    def _groups(self, given: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """Yield vectors that together hold scalars in order: (first, width, expression)."""
        first = 0
        while first < len(given):
            own = self[given[first]]
            part = [own]
            for number in given[first + 1 : first + 4]:
                if not own.component or self[number].base != own.base:
                    break
                part.append(self[number])
            components = "".join(scalar.component for scalar in part)
            is_whole = self._widths.get(own.base) == len(part) and components == LETTERS[: len(part)]
            yield first, len(part), own.base if is_whole or not components else f"{own.base}.{components}"
            first += len(part)

    def _multiplied(self, rows: Array, text: str) -> str:
        """The product of a matrix of up to 4 × 4 numbers with a vector, as an expression."""
        height, width = rows.shape
        numbers = [literal(value, "float") if value else self.library.call("zero") for value in rows.T.ravel()]
        if width == 1:
            return f"{joined(numbers, 'float')} * {text}"
        if height == 1:
            return f"dot({joined(numbers, 'float')}, {text})"
        return f"mat{width}{'' if width == height else f'x{height}'}({', '.join(numbers)}) * {text}"
