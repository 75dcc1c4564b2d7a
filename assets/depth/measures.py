"""How wrong depth is that is known but for its scale and shift, and the guesses to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def aligned(found: Array, wanted: Array) -> Array:
    """`found` by the scale and the shift that bring it closest to `wanted`."""
    guesses = np.stack([found.ravel(), np.ones(found.size)], 1)
    best: Array = (guesses @ np.linalg.lstsq(guesses, wanted.ravel(), rcond=None)[0]).reshape(wanted.shape)
    return best


def relative_error(found: Array, wanted: Array) -> float:
    """The mean error after scale and shift, of the mean error of the best constant: 0 is right, and 1 knows nothing."""
    return float(np.abs(aligned(found, wanted) - wanted).mean() / np.abs(wanted - np.median(wanted)).mean())


def sloped(wanted: Array) -> Array:
    """The plane that is closest to these inverse distances: the best guess that knows only a pixel's place."""
    rows, columns = np.indices(wanted.shape)
    guesses = np.stack([rows.ravel(), columns.ravel(), np.ones(wanted.size)], 1)
    plane: Array = (guesses @ np.linalg.lstsq(guesses, wanted.ravel(), rcond=None)[0]).reshape(wanted.shape)
    return plane


def disorder(found: Array, wanted: Array, random: np.random.Generator) -> float:
    """The share of pairs of pixels, 10 % apart in distance or more, of which the wrong one is nearer."""
    one, other = random.integers(wanted.size, size=(2, 20_000))
    a, b = wanted.ravel()[one], wanted.ravel()[other]
    differ = np.maximum(a, b) > 1.1 * np.minimum(a, b)
    return float(((found.ravel()[one] > found.ravel()[other]) != (a > b))[differ].mean())
