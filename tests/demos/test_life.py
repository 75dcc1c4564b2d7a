"""Life: cells grow into the butterfly, heal, and obey the mouse, on each backend."""

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
from perframe.host import App, KeyEvent, ManualClock, MouseButtonEvent
from perframe.resources import resource

SIDE = 40  # cells, as in training


@pytest.fixture(scope="module")
def butterfly() -> np.ndarray:
    """The target that the cells were trained for, drawn by the script in assets/life."""
    namespace: dict[str, Any] = {}
    exec(resource("assets", "life", "target.py").read_text(encoding="utf-8"), namespace)
    target: np.ndarray = namespace["draw_target"]()
    return target


def part(name: str, package: str = "life") -> Any:
    load_demo("life")
    return import_module(f"perframe_demos.{package}.{name}")


@pytest.fixture
def world(backend: str, backend_context: Any) -> Iterator[Any]:
    found = part("world").World(pf.BackendType(backend), backend_context, (SIDE, SIDE), steps=8)
    yield found
    found.release()


def far(picture: pf.Tensor, target: np.ndarray) -> float:
    return float(((picture.download_to_array()[0] - target) ** 2).mean())


@pytest.mark.slow
def test_a_butterfly_grows_and_heals(world: Any, backend: str, butterfly: np.ndarray) -> None:
    empty = float((butterfly**2).mean())
    picture = world.grow(part("world").plant((SIDE / 2, SIDE / 2)))
    assert far(picture, butterfly) > 0.5 * empty  # after 8 steps it is a few cells
    for _ in range(9):
        picture = world.grow()
    assert world.state.backend_type == backend  # it has never left
    assert far(picture, butterfly) < 0.02 * empty
    wounded = world.grow(part("world").wound((10, 12), (30, 12), 3.0))
    assert far(wounded, butterfly) > 0.03 * empty  # eight steps after the cut
    for _ in range(24):
        picture = world.grow()
    assert far(picture, butterfly) < 0.025 * empty
    world.clear()
    assert not world.grow().download_to_array().any()


@pytest.mark.slow
def test_backends_grow_alike_step_by_step(world: Any) -> None:
    """Chaos makes small differences large, so few steps are compared, with those of the rule's own file."""
    rule = pf.load(resource("assets", "life", "life.onnx"))
    state = np.random.default_rng(0).normal(0, 0.5, (1, 12, SIDE, SIDE)).astype(np.float32)
    world._worker.reset(state)
    world.grow()
    for _ in range(8):
        state = pf.run(rule, {"state": state})["next"]
    np.testing.assert_allclose(world.state.download_to_array(), state, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_the_mouse_wounds_and_plants(backend: str, gl_context: Any) -> None:
    stage = part("stage", "common").Stage
    with App((320, 160), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = part("view").LifeView(stage(pf.BackendType(backend), app.ctx, True, None), (80, 40), 4)
        app.run(script, frames=30)

        def alpha() -> np.ndarray:
            found: np.ndarray = script.world.state.download_to_array()[0, 3]
            return found

        y, x = np.argwhere(alpha() > 0.5).mean(0)  # the middle of what has grown
        (y, x) = min(np.argwhere(alpha() > 0.5), key=lambda cell: abs(cell - (y, x)).sum())
        app.post(MouseButtonEvent("left", True, ((x + 0.5) * 4, (y + 0.5) * 4)))
        before = alpha()[y, x]
        app.loop_once()
        assert alpha()[y, x] < before - 0.2  # four steps do not fill a wound
        app.post(MouseButtonEvent("left", False, (0, 0)))
        app.post(KeyEvent("space", True))
        app.run(frames=1)
        assert script._count == 1 and (alpha() > 0).sum() <= 9 * 9  # a world with one cell, four steps later
        app.run(frames=8)
        app.post(MouseButtonEvent("right", True, (318.0, 80.0)))
        app.loop_once()
        assert script._is_touched and not script._planted
        assert alpha()[18:23, 77:].max() > 0.1


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    argv = ["--headless", "--backend", backend, "--frames", "10", "--steps", "1", "--save", str(tmp_path / "life.png")]
    assert load_demo("life")(argv) == 0
    printed = capsys.readouterr().out
    assert "a frame takes" in printed and f"the picture is in {tmp_path / 'life.png'}" in printed
    picture = np.asarray(Image.open(tmp_path / "life.png").convert("RGB")).astype(int)
    assert picture.shape == (720, 1280, 3)
    spread = [
        np.ptp(picture[int(y * 720) - 16 : int(y * 720) + 16, int(x * 1280) - 16 : int(x * 1280) + 16])
        for x, y in (*part("view").GARDEN, (0.5, 0.5))
    ]
    assert min(spread[:-1]) > 60 > spread[-1]  # a few cells in each place, and none in the middle
    assert load_demo("life")(["--headless", "--save", str(tmp_path / "nowhere" / "life.png")]) == 1
    assert "there is no folder" in capsys.readouterr().err
