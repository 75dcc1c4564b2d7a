"""How far numbers of an input may reach that say where to read or write: indices, and lengths of sequences.

A form whose layer takes such numbers has `bounds`. One outside is an error: found when a plan is made where the numbers
are known then, by the CPU in every run, and on a GPU in a run that checks (see tensor/checks.py); else what is outside
is left out there: it reads 0, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perframe.errors import InferenceError


@dataclass(frozen=True)
class Bounds:
    """The numbers of input `input` are rows of as many columns as `sizes` has; those of a column are indices of so many
    elements, from the end where they are negative and may be (`from_end`). A size of None bounds nothing.

    Lengths (`what`) may be the size itself.
    """

    input: int
    sizes: tuple[int | None, ...]
    from_end: bool = True
    what: str = "index"

    def check(self, values: Any) -> None:
        """Raise InferenceError for the first number outside."""
        if not values.size or not self.sizes:
            return
        for column, size in zip(values.reshape(-1, len(self.sizes)).T, self.sizes, strict=True):
            if size is None:
                continue
            most = size if self.what == "length" else size - 1
            inside = (column >= (-size if self.from_end else 0)) & (column <= most)
            if not inside.all():
                bad = column[np.argmin(inside)]
                raise InferenceError(f"{self.what} {bad} reaches beyond {size} elements")


def check(form: Any, inputs: Sequence[Any]) -> None:
    """Raise InferenceError where a form's inputs, arrays, reach beyond their bounds; None is not looked at."""
    for bounds in getattr(form, "bounds", ()):
        values = inputs[bounds.input] if bounds.input < len(inputs) else None
        if values is not None:
            bounds.check(values)
