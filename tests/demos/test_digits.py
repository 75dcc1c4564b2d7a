"""Digits: what a pen or a mouse writes is recognised on each backend, and the layers are on the board."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.host import App, KeyEvent, ManualClock, MouseButtonEvent, MouseMoveEvent
from perframe.resources import resource

SEVEN = ((0.3, 0.2), (0.7, 0.2), (0.45, 0.8))


def part(name: str, package: str = "digits") -> Any:
    load_demo("digits")
    return import_module(f"perframe_demos.{package}.{name}")


def test_digits_of_new_hands_are_recognised(backend: str, backend_context: Any) -> None:
    namespace: dict[str, Any] = {}
    exec(resource("assets", "digits", "strokes.py").read_text(encoding="utf-8"), namespace)
    random = np.random.default_rng(99)
    ink = np.stack([namespace["write"](digit, random) for digit in range(10) for _ in range(10)])[:, None]
    with pf.Worker(resource("assets", "digits", "digits.onnx"), backend, backend_context, strict=True) as worker:
        found = worker.schedule(ink).peek_output("probabilities").download_to_array()
    assert (found.argmax(1) == np.repeat(np.arange(10), 10)).mean() >= 0.96
    np.testing.assert_allclose(found.sum(1), 1, 1e-5)


def test_mosaics_hold_the_channels_of_each_layer(backend: str, backend_context: Any) -> None:
    layers = part("layers")
    pen = layers.Pen()
    for start, end in pairwise(SEVEN):
        pen.draw(start, end)
    wanted = pf.run(resource("assets", "digits", "digits.onnx"), {"ink": pen.ink})
    with pf.Worker(layers.seen_inside(), backend, backend_context, strict=True) as worker:
        worker.schedule(pen.ink)
        for name, (rows, columns) in layers.MOSAICS.items():
            mosaic = worker.peek_output(name).download_to_array()[0, 0]
            channels = wanted[name].reshape(rows * columns, *(wanted[name].shape[2:] or (1, 1)))
            high, wide = channels.shape[1:]
            for index, channel in enumerate(channels / channels.max()):
                row, column = divmod(index, columns)
                tile = mosaic[row * high : (row + 1) * high, column * wide : (column + 1) * wide]
                np.testing.assert_allclose(tile, channel, atol=2e-3)
        assert worker.peek_output("probabilities").download_to_array().argmax() == 7


def test_the_mouse_writes(backend: str, gl_context: Any) -> None:
    stage = part("stage", "common").Stage
    with App((640, 360), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = part("view").DigitsView(stage(pf.BackendType(backend), app.ctx, True, None))
        app.run(script, frames=2)

        def at(point: tuple[float, float]) -> tuple[float, float]:
            left, top, width, height = script._place("ink")
            return left + point[0] * width, top + point[1] * height

        app.post(MouseMoveEvent(at(SEVEN[0])))
        app.post(MouseButtonEvent("left", True, at(SEVEN[0])))
        app.loop_once()
        assert script.pen.ink.sum() < 15  # a dot: what the demo has written is wiped away
        for point in SEVEN[1:]:
            app.post(MouseMoveEvent(at(point)))
            app.loop_once()
        assert script.worker.peek_output("probabilities").download_to_array().argmax() == 7
        shown = np.frombuffer(script.shown["probabilities"].texture.read(), np.uint8)
        assert shown.argmax() == 7 and shown[7] > 200
        app.post(MouseButtonEvent("left", False, at(SEVEN[2])))
        app.post(KeyEvent("space", True))
        app.run(frames=2)
        assert not script.pen.ink.any()


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    out = tmp_path / "digits.png"
    assert load_demo("digits")(["--headless", "--backend", backend, "--frames", "39", "--save", str(out)]) == 0
    picture = np.asarray(Image.open(out).convert("RGB")).astype(int)
    board = part("view").BOARD
    left, top, width, height = board["probabilities"]
    columns = picture[top + height // 2, left : left + width].sum(1).reshape(-1)[28::56]
    assert columns.argmax() == 3 and sorted(columns)[-2] < 0.6 * columns[3]  # it has written a 3
    for name in ("ink", "edges", "parts", "shapes"):
        left, top, width, height = board[name]
        assert picture[top : top + height, left : left + width].std() > 20, name


@pytest.mark.parametrize("frames", ["0", "-1", "many"])
def test_what_is_not_understood_ends_with_2(frames: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        load_demo("digits")(["--frames", frames])
    assert ended.value.code == 2 and "--frames" in capsys.readouterr().err
