"""The figures over the picture: F1 shows and hides them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.execution.worker import watchers
from perframe.host import App, KeyEvent, ManualClock, Script
from perframe.host.surface import BlankSurface
from perframe.profiling import overlay as overlays
from perframe.tensor.frames import frame_watchers
from small import load, node


class Looker(Script):
    def __init__(self, backend: str, ctx: Any) -> None:
        self.worker = pf.Worker(load([node("Softmax", "x", "y")], {"x": [16, 16]}), backend, ctx)
        self.look()
        self.worker.peek_output().download_to_array()  # kernels are compiled before a frame is shown

    def look(self) -> None:
        self.worker.schedule(np.ones((16, 16), np.float32))

    def update(self, _frame: Any) -> None:
        self.look()

    def destroy(self) -> None:
        self.worker.release()


def press(app: App, key: str) -> None:
    app.post(KeyEvent(key, True))
    app.post(KeyEvent(key, False))
    app.loop_once()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "SECONDS", 0.0)


def test_the_key_shows_and_hides_the_figures(backend: str, backend_context: Any) -> None:
    shown = pf.profiling.ProfileOverlay()
    surface = BlankSurface((320, 200))
    with App(surface=surface, clock=ManualClock(step=1 / 60)) as app:
        app.add(Looker(backend, backend_context))
        app.add(shown)
        app.loop_once()
        assert not shown.shown and not surface.read_pixels().any()
        press(app, "f2")
        assert not shown.shown
        press(app, "f1")
        for _ in range(40):
            app.loop_once()
        assert shown.shown and surface.read_pixels()[150:].any()
        names = [name for name, _, _ in overlays.rows_of(shown._profile)]  # type: ignore[arg-type]
        assert names[0].startswith("frame") and any("Softmax" in name for name in names)
        press(app, "f1")
        assert not shown.shown and watchers == [] and frame_watchers == []
    assert app.failures is not None and list(app.failures) == []


def test_the_first_figures_come_as_soon_as_they_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlays, "SECONDS", 1000.0)
    drawn, draw = list[str](), overlays._draw
    monkeypatch.setattr(overlays, "_draw", lambda rows, size: (drawn.append(rows[0][0]), draw(rows, size))[1])
    with App(surface=BlankSurface((64, 64)), clock=ManualClock(step=1 / 60)) as app:
        app.add(pf.profiling.ProfileOverlay(shown=True))
        for _ in range(6):
            app.loop_once()
    assert drawn[0] == "no frame yet" and drawn[-1].startswith("frame") and len(drawn) < 6


@pytest.mark.slow
def test_it_forgets_what_is_old() -> None:
    shown = pf.profiling.ProfileOverlay(shown=True)
    with App(surface=BlankSurface((64, 64)), clock=ManualClock(step=1 / 60)) as app:
        app.add(Looker("cpu", None))
        app.add(shown)
        for _ in range(3 * overlays.FRAMES):
            app.loop_once()
        recorder = shown._profile.recorder  # type: ignore[union-attr]
        (record,) = recorder.records.values()
        assert len(recorder.frames) == len(record.schedules) == overlays.FRAMES
        assert all(len(runs.runs) <= overlays.FRAMES for runs in record.segments.values())
    assert watchers == [], "the app's end ends the measuring"
