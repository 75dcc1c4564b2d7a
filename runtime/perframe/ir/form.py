"""Abilities of canonical forms. A form is any value; its class has these members where they apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from perframe.ir.bounds import Bounds
from perframe.ir.shape_arithmetic import Values
from perframe.ir.sizes.partial import PartialTensor


@runtime_checkable
class Bounded(Protocol):
    """A form whose inputs hold indices or lengths."""

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of these inputs."""


@runtime_checkable
class Counted(Protocol):
    """A form whose arithmetic is counted."""

    @property
    def operations(self) -> int:
        """Multiplications and additions."""


@runtime_checkable
class Followed(Protocol):
    """A form that computes values of shape arithmetic, known or symbolic."""

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of the output from those of the inputs."""


def check_bounds(form: object, inputs: Sequence[Any]) -> None:
    """Raise InferenceError if an array among a form's inputs reaches beyond its bounds. An input of None is skipped."""
    for bounds in form.bounds if isinstance(form, Bounded) else ():
        values = inputs[bounds.input] if bounds.input < len(inputs) else None
        if values is not None:
            bounds.check(values)
