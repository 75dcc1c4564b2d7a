"""Agents: the flock lives alike on each backend, flees, keeps together, and becomes a picture."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.resources import resource

COUNT = 150
NOBODY, HAWK = (0.0, 0.0, 0.0), (0.5, -0.2, 1.0)


def part(name: str) -> Any:
    load_demo("agents")
    return import_module(f"perframe_demos.agents.{name}")


@pytest.fixture
def flock(backend: str, backend_context: Any) -> Iterator[Any]:
    found = part("world").Flock(pf.BackendType(backend), backend_context, COUNT, seed=3)
    yield found
    found.release()


def rows(flock: Any) -> np.ndarray:
    state: np.ndarray = flock.state.download_to_array()[0, :, 0]
    return state


class NumPy:
    """The functions that the flock's world needs, in float64."""

    matmul, exp, sqrt, log, cos, sin, stack = np.matmul, np.exp, np.sqrt, np.log, np.cos, np.sin, np.stack


class Array(np.ndarray):
    """An array with the two methods that differ in NumPy."""

    def unsqueeze(self, dim: int) -> Array:
        return np.expand_dims(self, dim).view(Array)

    def clamp(self, low: float | None = None, high: float | None = None) -> Array:
        return np.clip(self, low, high).view(Array)


@pytest.mark.slow
def test_a_step_is_that_of_the_world_in_which_it_was_trained(flock: Any) -> None:
    world, life = part("world"), part("flock")
    before = rows(flock)[None].astype(float).view(Array)
    hawk = np.array(HAWK).reshape(1, 3, 1).view(Array)
    sensed = life.senses(NumPy, before, hawk, world.HALF)
    action = pf.run(resource("assets", "agents", "agents.onnx"), {"senses": np.asarray(sensed, np.float32)})["action"]
    wanted = life.moved(NumPy, before, np.asarray(action, float).view(Array), world.HALF, world.SECONDS)
    flock.step(HAWK)
    np.testing.assert_allclose(rows(flock)[None], wanted, atol=2e-4)


@pytest.mark.slow
def test_they_flee_from_the_hawk_and_keep_together(flock: Any, backend: str) -> None:
    def near(at: tuple[float, float, float]) -> int:
        return int((np.hypot(rows(flock)[0] - at[0], rows(flock)[1] - at[1]) < 0.25).sum())

    def order() -> float:
        """How alike the directions of neighbours are: 1 is alike, 0 is random."""
        x, y, speed_x, speed_y = rows(flock)
        ahead = np.stack([speed_x, speed_y]) / np.hypot(speed_x, speed_y)
        close = np.hypot(x - x[:, None], y - y[:, None]) < 0.2
        np.fill_diagonal(close, False)
        return float((ahead.T @ ahead)[close].mean())

    at_first, ordered = near(HAWK), order()
    for _ in range(120):
        flock.step(HAWK)
    assert flock.state.backend_type == backend  # it has never left
    assert at_first >= 3 and near(HAWK) < 0.5 * at_first
    assert order() > max(0.6, ordered + 0.3)
    assert np.abs(rows(flock)[0]).max() <= 16 / 9 and np.abs(rows(flock)[1]).max() <= 1
    flock.scatter()
    assert order() < 0.5


@pytest.mark.slow  # on a cold cache
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "agents.png"
    argv = ["--headless", "--backend", backend, "--frames", "3", "--creatures", "60", "--save", str(out)]
    assert load_demo("agents")(argv) == 0
    assert f"the picture is in {out}" in capsys.readouterr().out
    picture = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert picture.shape == (720, 1280, 3)
    bright = (picture[60:].max(2) > 150).sum()
    assert 60 * 60 < bright < 60 * 500  # a dart has some two hundred pixels
