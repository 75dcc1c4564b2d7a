"""What a newcomer meets in a loop: warnings, Ctrl-C, the last picture, overlays above all else."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.errors import BackendError, ClosedError
from perframe.host import surface
from perframe.host.pixels import write_picture
from perframe.host.surface import BlankSurface
from perframe.profiling.overlay import ProfileOverlay
from small import load, node


class Red(pf.Script):
    def __init__(self, quit_at: int | None = None) -> None:
        self.quit_at = quit_at

    def render(self, frame: pf.Frame) -> None:
        picture = np.full((4, 6, 3), (200, 10, frame.index), np.uint8)
        self.app.surface.present(picture)
        if frame.index == self.quit_at:
            self.app.quit()


@pytest.mark.parametrize("headless", [None, True])
def test_drawing_off_screen_is_a_warning_unless_asked(
    headless: bool | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_window(*_: Any) -> Any:
        raise BackendError("no window: there is no display")

    monkeypatch.setattr(surface, "_open_window", no_window)
    with caplog.at_level(logging.WARNING, "perframe"):
        pf.App(size=(6, 4), headless=headless).release()
    said = [record.getMessage() for record in caplog.records if "off screen" in record.getMessage()]
    assert len(said) == (headless is None)
    assert all("no window: there is no display" in one and "headless=True" in one for one in said)


@pytest.mark.parametrize("by", ["frames", "quit"])
def test_a_screenshot_after_run_shows_the_last_frame(by: str, tmp_path: Path) -> None:
    app = pf.App(size=(6, 4), headless=True)
    app.run(Red(2 if by == "quit" else None), frames=3 if by == "frames" else 50)
    app.screenshot(tmp_path / "last.png")
    assert (np.asarray(Image.open(tmp_path / "last.png")) == (200, 10, 2)).all()


def test_a_screenshot_in_a_block_after_run_shows_the_last_frame(tmp_path: Path) -> None:
    with pf.App(size=(6, 4), headless=True) as app:
        for last in (1, 3):
            app.run(*([Red()] if last == 1 else []), frames=2)
            app.screenshot(tmp_path / "last.png")
            assert (np.asarray(Image.open(tmp_path / "last.png")) == (200, 10, last)).all()


def test_without_a_frame_there_is_no_picture(tmp_path: Path) -> None:
    app = pf.App(size=(6, 4), headless=True)
    app.release()
    with pytest.raises(ClosedError):
        app.screenshot(tmp_path / "none.png")


def test_overlays_are_drawn_last_whatever_the_order() -> None:
    order: list[str] = []

    class Overlay(pf.Script):
        is_overlay = True

        def render(self, frame: pf.Frame) -> None:
            order.append("overlay")

    class First(pf.Script):
        def render(self, frame: pf.Frame) -> None:
            order.append("first")

    class Second(pf.Script):
        def render(self, frame: pf.Frame) -> None:
            order.append("second")

    pf.App(surface=BlankSurface((4, 4))).run(Overlay(), First(), Second(), frames=2)
    assert order == ["first", "second", "overlay"] * 2
    assert ProfileOverlay.is_overlay and pf.host.ProgressBar.is_overlay


def test_ctrl_c_shows_the_users_files_only(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(
        """
import os, signal
import numpy as np
import perframe as pf
from perframe.host.surface import BlankSurface
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its background jobs ignore it

class Mine(pf.Script):
    def update(self, frame):
        if frame.index == 2:
            np.apply_along_axis(self.interrupt, 0, np.zeros(3))

    def interrupt(self, row):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

    def destroy(self):
        print("destroyed", flush=True)

pf.App(surface=BlankSurface((4, 4))).run(Mine())
"""
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and done.stdout == "destroyed\n"
    assert "KeyboardInterrupt" in done.stderr and "mine.py" in done.stderr
    for other in (Path(pf.__file__).parent, Path(np.__file__).parent):
        assert str(other) not in done.stderr, done.stderr
    assert done.stderr.endswith("KeyboardInterrupt\n"), done.stderr


def test_attach_without_gl_shows_the_way() -> None:
    code = "import perframe as pf\ntry:\n    pf.attach()\nexcept pf.BackendError as error:\n    print(error)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert "headless=True" in done.stdout and "read_pixels" in done.stdout, done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Mesa's override is Linux's")
@pytest.mark.parametrize("version", ["2.1", "3.1"])
def test_an_old_opengl_is_named_by_its_version(version: str) -> None:
    code = "import perframe as pf\ntry:\n    pf.App((8, 8), headless=True)\nexcept pf.BackendError as e:\n    print(e)"
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "MESA_GL_VERSION_OVERRIDE": version}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert f"OpenGL {version}" in done.stdout and "needs 3.3" in done.stdout, done.stdout + done.stderr


def test_a_model_that_reads_a_value_on_the_host_is_not_told_to_read_it_back(
    gl_context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [node("Neg", "x", "a"), node("NonZero", "a", "n"), node("Cast", "n", "f", to=1), node("Neg", "f", "y")]
    model = load(nodes, {"x": [4]})

    class Reads(pf.Script):
        def start(self) -> None:
            self.worker = pf.Worker(model, backend="gpu_pixel", ctx=self.app.ctx)

        def update(self, frame: pf.Frame) -> None:
            self.worker.schedule(np.array([1, 0, 2, 3], np.float32))

        def destroy(self) -> None:
            self.worker.release()

    with caplog.at_level(logging.WARNING, "perframe"):
        pf.App((8, 8), headless=True).run(Reads(), frames=2)
    said = [record.getMessage() for record in caplog.records if "blocked inside frame" in record.getMessage()]
    assert len(said) == 1 and "the model itself needs this value" in said[0] and "readback_request" not in said[0]


def test_a_drawing_that_waits_for_the_cpu_is_called_so(
    gl_context: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perframe.tensor.tensor.BRIEF", 0.0)

    class Draws(pf.Script):
        def start(self) -> None:
            self.converter = pf.TextureConverter(self.app.ctx)

        def render(self, frame: pf.Frame) -> None:
            self.converter.render_to_screen(pf.Tensor(np.zeros((1, 3, 4, 4), np.float32)))

    with caplog.at_level(logging.WARNING, "perframe"):
        pf.App((8, 8), headless=True).run(Draws(), frames=2)
    said = [record.getMessage() for record in caplog.records if "blocked inside frame" in record.getMessage()]
    assert len(said) == 1 and said[0].startswith("Drawing a tensor on the CPU blocked") and "numpy()" not in said[0]


def test_a_script_without_hooks_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Idle(pf.Script):
        def draw(self) -> None: ...

    pf.App(surface=BlankSurface((8, 8))).run(Idle(), frames=1)
    assert "Idle has no hooks, so nothing of it is called: awake, start" in caplog.text


def test_a_screenshot_into_no_folder_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(pf.MissingFolderError, match=r"there is no folder .*missing'$"):
        write_picture(np.zeros((4, 4, 3), np.uint8), tmp_path / "missing" / "a.png")
    with pf.App(surface=BlankSurface((8, 4))) as app:
        assert repr(app) == "App(8×4)"
    assert repr(app) == "App(released)"


def test_a_loop_without_a_script_and_an_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Ends(BlankSurface):
        @property
        def should_close(self) -> bool:
            return True

    pf.App(surface=Ends((8, 8))).run(frames=2)
    pf.App(surface=Ends((8, 8))).run(lambda: None)
    assert "no script" not in caplog.text
    pf.App(surface=Ends((8, 8))).run()
    assert "this app has no script, and runs until quit() or Ctrl-C" in caplog.text
