"""Statistics and histograms of constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perframe.ir import Array

BINS = 32
SHOWN = 8  # elements of a small constant that are shown


@dataclass(frozen=True)
class Statistics:
    """The finite values of a constant: smallest, largest, mean, standard deviation, and the share of zeros.

    `others` counts NaN and infinities. `counts` has the elements in each of `BINS` bins of equal width.
    """

    smallest: float
    largest: float
    mean: float
    deviation: float
    zeros: float
    others: int
    counts: tuple[int, ...]


def statistics_of(value: Array) -> Statistics | None:
    """The statistics of a constant; None if it has no finite numbers."""
    if value.dtype.kind not in "fiub" and value.dtype.name not in ("bfloat16", "int4", "uint4"):
        return None
    numbers = value.reshape(-1)
    numbers = numbers.astype(np.float32 if value.dtype.kind not in "iu" or value.dtype.itemsize < 4 else np.float64)
    finite = np.isfinite(numbers)
    kept = numbers if finite.all() else numbers[finite]
    if not kept.size:
        return None
    low, high = float(kept.min()), float(kept.max())
    counts = np.histogram(kept, BINS, (low, high))[0] if low < high else np.array([kept.size])
    return Statistics(
        low,
        high,
        float(kept.mean(dtype=np.float64)),
        float(kept.std(dtype=np.float64)),
        float((kept == 0).mean()),
        int(numbers.size - kept.size),
        tuple(counts.tolist()),
    )


def shown_values(value: Array) -> str:
    """The first elements of a constant as text."""
    flat = value.reshape(-1)
    text = ", ".join(f"{one:.6g}" if value.dtype.kind == "f" else str(one) for one in flat[:SHOWN].tolist())
    return text + (", …" if flat.size > SHOWN else "")
