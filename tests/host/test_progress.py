"""The bar that is drawn while kernels are compiled."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.host import App, ManualClock, progress, watchdog
from perframe.host.surface import BlankSurface
from perframe.tensor.compilation import KernelsCompiling, programs


class Compiling:
    progress = 0.0


def test_the_bar_grows_and_goes() -> None:
    worker, surface = Compiling(), BlankSurface((200, 100))
    bar = pf.host.ProgressBar(worker, "one moment")
    with App(surface=surface, clock=ManualClock(1 / 60), stop_on_error=True) as app:
        app.add(bar)
        lengths = []
        for worker.progress in (0.0, 0.25, 0.5, 0.99):
            app.loop_once()
            pixels = surface.read_pixels()
            lengths.append(int((pixels[-1] == (70, 110, 200)).all(-1).sum()))
            assert bar.shown and not pixels[:80].any(), "it lies along the bottom"
        assert lengths == [0, 50, 100, 198]
        worker.progress = 1.0
        app.loop_once()
        assert not bar.shown and not surface.read_pixels().any()


def test_it_shows_the_progress_of_a_worker(gl_context: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    share = [0.5]
    monkeypatch.setattr("perframe.execution.inspected.kernel_progress", lambda: share[0])
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (2, 2))
    with pf.Worker(graph.compile(x + 1), backend) as worker, App((160, 90), headless=True, stop_on_error=True) as app:
        app.add(pf.host.ProgressBar(worker))
        app.loop_once()
        below = np.asarray(app.surface.read_pixels())[-1]
        assert (below[:80] == (70, 110, 200)).all() and (below[80:] == (16, 18, 24)).all()
        share[0] = 1.0
        app.loop_once()
        assert not np.asarray(app.surface.read_pixels()).any()


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> KernelsCompiling:
    """Kernels of which none is compiled, for the host."""
    made = KernelsCompiling()
    for module in (progress, watchdog):
        monkeypatch.setattr(module, "compiling", made)
    for _ in range(4):
        made.begin()
    return made


@pytest.mark.parametrize("shows", [True, False])
def test_an_app_shows_in_its_window_that_kernels_compile(
    shows: bool, compiling: KernelsCompiling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not in what may be recorded or is a screenshot, and not for a moment only."""
    surface = BlankSurface((200, 100))
    surface.shows_progress = shows  # type: ignore[attr-defined]
    with App(surface=surface, clock=ManualClock(1 / 60), stop_on_error=True) as app:
        app.loop_once()
        assert not surface.read_pixels().any()
        monkeypatch.setattr(progress, "PATIENCE", 0.0)
        compiling.end()
        app.loop_once()
        assert int((surface.read_pixels()[-1] == (70, 110, 200)).all(-1).sum()) == 50 * shows
        app.add(lambda app: app.screenshot(tmp_path / "picture.png"))
        app.loop_once()
        assert surface.read_pixels().any() == shows and not np.asarray(Image.open(tmp_path / "picture.png")).any()
        compiling.compiled = 4
        app.loop_once()
        assert not surface.read_pixels().any()


def test_the_watchdog_accuses_no_line_while_kernels_compile(
    compiling: KernelsCompiling, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "SECONDS_OF_PATIENCE", 0.05)
    dog = watchdog.Watchdog()
    try:
        dog.begin()
        time.sleep(0.1)
        for _ in range(3):
            dog.look()
        (said,) = caplog.messages
        assert "0 of 4 kernels are compiled" in said and "perframe warmup" in said and "line" not in said
        compiling.compiled = 4
        dog.look()
        assert len(caplog.messages) == 1, "the frame gets its time once the kernels are there"
        time.sleep(0.1)
        dog.look()
        assert "line" in caplog.messages[-1]
    finally:
        dog.release()


CALLS_GL = """
def wait(dog, ended):
    dog.begin()
    programs.begin()
    while not ended:
        sleep(0.01)
"""


def test_the_watchdog_accuses_no_line_while_a_driver_compiles(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "SECONDS_OF_PATIENCE", 0.05)
    monkeypatch.setattr(watchdog, "_watch", lambda *_: None)  # this test looks itself
    dog, ended = watchdog.Watchdog(), list[bool]()
    scope: Any = {"__name__": "perframe.backends.gl.replay", "programs": programs, "sleep": time.sleep}
    exec(CALLS_GL, scope)
    try:
        thread = Thread(target=scope["wait"], args=(dog, ended))
        thread.start()
        time.sleep(0.1)
        for _ in range(3):
            dog.look()
        ended.append(True)
        thread.join()
        (said,) = [message for message in caplog.messages if "frame has taken" in message]
        assert "compiling GL programs" in said and "perframe warmup" in said and "line" not in said
        dog.begin()
        programs.begin()
        time.sleep(0.1)
        dog.look()  # no code that calls GL runs
        assert "line" in caplog.messages[-1]
    finally:
        dog.release()


def test_a_spell_of_compiling_is_counted_from_its_begin() -> None:
    spell = KernelsCompiling()
    assert not spell.is_under_way and spell.share == 1
    spell.begin()
    spell.begin()
    spell.end()
    assert spell.is_under_way and spell.share == 0.5 and str(spell).startswith("1 of 2 kernels are compiled after 0 s")
    spell.end()
    spell.begin()
    assert (spell.requested, spell.compiled) == (1, 0)
