"""A recording says how far it is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import moderngl
import pytest

from perframe.command_line.commands.demo import load_demo
from perframe.host.app import App


@pytest.fixture
def progress() -> Any:
    load_demo("life")
    return import_module("perframe_demos.common.progress")


class Clock:
    """A clock on which a frame takes `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


@pytest.mark.parametrize(("frames", "seconds", "said"), [(100, 30.0, True), (100, 0.01, False), (2, 30.0, False)])
def test_a_long_recording_says_how_long_it_takes(
    progress: Any, frames: int, seconds: float, said: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(progress, "perf_counter", Clock(seconds))
    with progress.recording_progress(frames) as advance:
        for _ in range(frames):
            advance()
    out = capsys.readouterr().out
    assert (out == "96 more frames take about 960 s\n") is said
    assert bool(out) is said


def test_a_terminal_has_a_bar(progress: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.recording_progress(3) as advance:
        for _ in range(3):
            advance()
    assert "recording frames" in capsys.readouterr().err


def test_a_recorded_frame_has_been_drawn_when_it_counts(progress: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers put drawing off, llvmpipe until pixels are read: a minute may pass after the last frame."""
    done = list[str]()
    finish = moderngl.Context.finish
    monkeypatch.setattr(moderngl.Context, "finish", lambda ctx: (finish(ctx), done.append("drawn")))
    stage = import_module("perframe_demos.common.stage")
    App((8, 8), headless=True).run(stage.End(3, None, lambda: done.append("counted")))
    assert done == ["drawn", "counted"] * 3
