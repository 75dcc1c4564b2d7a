"""Wrong arguments to an app are errors at once, with a message that helps."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import BackendError, InputError
from perframe.host import App, Frame, ManualClock, Script, open_surface
from perframe.host.surface import BlankSurface


def app(**settings: Any) -> App:
    return App(**{"surface": BlankSurface((4, 3)), "clock": ManualClock(0.25), "stop_on_error": True, **settings})


@pytest.mark.parametrize("size", [5, None, "ab", (8,), (8, 8, 8), (8.5, 8), ("a", 1), (0, 4), (-1, 4), 1280])
@pytest.mark.parametrize("headless", [True, False, None])
def test_sizes(size: Any, headless: bool | None) -> None:
    with pytest.raises(InputError, match=r"size|at least 1"):
        App(size=size, headless=headless)


def test_a_size_that_no_driver_draws_into(gl_context: Any) -> None:
    with pytest.raises(BackendError, match="1000000×1000000"):
        App(size=(10**6, 10**6), headless=True)
    gl_context.__enter__()


def test_headless() -> None:
    with pytest.raises(InputError, match="True, False or None"):
        open_surface((4, 4), "title", "yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings", [{"fixed_delta_time": "x"}, {"fixed_delta_time": float("nan")}, {"max_fixed_steps": "x"}]
)
def test_fixed_steps(settings: Any) -> None:
    with pytest.raises(InputError, match="fixed_delta_time is"):
        app(**settings)


@pytest.mark.parametrize(
    "use",
    [
        lambda app: app.run(Script(), frames="5"),
        lambda app: app.run(Script(), frames=1.5),
        lambda app: app.run(Script),
        lambda app: app.run(None),
        lambda app: app.start_coroutine(asyncio.sleep),
        lambda app: app.start_coroutine(None),
        lambda app: app.when_done(None, print),
        lambda app: app.when_done(np.ones(3), print),
        lambda app: app.when_done(pf.Tensor(np.ones(3)).readback_request(), 5),
        lambda app: app.advance(None),
        lambda app: app.advance(5),
        lambda app: app.advance([1], "2"),
        lambda app: app.advance([1], float("nan")),
        lambda app: app.surface.present([1, 2]),
    ],
)
def test_arguments(use: Callable[[App], Any]) -> None:
    with app() as made:
        with pytest.raises(InputError):
            use(made)
        made.loop_once()


def test_a_hook_with_a_yield_never_runs_and_says_so() -> None:
    class Unity(Script):
        def update(self, frame: Frame) -> Iterator[None]:  # type: ignore[override]
            yield

    with pytest.raises(InputError, match=r"Unity\.update has a `yield` .*async def"):
        app().run(Unity(), frames=1)


class WithoutFrame(Script):
    def update(self) -> None: ...  # type: ignore[override]


class WithMore(Script):
    def render(self, frame: Frame, app: App, more: int) -> None: ...  # type: ignore[override]


class AsyncStart(Script):
    async def start(self, frame: Frame) -> None: ...  # type: ignore[override]


class WithoutEvent(Script):
    @staticmethod
    def on_event() -> None: ...  # type: ignore[override]


class Constant(Script):
    late_update = 5  # type: ignore[assignment]


async def more_parameters(frame: Frame, dt: float) -> None: ...


def by_position(frame: Frame, /) -> None: ...


def yields(frame: Frame) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            WithoutFrame(),
            r"^WithoutFrame\.update has the parameters self \({}, line \d+\): write `def update\(self, frame\)`",
        ),
        (
            WithMore(),
            r"^WithMore\.render has the parameters self, frame, app, more \({}, .*`def render\(self, frame\)`",
        ),
        (
            AsyncStart(),
            r"^AsyncStart\.start has the parameters self, frame \({}, line \d+\): write `def start\(self\)`$",
        ),
        (WithoutEvent(), r"^WithoutEvent\.on_event has no parameters \({}, .*`def on_event\(self, event\)`"),
        (Constant(), r"^Constant\.late_update is 5: .*`def late_update\(self, frame\)`"),
        (more_parameters, r"^more_parameters has the parameters frame, dt \({}, line \d+\).*`frame` and `app`"),
        (by_position, r"^by_position has the parameters frame \({}, .*passed by name"),
        (yields, r"^yields has a `yield` \({}, line \d+\), so"),
        (max, "Python knows no parameters of max"),
    ],
)
def test_wrong_parameters_of_hooks_are_named_before_the_first_frame(script: Any, message: str) -> None:
    with app() as made:
        with pytest.raises(InputError, match=message.format(re.escape(__file__))):
            made.add(script)
        made.loop_once()


def test_wrong_parameters_of_callbacks_are_named_at_the_call(tmp_path: Path) -> None:
    nothing: Any = lambda: None  # noqa: E731
    one: Any = lambda result: None  # noqa: E731

    path = tmp_path / "watched.txt"
    path.touch()
    readback = pf.Tensor(np.ones(3)).readback_request()
    with app() as made, pf.Worker("digits") as worker:
        for use in (
            lambda: made.when_done(readback, nothing),
            lambda: made.advance([1], on_done=one),
            lambda: made.schedule(worker, np.zeros((1, 1, 28, 28), np.float32), on_done=nothing),
            lambda: made.watch(path, nothing),
        ):
            with pytest.raises(InputError, match=rf"{re.escape(__file__)}, line \d+\): .* calls it with"):
                use()


def test_an_app_draws_in_its_own_thread_alone(gl_context: Any) -> None:
    """In another thread GL would draw nothing. A new app there is fine, and so is the first one afterwards."""
    pictures = list[Any]()

    def draw(app: App) -> None:
        app.framebuffer.clear(1.0, 0.5, 0.0)  # type: ignore[union-attr]
        pictures.append(app.surface.read_pixels()[0, 0].tolist())

    def run_there(use: Callable[[], Any]) -> BaseException | None:
        errors = list[BaseException]()

        def run() -> None:
            try:
                use()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return errors[0] if errors else None

    with App(size=(4, 4), headless=True, stop_on_error=True) as here:
        here.add(draw)
        for use in (here.loop_once, lambda: here.run(frames=1), lambda: here.add(Script())):
            error = run_there(use)
            assert isinstance(error, BackendError) and "make the App in the thread that runs it" in str(error)
        assert run_there(lambda: App(size=(4, 4), headless=True, stop_on_error=True).run(draw, frames=1)) is None
        here.loop_once()
    assert pictures == [[255, 128, 0]] * 2


def test_seconds_takes_a_number() -> None:
    class Sleeper(Script):
        async def start(self) -> None:
            await pf.seconds("1")  # type: ignore[arg-type]

    with pytest.raises(InputError, match="takes a number, not '1'"):
        app().run(Sleeper(), frames=1)


def test_a_command_buffer_takes_workers(gl_context: Any) -> None:
    with pf.CommandBuffer(gl_context) as commands, pytest.raises(InputError, match=r"perframe\.Worker, not str"):
        commands.schedule_worker("worker")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_fixed_steps": 1.5},
        {"max_fixed_steps": 0},
        {"clock": 3},
        {"clock": ManualClock},
        {"surface": 3},
        {"surface": BlankSurface},
        {"budget_ms": "4"},
        {"budget_ms": float("nan")},
    ],
    ids=str,
)
def test_settings_of_a_wrong_type(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        app(**settings)


def test_titles_and_contexts() -> None:
    with pytest.raises(InputError, match="title"):
        open_surface((4, 4), 5, True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"moderngl\.Context, not int"):
        pf.attach(ctx=3)  # type: ignore[arg-type]


def test_sizes_and_frames_may_be_numpys(gl_context: Any) -> None:
    with App(size=(np.int64(8), np.int32(6)), headless=True) as one:  # type: ignore[arg-type]
        assert one.size == (8, 6)
        one.run(frames=np.int64(2))  # type: ignore[arg-type]
        assert one.frame is not None and one.frame.index == 1
        with pytest.raises(InputError, match="integer number of frames"):
            one.run(frames=-1)
    gl_context.__enter__()


@pytest.mark.parametrize("call", ["loop_once", "run"])
@pytest.mark.parametrize("hook", ["start", "update", "render", "coroutine", "destroyed"])
def test_a_frame_within_a_frame_is_an_error(call: str, hook: str) -> None:
    """It would never end. The app goes on after it."""
    said: list[str] = []

    class Impatient(Script):
        def look(self, *_: Any) -> None:
            if not said:
                with pytest.raises(pf.PerframeError, match="within a frame of the same app") as caught:
                    getattr(self.app, call)()
                said.append(str(caught.value))

        async def wait(self) -> None:
            await pf.next_frame()
            self.look()

    script = Impatient()
    if hook == "coroutine":
        script.start = script.wait  # type: ignore[method-assign]
    elif hook != "destroyed":
        setattr(script, hook, script.look)
    with app() as one:
        one.add(script)
        if hook == "destroyed":
            another = Script()
            another.destroy = lambda: script.look()  # type: ignore[method-assign]
            one.add(another)
            one.add(lambda: one.remove(another) if not said else None)
        for _ in range(4):
            one.loop_once()
    assert said and call in said[0]


@pytest.mark.parametrize(
    ("method", "hook"),
    [
        ("on_update", "update"),
        ("updat", "update"),
        ("Update", "update"),
        ("lateUpdate", "late_update"),
        ("fixed_updates", "fixed_update"),
        ("onRender", "render"),
        ("on_events", "on_event"),
        ("event", "on_event"),
        ("updaet", "update"),
    ],
)
def test_a_misspelt_hook_is_logged(method: str, hook: str, caplog: Any) -> None:
    kind = type("Mine", (Script,), {method: lambda self, frame: None})
    with app() as one:
        one.add(kind())
    assert [record.getMessage() for record in caplog.records] == [
        f"Mine.{method} is never called: is it the hook `{hook}`?"
    ]


def test_methods_beside_a_hook_are_not_logged(caplog: Any) -> None:
    class Mine(Script):
        updates = property(lambda self: 3)

        def update(self, frame: Frame) -> None:
            self.updated()

        def updated(self) -> None: ...

        def draw(self) -> None: ...

        def _render(self) -> None: ...

    with app() as one:
        one.add(Mine())
    assert caplog.records == []


def test_a_class_and_an_early_use_of_the_app_are_explained() -> None:
    class Early(Script):
        def __init__(self) -> None:
            self.size = self.app.size

    with app() as one, pytest.raises(InputError, match=r"^Early is a class: pass an object of it, Early\(\)$"):
        one.add(Early)
    with pytest.raises(AttributeError, match="no attribute 'app': an app sets it before it calls `awake`"):
        Early()
    with pytest.raises(AttributeError, match=r"^'Script' object has no attribute 'worker'$"):
        _ = Script().worker  # type: ignore[attr-defined]


def test_two_apps_may_nest_their_frames() -> None:
    with app() as outer, app() as inner:
        outer.add(lambda: inner.loop_once())
        outer.loop_once()
        assert inner.frame is not None


@pytest.mark.parametrize("path", [3, None, object()])
def test_paths_of_a_wrong_type(path: Any) -> None:
    with app() as one:
        with pytest.raises(InputError, match="a screenshot is a path"):
            one.screenshot(path)
        with pytest.raises(InputError, match="a watched file is a path"):
            one.watch(path, print)


@pytest.mark.parametrize("name", ["nowhere/a.png", ".", "", "a\0b.png", "x" * 300 + ".png"])
def test_screenshots_that_cannot_be_written(name: str, tmp_path: Any) -> None:
    """Between two frames that is an error; in a hook it is reported, and the loop goes on."""
    seen: list[int] = []

    def shoot(app: App, frame: Frame) -> None:
        seen.append(frame.index)
        app.screenshot(tmp_path / name if name else "")
        app.screenshot(tmp_path / "good.png")

    with app(stop_on_error=False) as one:
        one.add(shoot)
        for _ in range(3):
            one.loop_once()
        assert seen == [0, 1, 2] and [failure.count for failure in one.failures] == [3]
        with pytest.raises(InputError, match="cannot be written"):
            one.screenshot(tmp_path / name if name else "")
    assert [path.name for path in tmp_path.iterdir()] == ["good.png"]
