"""When outputs agree with those of another runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.errors import BackendError

TOLERANCE = 1e-4  # of the largest value of an output
NOISE_FACTOR = 2  # or so many times what the other runtime's own optimizations change


def relative_difference(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    """The largest difference between two outputs, relative to the largest of theirs.

    Equal infinities do not differ, and NaN in one of the outputs alone is an infinite difference. Raises BackendError
    if the shapes differ.
    """
    if ours.shape != theirs.shape:
        raise BackendError(f"shape {ours.shape}, the peer's {theirs.shape}")
    a, b = ours.astype(float), theirs.astype(float)
    differs = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if not differs.any():
        return 0.0
    apart = np.abs(a[differs] - b[differs])
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=0))
    return float(np.max(apart)) / (largest or 1) if np.isfinite(apart).all() else float("inf")


def relative_differences(ours: Sequence[NDArray[Any]], theirs: Sequence[NDArray[Any]]) -> list[float]:
    """The relative difference of each output. Raises BackendError if their number or their shapes differ."""
    if len(ours) != len(theirs):
        raise BackendError(f"{len(ours)} outputs, the peer has {len(theirs)}")
    return [relative_difference(a, b) for a, b in zip(ours, theirs, strict=True)]


def agree(differences: Sequence[float], noise: Sequence[float] | None = None) -> bool:
    """Whether all outputs agree. `noise` is what the peer's own optimizations change, output by output."""
    allowed = [max(TOLERANCE, NOISE_FACTOR * one) for one in noise or [0.0] * len(differences)]
    return all(one <= most for one, most in zip(differences, allowed, strict=True))
