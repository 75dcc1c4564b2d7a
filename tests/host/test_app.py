from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from perframe.errors import ClosedError, InputError
from perframe.host import App, CloseEvent, Event, Frame, KeyEvent, ManualClock, Script
from perframe.host.surface import BlankSurface
from perframe.tensor.frames import current_frame

HOOKS = ("awake", "start", "fixed_update", "update", "late_update", "render", "on_event", "destroy")


def blank_app(step: float = 0.1, **options: object) -> App:
    return App(
        surface=BlankSurface((4, 3)),
        clock=ManualClock(step),
        **{"fixed_delta_time": 0.1, "stop_on_error": True, **options},
    )


class Recorder(Script):
    """Writes down every hook that is called."""

    def __init__(self, log: list[str], name: str = "") -> None:
        self.log, self.name = log, name

    def awake(self) -> None:
        self.log.append(f"{self.name}awake")

    def start(self) -> None:
        self.log.append(f"{self.name}start")

    def fixed_update(self, frame: Frame) -> None:
        self.log.append(f"{self.name}fixed_update")

    def update(self, frame: Frame) -> None:
        self.log.append(f"{self.name}update")

    def late_update(self, frame: Frame) -> None:
        self.log.append(f"{self.name}late_update")

    def render(self, frame: Frame) -> None:
        self.log.append(f"{self.name}render")

    def on_event(self, event: Event) -> None:
        self.log.append(f"{self.name}on_event")

    def destroy(self) -> None:
        self.log.append(f"{self.name}destroy")


def test_hooks_run_in_order() -> None:
    log: list[str] = []
    blank_app().run(Recorder(log), frames=2)
    frame = ["fixed_update", "update", "late_update", "render"]
    assert log == ["awake", "start", *frame, *frame, "destroy"]


def test_each_hook_runs_for_all_scripts_before_the_next_and_destroy_goes_backwards() -> None:
    log: list[str] = []
    blank_app(step=0.0).run(Recorder(log, "a."), Recorder(log, "b."), frames=1)
    assert log == [
        *("a.awake", "b.awake", "a.start", "b.start", "a.update", "b.update"),
        *("a.late_update", "b.late_update", "a.render", "b.render", "b.destroy", "a.destroy"),
    ]


def test_every_hook_is_optional() -> None:
    blank_app().run(Script(), frames=2)


def test_fixed_update_runs_as_often_as_time_asks() -> None:
    log: list[str] = []
    clock = ManualClock()
    with App(
        surface=BlankSurface((4, 3)), clock=clock, fixed_delta_time=0.1, max_fixed_steps=4, stop_on_error=True
    ) as app:
        app.add(Recorder(log))
        counts = []
        for delta in (0.0, 0.05, 0.05, 0.25, 0.05, 9.0):
            clock.advance(delta)
            log.clear()
            app.loop_once()
            counts.append(log.count("fixed_update"))
    assert counts == [0, 0, 1, 2, 1, 4]


def test_a_frame_is_the_same_for_all_hooks_and_is_returned() -> None:
    class Watcher(Script):
        def update(self, frame: Frame) -> None:
            self.seen = frame

        def late_update(self, frame: Frame) -> None:
            assert frame is self.seen is self.app.frame

    with blank_app() as app:
        app.add(Watcher())
        app.loop_once()
        frame = app.loop_once()
    assert frame is app.frame
    assert (frame.index, frame.time, frame.delta_time) == (1, 0.2, 0.1)
    assert (frame.size, frame.fixed_delta_time, frame.budget_ms) == ((4, 3), 0.1, 0.0)


def test_a_script_added_in_a_frame_starts_in_the_next() -> None:
    log: list[str] = []

    class Parent(Script):
        def update(self, frame: Frame) -> None:
            log.append(f"parent {frame.index}")
            if frame.index == 0:
                self.app.add(Recorder(log))

    blank_app(step=0.0).run(Parent(), frames=2)
    assert log == ["parent 0", "awake", "start", "parent 1", "update", "late_update", "render", "destroy"]


def test_a_script_may_be_removed_by_itself_and_by_another() -> None:
    log: list[str] = []

    class Leaver(Recorder):
        def update(self, frame: Frame) -> None:
            super().update(frame)
            if frame.index == 0:
                self.app.remove(victim)
                self.app.remove(self)

    victim = Recorder(log, "victim.")
    blank_app(step=0.0).run(Leaver(log, "leaver."), victim, Recorder(log, "stays."), frames=2)
    assert log[6:] == [
        *("leaver.update", "victim.destroy", "leaver.destroy", "stays.update", "stays.late_update", "stays.render"),
        *("stays.update", "stays.late_update", "stays.render", "stays.destroy"),
    ]


def test_a_script_that_never_started_is_removed_too() -> None:
    log: list[str] = []
    with blank_app() as app:
        script = Recorder(log)
        app.add(script)
        app.remove(script)
        app.loop_once()
        app.add(script)  # and may come back
    assert log == ["awake", "destroy", "awake", "destroy"]


def test_a_script_may_remove_another_as_it_is_destroyed() -> None:
    log: list[str] = []
    first = Recorder(log, "first.")

    class Last(Recorder):
        def destroy(self) -> None:
            self.app.remove(first)
            super().destroy()

    blank_app().run(first, Last(log, "last."), frames=0)
    assert log[-2:] == ["first.destroy", "last.destroy"]


class NeverDone:
    done = False

    def result(self) -> None:
        raise AssertionError


