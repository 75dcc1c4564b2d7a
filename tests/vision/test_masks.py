"""Masks in another size: smoothstep at edges, and a guided filter that follows the edges of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Draw
from perframe.vision import upsample_mask
from vision.running import close, run

draw = Draw(74)


def linear(x: Any, rows: int, columns: int) -> Any:
    """Bilinear samples at the centers of pixels, edges repeated."""
    result = np.zeros((*x.shape[:2], rows, columns))
    height, width = x.shape[2:]
    for i in range(rows):
        for j in range(columns):
            y = min(max((i + 0.5) * height / rows - 0.5, 0), height - 1)
            z = min(max((j + 0.5) * width / columns - 0.5, 0), width - 1)
            a, b = int(y), int(z)
            c, d = min(a + 1, height - 1), min(b + 1, width - 1)
            top = x[..., a, b] * (1 - z + b) + x[..., a, d] * (z - b)
            low = x[..., c, b] * (1 - z + b) + x[..., c, d] * (z - b)
            result[..., i, j] = top * (1 - y + a) + low * (y - a)
    return result


def mean(x: Any, radius: int) -> Any:
    """The mean of the window around each element, of the elements that there are."""
    result = np.zeros_like(x)
    for i in range(x.shape[2]):
        for j in range(x.shape[3]):
            window = x[..., max(i - radius, 0) : i + radius + 1, max(j - radius, 0) : j + radius + 1]
            result[..., i, j] = window.mean((-2, -1))
    return result


@pytest.mark.parametrize("edge", [None, (0.25, 0.75), (0.4, 0.6)])
def test_smoothstep(edge: Any, backend: str, backend_context: Any) -> None:
    mask = draw(2, 3, 5, 7, low=0, high=1)
    (found,) = run(lambda m: upsample_mask(m, (11, 23), edge=edge), {"m": mask}, backend, backend_context)
    wanted = linear(mask.astype(float), 11, 23)
    if edge:
        t = np.clip((wanted - edge[0]) / (edge[1] - edge[0]), 0, 1)
        wanted = 3 * t**2 - 2 * t**3
    close(found, wanted, 1e-4)


def test_guided_filter(backend: str, backend_context: Any) -> None:
    mask, guide = draw(2, 1, 6, 8, low=0, high=1), draw(2, 3, 12, 16, low=0, high=1)
    arrays = {"m": mask, "g": guide}

    def make(m: Any, g: Any) -> Any:
        return upsample_mask(m, (12, 16), edge=None, guide=g, radius=2, epsilon=0.01)

    (found,) = run(make, arrays, backend, backend_context)
    gray, p = guide.astype(float).mean(1, keepdims=True), mask.astype(float)
    small = np.asarray(
        pf.run(_shrunk(), {"x": gray.astype(np.float32)})["y"], float
    )  # antialiased: tested with the layer
    variance = mean(small**2, 2) - mean(small, 2) ** 2
    slope = (mean(small * p, 2) - mean(small, 2) * mean(p, 2)) / (variance + 0.01)
    rest = mean(mean(p, 2) - slope * mean(small, 2), 2)
    close(found, linear(mean(slope, 2), 12, 16) * gray + linear(rest, 12, 16), 1e-3)


def _shrunk() -> pf.Model:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (2, 1, 12, 16), "x")
    return graph.compile(y=pf.functional.interpolate(x, (6, 8), mode="bilinear", antialias=True))


def test_a_guide_makes_an_edge_sharp() -> None:
    """The mask is 8 times as coarse as the picture, whose edge lies between two of its cells."""
    guide = np.zeros((1, 1, 64, 64), np.float32)
    guide[..., 37:] = 1
    mask = guide.reshape(1, 1, 8, 8, 8, 8).mean((3, 5))
    wrong = []
    for given in ({}, {"g": guide}):
        (made,) = run(
            lambda m, g=None: upsample_mask(m, (64, 64), edge=None, guide=g, radius=2),
            {"m": mask, **given},
            "cpu",
            None,
        )
        assert made is not None
        wrong.append(float(np.abs(made - guide).mean()))
    assert wrong[1] < wrong[0] / 3


@pytest.mark.parametrize(
    ("shape", "settings", "said"),
    [
        ((4, 4), {}, "a mask is"),
        ((1, 1, 4, 4), {"edge": (0.5, 0.5)}, "rising"),
        ((1, 1, 4, 4), {"guide": np.zeros((1, 3, 8, 8)), "radius": 0}, "radius"),
    ],
)
def test_what_does_not_fit_is_an_error(shape: tuple[int, ...], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        upsample_mask(np.zeros(shape, np.float32), (8, 8), **settings)
