"""Ranges of values, from histograms: a wide range clips nothing, and a narrow one has finer steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from perframe.errors import InputError
from perframe.ir import Array
from perframe.quantization.numbers import asymmetric, rounded
from perframe.tensor import DataType

BINS = 4096
Range = tuple[float, float]
_TRIED = np.linspace(0.1, 1, 46)  # fractions of a range
_PERCENT = 99.99


def _no_counts() -> Array:
    return np.zeros(BINS, np.int64)


@dataclass
class Histogram:
    """Counts of values in bins from -reach to reach, which is a power of two; and the least and the largest value."""

    low: float = 0.0
    high: float = 0.0
    reach: float = 0.0
    counts: Array = field(default_factory=_no_counts)

    def add(self, values: Array) -> None:
        """Count values. They must be finite."""
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        largest = max(-low, high)
        if largest > self.reach:
            self._widen(2.0 ** np.ceil(np.log2(largest)))
        if not self.reach:  # all values are 0
            return
        bins = ((values.reshape(-1) * np.float64(1 / self.reach) + 1) * (BINS / 2)).astype(np.int64)
        self.counts += np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)

    def _widen(self, reach: float) -> None:
        """Join bins, two by two, until they reach so far."""
        self.reach = self.reach or reach
        while self.reach < reach:
            joined = self.counts.reshape(-1, 2).sum(1)
            self.counts = _no_counts()
            self.counts[BINS // 4 : -BINS // 4] = joined
            self.reach *= 2

    @property
    def centres(self) -> Array:
        """The value in the middle of each bin."""
        middle: Array = (np.arange(BINS) + 0.5) * (2 * self.reach / BINS) - self.reach
        return middle


def joined(histograms: Sequence[Histogram]) -> Histogram:
    """The histogram of the values of several."""
    return reduce(_join, histograms, Histogram())


def _join(one: Histogram, other: Histogram) -> Histogram:
    reach = max(one.reach, other.reach)
    made = Histogram(min(one.low, other.low), max(one.high, other.high), reach, _no_counts())
    for given in (one, other):
        if given.reach:
            wide = Histogram(reach=given.reach, counts=given.counts)
            wide._widen(reach)
            made.counts = made.counts + wide.counts
    return made


def _min_max(found: Histogram, dtype: DataType) -> Range:
    """All values."""
    return found.low, found.high


def _percentile(found: Histogram, dtype: DataType) -> Range:
    """All values but a ten-thousandth: half of it at each end."""
    total = found.counts.cumsum()
    left = total[-1] * (1 - _PERCENT / 100) / 2
    first, last = np.searchsorted(total, left), np.searchsorted(total, total[-1] - left)
    low, high = found.centres[[min(first, BINS - 1), min(last, BINS - 1)]]
    return max(found.low, float(low)), min(found.high, float(high))


def _mse(found: Histogram, dtype: DataType) -> Range:
    """The part of the whole range with the least mean square error. The ends are chosen one after the other."""
    used = found.counts > 0  # most bins of a wide histogram are empty
    values, counts = found.centres[used], found.counts[used]

    def loss(low: float, high: float) -> float:
        scales = asymmetric(low, high, dtype)
        zero = 0.0 if scales.zero is None else float(scales.zero)
        back = (rounded(values, scales, dtype).astype(np.float64) - zero) * float(scales.scale)
        return float((np.square(back - values) * counts).sum())

    low, high = found.low, found.high
    high = min((found.high * part for part in _TRIED), key=lambda tried: loss(low, tried))
    low = min((found.low * part for part in _TRIED), key=lambda tried: loss(tried, high))
    return low, high


METHODS: dict[str, Callable[[Histogram, DataType], Range]] = {
    "min-max": _min_max,
    "percentile": _percentile,
    "mse": _mse,
}


def check_method(name: str) -> None:
    """Raise InputError for a method that is none."""
    if name not in METHODS:
        raise InputError(f"a method of ranges is one of {', '.join(METHODS)}, not {name!r}")


def range_of(found: Histogram, method: str, dtype: DataType) -> Range:
    """Return the range of a tensor's values. It holds 0. A tensor of zeros has the range 0 to 0."""
    if not found.reach:
        return 0.0, 0.0
    low, high = METHODS[method](found, dtype)
    return min(low, 0.0), max(high, 0.0)