def test_what_cannot_be_added_or_removed_is_refused() -> None:
    class AsyncDestroy(Script):
        async def destroy(self) -> None:  # type: ignore[override]
            pass

    with blank_app() as app:
        script = Script()
        app.add(script)
        task = app.when_done(NeverDone(), print, owner=script)
        with pytest.raises(InputError, match="already part"):
            app.add(script)
        assert not task.done  # a refused script stays as it was
        with pytest.raises(InputError, match="not part"):
            app.remove(Script())
        with pytest.raises(InputError, match="not part"):
            app.remove(None)
        with pytest.raises(InputError, match=r"not a perframe\.Script"):
            app.add(object())  # type: ignore[arg-type]
        with pytest.raises(InputError, match="cannot be, because no frame comes after it"):
            app.add(AsyncDestroy())


@pytest.mark.parametrize("hook", HOOKS)
def test_an_error_leaves_the_loop_with_the_hooks_name_after_everything_is_released(hook: str) -> None:
    log: list[str] = []

    class Failing(Recorder):
        pass

    def fail(self: Failing, *arguments: object) -> None:
        raise ZeroDivisionError("as asked")

    setattr(Failing, hook, fail)
    app = blank_app()
    app.post(KeyEvent("a", True))
    with pytest.raises(ZeroDivisionError) as caught:
        app.run(Recorder(log, "first."), Failing(log, "failing."), frames=1)
    assert caught.value.__notes__ == [f"in Failing.{hook}"]
    assert log[-1] == "first.destroy"
    assert ("failing.destroy" in log) == (hook not in ("awake", "destroy"))
    with pytest.raises(ClosedError):
        app.loop_once()
    assert not current_frame().inside


def test_the_first_error_is_the_one_that_is_raised() -> None:
    class Failing(Script):
        def update(self, frame: Frame) -> None:
            raise ZeroDivisionError("first")

        def destroy(self) -> None:
            raise KeyError("second")

    with pytest.raises(ZeroDivisionError) as caught:
        blank_app().run(Failing())
    assert "KeyError('second')" in caught.value.__notes__[-1]


def test_a_with_block_keeps_the_app_until_its_end() -> None:
    log: list[str] = []
    with blank_app(step=0.0) as app:
        app.run(Recorder(log), frames=1)
        app.run(frames=1)
        assert "destroy" not in log
        assert app.frame is not None and app.frame.index == 1
    assert log.count("update") == 2 and log[-1] == "destroy"
    app.release()
    assert log.count("destroy") == 1
    with pytest.raises(ClosedError, match="released"):
        app.add(Script())


def test_only_its_own_surface_is_released() -> None:
    surface = BlankSurface((2, 2))
    with App(surface=surface) as app:
        app.surface.present(np.full((2, 2, 3), 9, np.uint8))
    assert surface.read_pixels().max() == 9


def test_quit_and_close_end_after_the_frame() -> None:
    class Quitter(Recorder):
        def update(self, frame: Frame) -> None:
            if frame.index == 2:
                self.app.quit()

    log: list[str] = []
    blank_app().run(Quitter(log))
    assert log.count("render") == 3
    log.clear()
    app = blank_app()
    app.post(CloseEvent())
    app.run(Recorder(log))
    assert log.count("on_event") == log.count("render") == 1


def test_events_reach_scripts_and_input_before_updates() -> None:
    class Player(Script):
        events: list[Event]

        def start(self) -> None:
            self.events = []

        def on_event(self, event: Event) -> None:
            self.events.append(event)

        def update(self, frame: Frame) -> None:
            assert self.app.input.keys == {"w"}
            assert self.app.input.keys_pressed == ({"w"} if frame.index == 0 else set())

    app = blank_app()
    app.post(KeyEvent("w", True))
    player = Player()
    app.run(player, frames=2)
    assert player.events == [KeyEvent("w", True)]


def test_readbacks_know_the_frame_and_that_they_are_in_it() -> None:
    class Watcher(Script):
        def start(self) -> None:
            assert not current_frame().inside  # loading may block

        def update(self, frame: Frame) -> None:
            assert current_frame().inside and current_frame().index == frame.index

    blank_app().run(Watcher(), frames=3)
    assert not current_frame().inside


def test_screenshot_in_a_hook_shows_the_whole_frame(tmp_path: Path) -> None:
    picture = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)

    class Painter(Script):
        def update(self, frame: Frame) -> None:
            self.app.screenshot(tmp_path / "in_frame.png")

        def render(self, frame: Frame) -> None:
            assert not list(tmp_path.iterdir())
            self.app.surface.present(picture)

    with blank_app() as app:
        app.run(Painter(), frames=1)
        app.screenshot(str(tmp_path / "between.png"))
    for name in ("in_frame.png", "between.png"):
        assert np.array_equal(np.asarray(Image.open(tmp_path / name)), picture)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_suffix_of_a_screenshot_names_its_format(tmp_path: Path) -> None:
    with blank_app() as app:
        app.loop_once()
        for name, kind in (("a.jpg", "JPEG"), ("a.WEBP", "WEBP"), ("a.bmp", "BMP"), ("a.png", "PNG"), ("a", "PNG")):
            app.screenshot(tmp_path / name)
            with Image.open(tmp_path / name) as picture:
                assert picture.format == kind
        with pytest.raises(InputError, match=r"'a\.txt' is not the name of a picture: .*\.png, \.jpg"):
            app.screenshot(tmp_path / "a.txt")


def test_a_screenshot_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with blank_app() as app:
        app.loop_once()
        with pytest.raises(FileNotFoundError):
            app.screenshot(tmp_path / "nowhere" / "a.png")
        app.screenshot(tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_importing_the_host_loads_neither_glfw_nor_moderngl() -> None:
    check = "import sys, perframe.host; print([m for m in ('glfw', 'moderngl', 'numba', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
