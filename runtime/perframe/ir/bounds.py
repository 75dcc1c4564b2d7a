"""Bounds of the inputs that say where to read or write: indices, and lengths of sequences.

The form of a layer with such inputs is `Bounded`. A number outside its bounds is an error. The plan finds it if the
numbers are known then, the CPU finds it in every run, and a GPU finds it in a run with checks (see tensor/checks.py).
In any other run on a GPU, a number outside its bounds reads 0 and writes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.errors import InferenceError
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Bounds:
    """The numbers of input `input` are rows with one column for each entry of `sizes`.

    The numbers of a column are indices into that many elements; with `from_end` a negative index counts from the end.
    A size of None bounds nothing. If `what` is "length", a number may also be equal to the size.
    """

    input: int
    sizes: tuple[int | None, ...]
    from_end: bool = True
    what: str = "index"

    def check(self, values: Any) -> None:
        """Raise InferenceError for the first number outside the bounds."""
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
