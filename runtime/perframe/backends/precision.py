"""How many bits a backend keeps of a float32 number. Sums are float32 in any case."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from perframe.backends.operand import Array
from perframe.errors import InputError
from perframe.safety.records import dataclass
from perframe.tensor import DataType

BFLOAT16 = "bfloat16"
_HELD = (DataType.FLOAT32, DataType.FLOAT16)
_CHOICES = {"weights": _HELD, "activations": (*_HELD, BFLOAT16)}
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Precision:
    """The dtypes in which a backend keeps float32 numbers: its weights, and the values between layers.

    With activations of "bfloat16", the CPU rounds what products and convolutions multiply; all else stays float32.
    Raises InputError for other dtypes than "float32", "float16" and, for activations, "bfloat16".
    """

    weights: str = DataType.FLOAT32
    activations: str = DataType.FLOAT32

    def __post_init__(self) -> None:
        for field in fields(self):
            given, choices = getattr(self, field.name), _CHOICES[field.name]
            if given not in choices:
                raise InputError(f"{field.name}={given!r} is neither {' nor '.join(map(repr, map(str, choices)))}")

    @property
    def has_halves(self) -> bool:
        """Whether any numbers are kept in float16."""
        return DataType.FLOAT16 in (self.weights, self.activations)

    @property
    def rounds(self) -> bool:
        """Whether products round what they multiply to bfloat16."""
        return self.activations == BFLOAT16

    def halves_value(self, dtype: DataType) -> bool:
        """Whether a value between layers is kept in float16."""
        return self.activations == DataType.FLOAT16 and dtype is DataType.FLOAT32

    def halves_weight(self, value: Array, is_half: bool = False) -> bool:
        """Whether a weight is kept in float16: the file `is_half` or the user asks for it, and the numbers fit."""
        wanted = self._may_halve(value) or (is_half and value.dtype == np.float32 and value.size > 0)
        return wanted and largest_beyond_half(value) is None

    def why_whole(self, value: Array) -> str | None:
        """The reason why a weight stays float32 against the user's wish, or None."""
        beyond = largest_beyond_half(value) if self._may_halve(value) else None
        return None if beyond is None else f"it holds {beyond:.6g}, and float16 holds up to {_LARGEST:,.0f}"

    def _may_halve(self, value: Array) -> bool:
        return self.weights == DataType.FLOAT16 and value.dtype == np.float32 and value.size > 0


FULL = Precision()


def largest_beyond_half(value: Array) -> float | None:
    """The number of the largest size among those that float16 cannot hold, infinities and NaN among them; None if it
    holds them all.
    """
    largest = max(value.max(), value.min(), key=abs)  # NaN if there is one
    return None if abs(largest) <= _LARGEST else float(largest)
