"""Functions as scripts, scripts that are disabled, and the app's time: scale, pause, single steps."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import perframe as pf
from perframe.errors import InputError
from perframe.host import App, Event, Frame, KeyEvent, ManualClock, Script
from perframe.host.surface import BlankSurface


def blank_app(step: float = 0.25, **settings: Any) -> App:
    surface, clock = BlankSurface((4, 3)), ManualClock(step)
    return App(surface=surface, clock=clock, fixed_delta_time=0.25, **{"stop_on_error": True, **settings})


def test_a_function_is_a_script() -> None:
    seen: list[Any] = []

    def update(frame: Frame) -> None:
        seen.append(frame.index)

    def draw(app: App, frame: Frame) -> None:
        seen.append(app)

    with blank_app() as app:
        app.run(update, draw, lambda: seen.append("neither"), frames=2)
        assert seen == [0, app, "neither", 1, app, "neither"]
        script = app.add(lambda: seen.append("third"))
        script.enabled = False
        app.remove(update)
        with pytest.raises(InputError, match="update is not part"):
            app.remove(update)
        with pytest.raises(InputError, match="draw is already part"):
            app.add(draw)
        seen.clear()
        app.loop_once()
        assert seen == [app, "neither"]


def test_an_async_function_and_a_partial_one_are_scripts_too() -> None:
    seen: list[int] = []

    async def every_third(frame: Frame) -> None:
        seen.append(frame.index)
        for _ in range(2):
            await pf.next_frame()

    def note(log: list[int], frame: Frame) -> None:
        log.append(-frame.index)

    blank_app().run(every_third, frames=5)
    assert seen == [0, 2, 4]
    blank_app().run(functools.partial(note, seen), frames=3)
    assert seen[3:] == [0, -1, -2]


def test_a_function_with_other_parameters_is_refused() -> None:
    def update(dt: float) -> None: ...

    with blank_app() as app, pytest.raises(InputError, match=r"update has the parameters dt.*`frame` and `app`"):
        app.add(update)


def test_the_error_of_a_function_has_its_name() -> None:
    def update() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        blank_app().run(update, frames=1)
    assert caught.value.__notes__ == [f"in {update.__qualname__}"]


class Recorder(Script):
    def __init__(self) -> None:
        self.log: list[str] = []

    def start(self) -> None:
        self.log.append("start")
        self.app.start_coroutine(self.work(), owner=self)

    async def work(self) -> None:
        while True:
            await pf.next_frame()
            self.log.append("work")

    def fixed_update(self, frame: Frame) -> None:
        self.log.append("fixed_update")

    def update(self, frame: Frame) -> None:
        self.log.append("update")

    def late_update(self, frame: Frame) -> None:
        self.log.append("late_update")

    def render(self, frame: Frame) -> None:
        self.log.append("render")

    def on_event(self, event: Event) -> None:
        self.log.append("on_event")


def test_a_disabled_script_is_not_called_and_its_tasks_go_on() -> None:
    script = Recorder()
    with blank_app() as app:
        script.enabled = False
        app.run(script, frames=2)
        assert script.log == []
        script.enabled = True
        app.loop_once()
        assert script.log == ["start", "work", "fixed_update", "update", "late_update", "render"]
        script.enabled = False
        script.log.clear()
        app.post(KeyEvent("a", True))
        app.run(frames=2)
        assert script.log == ["work", "work"]


def test_a_time_scale_is_slow_motion() -> None:
    frames: list[Frame] = []
    ended: list[int] = []

    async def wait(app: App) -> None:
        await pf.next_frame()
        await pf.seconds(0.5)
        ended.append(app.frame.index)  # type: ignore[union-attr]

    with blank_app() as app:
        app.time_scale = 0.5
        app.start_coroutine(wait(app))
        app.run(lambda frame: frames.append(frame), frames=9)
        assert app.time_scale == 0.5
    assert [frame.time for frame in frames] == [0.125 * index for index in range(1, 10)]
    assert {frame.delta_time for frame in frames} == {0.125} and {frame.real_delta_time for frame in frames} == {0.25}
    assert sum(frame.fixed_steps for frame in frames) == 4
    assert ended == [4]


def test_time_goes_on_from_where_it_was_when_the_scale_changes() -> None:
    times: list[float] = []
    with blank_app() as app:
        app.add(lambda frame: times.append(frame.time))
        for scale in (1, 1, 0, 2, 1):
            app.time_scale = scale
            app.loop_once()
    assert times == [0.25, 0.5, 0.5, 1.0, 1.25]


@pytest.mark.parametrize("scale", [-1, "2", float("nan"), None])
def test_wrong_scales(scale: Any) -> None:
    with blank_app() as app, pytest.raises(InputError, match="time_scale"):
        app.time_scale = scale


def test_in_a_pause_a_script_draws_and_hears_and_nothing_else() -> None:
    script = Recorder()
    with blank_app() as app:
        app.run(script, frames=1)
        before = app.frame
        app.paused = True
        script.log.clear()
        app.post(KeyEvent("space", True))
        app.run(frames=2)
        assert script.log == ["on_event", "render", "render"]
        assert app.frame is not None and before is not None and app.frame.time == before.time
        assert app.frame.delta_time == 0 and app.frame.index == 2
        app.paused = False
        script.log.clear()
        app.loop_once()
        assert script.log == ["work", "fixed_update", "update", "late_update", "render"]
        assert app.frame.time == before.time + 0.25


def test_single_steps() -> None:
    script = Recorder()
    with blank_app(step=10.0) as app:
        app.run(script, frames=1)
        script.log.clear()
        for index in range(3):
            app.step()
            frame = app.loop_once()
            assert frame.time == 10 + 0.25 * (index + 1) and frame.delta_time == 0.25
            assert script.log == ["work", "fixed_update", "update", "late_update", "render"]
            script.log.clear()
            app.loop_once()
            assert script.log == ["render"]
            script.log.clear()
