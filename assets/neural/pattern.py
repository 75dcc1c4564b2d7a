"""The pattern that the network learns: inks that were combed on water, and that drift around a marble."""

from __future__ import annotations

from math import tau
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

INKS = np.array(
    [
        (0.06, 0.11, 0.26),  # indigo
        (0.07, 0.42, 0.50),  # teal
        (0.95, 0.89, 0.76),  # cream
        (0.90, 0.36, 0.22),  # vermilion
        (0.97, 0.73, 0.32),  # ochre
        (0.10, 0.24, 0.42),  # blue
    ]
)
WARPS = ((0.42, 1.9, 0.3), (0.26, 3.1, 1.7), (0.09, 4.7, 4.1))
"""How far the inks are combed, with how many waves, and where these begin."""
BANDS = 3.2
EDGE = 0.035
"""The width of an edge between two inks, in bands."""


def pattern(position: Array, phase: Array) -> Array:
    """The color, RGB in 0..1 (n, 3), at positions on the unit sphere (n, 3) and at phases of the loop, 0..1 (n, 1)."""
    angle = tau * phase
    p = position + 0.10 * np.concatenate([np.cos(angle), np.sin(angle), 0 * angle], 1)
    for far, waves, begin in WARPS:
        p = p + far * np.sin(waves * p[:, [1, 2, 0]] + begin + np.sin(angle + begin) * 0.35)
    height = p @ np.array([0.35, 1.0, -0.2]) + 0.25 * np.sin(2.0 * p[:, 0] + 1.0)
    band = BANDS * height + 40.0
    whole = np.floor(band)
    share = band - whole  # of a band, from the edge below to the edge above
    mixed = np.clip((share - (1 - EDGE)) / EDGE, 0, 1)[:, None]
    index = whole.astype(int) % len(INKS)
    inks = INKS[index] * (1 - mixed) + INKS[(index + 1) % len(INKS)] * mixed
    shade = 0.86 + 0.14 * np.sin(tau * share * 0.5)[:, None]  # inks are thicker amid a band
    return inks * shade
