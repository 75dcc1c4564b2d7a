"""Warm-ups that continue from call to call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perframe.errors import InputError
from perframe.safety.records import dataclass


@dataclass
class Warming:
    """An unfinished warm-up for inputs of these shapes. `run` is the number of its run, or 0 before that."""

    shapes: dict[str, Any]
    steps: Iterator[int | None]  # None while kernels compile, and nothing else is left to do
    run: int = 0

    def goes_on(self, shapes: dict[str, Any], runs: int) -> bool:
        """Whether it can continue: it is for these shapes, and no other run has begun since its own."""
        return self.shapes == shapes and self.run in (0, runs)


def check_budget(budget_ms: Any) -> None:
    """Raise InputError for a budget that is not a number of milliseconds."""
    if not isinstance(budget_ms, int | float) or not budget_ms >= 0:
        raise InputError(f"budget_ms is a number of milliseconds of at least 0, and got {budget_ms!r}")
