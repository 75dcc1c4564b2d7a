"""The words that kernels read, by name: a lowering writes them, and a kernel reads them where the same name says.

This file does without Numba, since lowerings read it in the process with the frame loop. Numba takes the tuple of a
`Fields` for constants.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")

WINDOW = "height width out_height out_width kernel_y kernel_x stride_y stride_x dilation_y dilation_x pad_y pad_x"


class Fields:
    """The words of a kernel in order: the addresses of its operands, then its numbers. `at` has each name's index."""

    def __init__(self, operands: str, numbers: str) -> None:
        self._operands, self._numbers = operands.split(), numbers.split()
        names = [*self._operands, *self._numbers]
        self.at: Any = namedtuple("at", names)(*range(len(names)))

    def operands(self, **given: Value) -> list[Value]:
        """The operands in their order. Raises TypeError for a name that is missing or too much."""
        return _ordered(self._operands, given)

    def numbers(self, **given: int) -> list[int]:
        """The numbers in their order. Raises TypeError for a name that is missing or too much."""
        return _ordered(self._numbers, given)


def _ordered(names: Sequence[str], given: dict[str, Value]) -> list[Value]:
    if given.keys() != set(names):
        wrong = sorted(given.keys() ^ set(names))
        raise TypeError(f"a kernel's words are {', '.join(names)}; missing or too much: {', '.join(wrong)}")
    return [given[name] for name in names]


POOL = Fields("x out", f"counts_padding {WINDOW} end_y end_x")
LINES_POOL = Fields("x out", f"counts_padding {WINDOW} end_y end_x channels x_pitch out_pitch x_offset out_offset")
BYTE_POOL = Fields("x out", f"{WINDOW} channels")
DEPTHWISE = Fields(
    "x weights bias out", f"limits finish parameters {WINDOW} channels x_pitch out_pitch x_offset out_offset"
)
BYTE_DEPTHWISE = Fields("x weights bias factors offsets x_zero y_zero out", f"limits band {WINDOW} channels")
CONV = Fields("x weights bias out", f"parameters channels outputs groups {WINDOW}")
