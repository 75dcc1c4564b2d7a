"""The stage of all demos: windows, F1, Escape, and errors in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from PIL import Image

from perframe.command_line.commands.demo import demos, load_demo, summary
from perframe.host import App, KeyEvent

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "agents": ["--creatures", "50"],
    "depth": ["--budget", "1000"],  # its first result comes within a frame, however slow the machine
    "digits": [],
    "faces": [],
    "hands": [],
    "life": ["--steps", "1"],
    "listen": ["--at", "0.5"],
    "neural": [],
    "segment": [],
    "talk": [],
    "upscale": ["--size", "160x90"],
}


def test_each_demo_has_a_sentence_a_page_and_a_picture() -> None:
    assert set(SMALL) < set(demos())
    for name, path in demos().items():
        assert 20 < len(summary(path)) < 90, name
    for name in demos():
        page = (ROOT / "docs" / "demos" / f"{name}.md").read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)]+)\)", page)
        assert f"../pictures/{name}.png" in links and f"../../assets/{name}/README.md" in links
        for link in links:
            assert (ROOT / "docs" / "demos" / link).exists(), link


@pytest.mark.slow
@pytest.mark.window
@pytest.mark.parametrize("name", SMALL)
def test_a_window_shows_it_and_its_times(
    name: str, display: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    main = load_demo(name)
    add, posted = App.add, []

    def added(self: App, script: Any) -> Any:
        if not posted:
            posted.append(self)

            def keys(frame: Any, app: App) -> None:
                if frame.index == 3:
                    app.post(KeyEvent("f1", True))
                    app.screenshot(tmp_path / "before.png")
                if frame.index == 8:
                    app.post(KeyEvent("escape", True))

            add(self, keys)
        return add(self, script)

    asked = ["--backend", "cpu", "--save", str(tmp_path / "after.png"), *SMALL[name]]
    assert main(["--headless", *asked]) == 0  # waits for kernels: a window shows how far they are compiled
    capsys.readouterr()
    monkeypatch.setattr(App, "add", added)
    assert main(asked) == 0
    assert "off screen" not in capsys.readouterr().out
    before, after = (np.asarray(Image.open(tmp_path / f"{when}.png").convert("RGB")) for when in ("before", "after"))
    corner = (slice(-40, None), slice(0, 100))
    assert before.std() > 5 and (before[corner] != after[corner]).mean() > 0.3  # the figures lie over the lower left


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_recordings_are_alike_on_all_backends(name: str, gl_context: Any, tmp_path: Path) -> None:
    found = []
    for backend in ("cpu", "gpu_pixel"):
        out = tmp_path / f"{backend}.png"
        argv = ["--headless", "--backend", backend, "--frames", "7", "--save", str(out), *SMALL[name]]
        assert load_demo(name)(argv) == 0
        found.append(np.asarray(Image.open(out).convert("RGB")).astype(int)[60:])  # below the backend's name
    assert np.abs(found[0] - found[1]).mean() < 0.05 and found[0].std() > 5


def test_without_opengl_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    import moderngl

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise Exception("libEGL.so not loaded")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(moderngl, "create_context", refuse)
    assert load_demo("life")(["--headless"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the demo life draws with OpenGL 3.3") and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_python_runs_its_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "demos" / "agents"), "--help"]
    around = {**os.environ, "PYTHONPATH": str(ROOT / "runtime")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=around, check=True)
    assert "usage: perframe demo agents" in done.stdout


def test_slow_frames_are_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    load_demo("painter")
    stage = import_module("perframe_demos.common.stage")
    for slow, count in ((60_000.0, 0), (0.0, 1)):
        monkeypatch.setattr(stage, "SLOW", slow)
        App((8, 8), headless=True).run(stage.End(5, None))
        assert capsys.readouterr().out.count("another --backend may be faster") == count
