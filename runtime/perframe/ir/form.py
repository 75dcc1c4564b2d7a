"""Abilities of canonical forms. A form is any value; its class inherits those that apply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from perframe.ir.bounds import Bounds
from perframe.ir.shape_arithmetic import Values
from perframe.ir.sizes.partial import PartialTensor


class Bounded(ABC):
    """A form whose inputs hold indices or lengths."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of these inputs."""


class Counted(ABC):
    """A form whose arithmetic is counted."""

    @property
    @abstractmethod
    def operations(self) -> int:
        """Multiplications and additions."""


class Replacing(ABC):
    """A form whose output is its first input with other rows: all rows have the same number of elements."""

    @property
    @abstractmethod
    def replaced(self) -> int | None:
        """The number of replaced rows; None if old elements are combined with new ones, or have indices each."""


class Followed(ABC):
    """A form that computes values of shape arithmetic, known or symbolic."""

    @abstractmethod
    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of the output from those of the inputs."""


def check_bounds(form: object, inputs: Sequence[Any]) -> None:
    """Raise InferenceError if an array among a form's inputs reaches beyond its bounds. An input of None is skipped."""
    for bounds in form.bounds if isinstance(form, Bounded) else ():
        values = inputs[bounds.input] if bounds.input < len(inputs) else None
        if values is not None:
            bounds.check(values)
