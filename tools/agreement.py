"""Agreement of a model's outputs with those of another runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.tensor import Array

TOLERANCE = 1e-4  # of the largest value of an output
MOST_FACTS = 16  # numbers of a row by which it is found
NOISE_FACTOR = 2  # or this multiple of what the other runtime's own optimizations change


def in_their_order(ours: Sequence[Array], theirs: Sequence[Array]) -> list[Array] | None:
    """Our outputs with their rows in the peer's order, or None if outputs are not lists of the same things.

    The boxes, classes and scores of a detector are such lists. Two detections of equal scores may change places by
    rounding. Each row of theirs must be nearest to another one of ours.
    """
    count = {array.shape[:1] for array in (*ours, *theirs)}
    if len(theirs) < 2 or len(count) != 1 or count <= {(), (0,), (1,)}:
        return None
    small = [
        (a, b) for a, b in zip(ours, theirs, strict=True) if b.size <= MOST_FACTS * len(b) and b.dtype.kind in "iuf"
    ]
    if not small:
        return None
    scales = [float(np.abs(b).max()) or 1.0 for _, b in small]
    a, b = (
        np.hstack([pair[side].reshape(len(pair[side]), -1) / scale for pair, scale in zip(small, scales, strict=True)])
        for side in (0, 1)
    )
    nearest = [int(np.abs(a - row).max(1).argmin()) for row in b]
    return [array[nearest] for array in ours] if len(set(nearest)) == len(nearest) else None


def agree(differences: Sequence[float], noise: Sequence[float] | None = None) -> bool:
    """Whether all outputs agree. `noise` is what the peer's own optimizations change, output by output."""
    allowed = [max(TOLERANCE, NOISE_FACTOR * one) for one in noise or [0.0] * len(differences)]
    return all(one <= most for one, most in zip(differences, allowed, strict=True))
