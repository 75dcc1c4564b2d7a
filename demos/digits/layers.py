"""The network with its activations as pictures, and the pen that writes its input."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe.functional.tensor import FunctionalTensor
from perframe.resources import resource

from ..common.models import sides

F = pf.functional
SIDE = 28  # pixels of the input
MOSAICS = {"edges": (4, 4), "parts": (4, 6), "shapes": (4, 16)}
"""Rows and columns in which the channels of a layer are laid out."""

Point = tuple[float, float]


def seen_inside() -> pf.Model:
    """`ink` (1, 1, 28, 28) → `probabilities` and a mosaic for each layer, all (1, 1, height, width) and 0..1.

    The file's outputs are the activations. What is added here lays their channels beside each other, so that a layer
    is one picture.
    """
    network = pf.load(resource("assets", "digits", "digits.onnx"), dims={"batch": 1})
    graph = pf.FunctionalGraph("digits")
    ink = graph.add_input("float32", (1, 1, SIDE, SIDE), "ink")
    found = dict(zip(network.output_names, F.forward(network, ink), strict=True))
    graph.add_output(found["probabilities"].reshape(1, 1, 1, 10), "probabilities")
    graph.add_outputs(**{name: mosaic(found[name], *tiles) for name, tiles in MOSAICS.items()})
    return graph.compile()


def mosaic(activations: FunctionalTensor, rows: int, columns: int) -> FunctionalTensor:
    """(1, rows * columns, h, w), or without h and w, → (1, 1, rows * h, columns * w); the brightest is 1."""
    height, width = sides(activations)[2:] if len(activations.shape) == 4 else (1, 1)
    tiles = activations.reshape(rows, columns, height, width).permute(0, 2, 1, 3)
    picture = tiles.reshape(1, 1, rows * height, columns * width)
    return picture / (F.amax(picture) + 1e-3)


class Pen:
    """Ink on SIDE × SIDE pixels: strokes between points in 0..1, as round as the pixels allow."""

    def __init__(self, radius: float = 1.3) -> None:
        self._radius = radius
        self.ink = np.zeros((1, 1, SIDE, SIDE), np.float32)
        down, across = np.mgrid[:SIDE, :SIDE] + 0.5
        self._pixels = np.stack([across, down], -1)

    def draw(self, start: Point, end: Point) -> None:
        """Draw a line."""
        first, last = np.array(start) * SIDE, np.array(end) * SIDE
        along = last - first
        part = np.clip((self._pixels - first) @ along / max(along @ along, 1e-9), 0, 1)
        away = np.linalg.norm(self._pixels - first - part[..., None] * along, axis=-1)
        covered = np.clip(self._radius + 0.5 - away, 0, 1)
        self.ink[0, 0] = np.maximum(self.ink[0, 0], covered)

    def wipe(self) -> None:
        """Begin on a clean sheet."""
        self.ink[:] = 0
