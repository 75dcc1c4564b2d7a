"""What drawing needs: colours, smooth noise, and dots of paint."""

from __future__ import annotations

import numpy as np


def rgb(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def mix(a: np.ndarray, b: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """Colours between a and b; t is one number a pixel."""
    t = np.asarray(t, np.float32)[..., None]
    return a + (b - a) * t


def smoothstep(low: float, high: float, x: np.ndarray) -> np.ndarray:
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


class Noise:
    """Smooth random functions of the plane, all from one table."""

    def __init__(self, seed: int) -> None:
        self.table = np.random.default_rng(seed).random((256, 256), np.float32)

    def value(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Smooth noise in 0..1 with features of size 1."""
        column, row = np.floor(x), np.floor(y)
        u, v = (x - column).astype(np.float32), (y - row).astype(np.float32)
        u, v = u * u * u * (u * (u * 6 - 15) + 10), v * v * v * (v * (v * 6 - 15) + 10)
        i, j = column.astype(np.int32) & 255, row.astype(np.int32) & 255
        i1, j1 = (i + 1) & 255, (j + 1) & 255
        table = self.table
        near = table[j, i] + (table[j, i1] - table[j, i]) * u
        far = table[j1, i] + (table[j1, i1] - table[j1, i]) * u
        return near + (far - near) * v

    def layers(self, x: np.ndarray, y: np.ndarray, octaves: int, ridged: bool = False, gain: float = 0.5) -> np.ndarray:
        """A sum of ever finer noise, in 0..1. Ridged noise has sharp crests, and valleys stay smooth."""
        total, weight, size = np.zeros(np.broadcast(x, y).shape, np.float32), 1.0, 0.0
        carry: np.ndarray | float = 1.0
        for _ in range(octaves):
            level = self.value(x, y)
            if ridged:
                level = (1 - np.abs(2 * level - 1)) ** 2 * carry
                carry = np.clip(level * 1.6, 0, 1)
            total += weight * level
            size += weight
            weight *= gain
            # A turn between the octaves hides the grid of the table.
            x, y = 1.62 * x + 1.21 * y + 17.3, -1.21 * x + 1.62 * y + 5.7
        return total / size


class Stamps:
    """Dots of paint in order: later ones cover earlier ones, which is how near things hide far ones."""

    def __init__(self, image: np.ndarray) -> None:
        self.image = image

    def put(self, x: np.ndarray, y: np.ndarray, radius: np.ndarray, colour: np.ndarray) -> None:
        """Discs at x, y (pixels) with radii of at least half a pixel, in the order given."""
        height, width = self.image.shape[:2]
        reach = np.ceil(radius).astype(int)
        counts = (2 * reach + 1) ** 2
        which = np.repeat(np.arange(len(x)), counts)
        within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        side = 2 * reach[which] + 1
        column = np.round(x[which]).astype(int) + within % side - reach[which]
        row = np.round(y[which]).astype(int) + within // side - reach[which]
        inside = (column - x[which]) ** 2 + (row - y[which]) ** 2 <= radius[which] ** 2 + 0.2
        keep = inside & (column >= 0) & (column < width) & (row >= 0) & (row < height)
        self.image[row[keep], column[keep]] = colour[which[keep]]
