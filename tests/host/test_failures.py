"""An error in a script is logged once, counted, and shown on the surface; the loop goes on unless it is told to end."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.host import App, Frame, KeyEvent, ManualClock, Script, watchdog
from perframe.host.failures import of_user
from perframe.host.surface import BlankSurface

HOOKS = ("fixed_update", "update", "late_update", "render", "on_event")


def blank_app(**settings: Any) -> App:
    return App(surface=BlankSurface((320, 120)), clock=ManualClock(0.25), **settings)


class Counter(Script):
    def __init__(self) -> None:
        self.updates = 0

    def update(self, frame: Frame) -> None:
        self.updates += 1


def fail(*_: object) -> None:
    raise ZeroDivisionError("as asked")


def failing_in(hook: str, function: Any = fail) -> Script:
    return type("Failing", (Script,), {hook: lambda self, *_: function()})()


@pytest.mark.parametrize("hook", HOOKS)
def test_the_loop_goes_on_and_the_error_is_logged_once(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    counter = Counter()
    with blank_app() as app:
        app.add(failing_in(hook))
        app.add(counter)
        for _ in range(4):
            app.post(KeyEvent("a", True))
            app.loop_once()
        (failure,) = app.failures
    assert counter.updates == 4 and failure.where == f"Failing.{hook}"
    assert failure.count >= 4 and "ZeroDivisionError: as asked (test_failures.py, line" in failure.message
    records = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(records) == 1 and f"Failing.{hook} failed: ZeroDivisionError" in records[0].message
    assert records[0].exc_info is not None and "fail" in str(records[0].exc_text)


@pytest.mark.parametrize("kind", ["coroutine", "callback", "schedule", "run"])
def test_a_failing_task_does_not_end_the_loop(kind: str) -> None:
    async def later() -> None:
        await pf.next_frame()
        fail()

    def steps() -> Any:
        yield 0.0
        fail()

    class FailingWorker:
        def schedule_iterable(self, *_: object, budget_ms: float) -> Any:
            return steps()

    with blank_app() as app:
        if kind == "coroutine":
            task: Any = app.start_coroutine(later())
        elif kind == "callback":
            task = app.when_done(pf.Tensor(np.ones(1, np.float32)).readback_request(), fail)
        elif kind == "schedule":
            task = app.advance(steps(), 0.0)
        else:
            task = app.schedule(FailingWorker(), ())
        app.run(frames=4)
        (failure,) = app.failures
        assert task.done and task.failed and failure.count == 1 and failure.where == task.name


def test_an_interrupt_ends_the_loop() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        blank_app().run(failing_in("update", interrupt))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_script_that_cannot_start_is_disabled(is_async: bool) -> None:
    log: list[str] = []

    class Broken(Script):
        def update(self, frame: Frame) -> None:
            log.append(f"update {frame.index}")

        def destroy(self) -> None:
            log.append("destroy")

    async def start(self: Broken) -> None:
        for _ in range(2):
            await pf.next_frame()
        fail()

    Broken.start = start if is_async else fail  # type: ignore[method-assign]
    counter, broken = Counter(), Broken()
    with blank_app() as app:
        app.run(broken, counter, frames=4)
        assert not broken.enabled and counter.updates == 4
    assert log == (["update 0", "destroy"] if is_async else ["destroy"])


def test_when_no_script_can_start_the_error_leaves_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        blank_app().run(failing_in("start"))
    assert caught.value.__notes__ == ["in Failing.start"]
    assert not caplog.records, "the error that leaves the loop is not told twice"


def test_the_error_is_shown_for_some_seconds(display_surface: Any) -> None:
    def fail_once(*_: object) -> None:
        if app.frame is not None and app.frame.index == 1:
            fail()

    with App(surface=display_surface, clock=ManualClock(1.0)) as app:
        app.add(failing_in("render", fail_once))
        shown = []
        for _ in range(9):
            app.post(KeyEvent("a", True))
            app.add(reader := Reader())
            app.loop_once()
            app.remove(reader)
            shown.append(is_red(app.surface.read_pixels()))
    assert shown == [False, True, True, True, True, True, True, False, False]


class Reader(Script):
    """Does nothing; it is one more script."""


def is_red(pixels: np.ndarray) -> bool:
    """Whether the lower left corner has the colour of the panel, and the upper right one has not."""
    assert pixels[0, -1].max() == 0
    return tuple(pixels[-1, 0]) == (96, 16, 24)


@pytest.fixture(params=["blank", "headless"])
def display_surface(request: pytest.FixtureRequest) -> Any:
    if request.param == "blank":
        yield BlankSurface((320, 120))
        return
    from perframe.host.headless import HeadlessSurface

    context = request.getfixturevalue("gl_context")
    surface = HeadlessSurface((320, 120))
    yield surface
    assert surface.ctx.error == "GL_NO_ERROR"
    surface.release()
    context.__enter__()


def test_a_long_error_fits_into_a_small_surface() -> None:
    def fail_at_length() -> None:
        raise ValueError("a word " * 400)

    with App(surface=BlankSurface((64, 32)), clock=ManualClock(0.25)) as app:
        app.run(failing_in("update", fail_at_length), Counter(), frames=2)
        assert tuple(app.surface.read_pixels()[-1, 0]) == (96, 16, 24)


def test_a_surface_that_cannot_show_errors_is_no_error() -> None:
    class Bare(BlankSurface):
        draw_over = None  # type: ignore[assignment]

    with App(surface=Bare((8, 8)), clock=ManualClock(0.25)) as app:
        app.run(failing_in("update"), frames=2)
        assert len(list(app.failures)) == 1


def test_the_users_traceback_has_no_generated_frames_of_ours() -> None:
    """Such as the `__init__` of a dataclass, whose file is "<string>"."""
    names: dict[str, Any] = {"__name__": "perframe.host.frame"}
    exec("def fail(): raise KeyboardInterrupt", names)
    with pytest.raises(KeyboardInterrupt) as caught:
        names["fail"]()
    shown = of_user(caught.value.__traceback__)
    assert shown is not None and shown.tb_frame.f_code.co_filename == __file__ and shown.tb_next is None


def test_the_watchdog_names_the_users_line_within_an_installed_package() -> None:
    # NumPy calls the function again: its frame and the standard library's are above ours
    seen: list[str] = []

    def within(_: Any) -> float:
        frame = inspect.currentframe()
        assert frame is not None
        seen.append(watchdog._line(frame.f_back))
        return 0.0

    np.apply_along_axis(within, 0, np.zeros((2, 1)))
    assert seen[0].startswith("test_failures.py") and "in test_the_watchdog" in seen[0]
    assert watchdog._line(None) == "its thread has ended"


def test_a_failure_names_the_users_line_and_a_traceback_begins_there(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Script):
        def update(self, frame: Frame) -> None:
            pf.load("no-such-model.onnx")

    class Late(Script):
        def start(self) -> None:
            worker = pf.Worker("digits")
            self.run = self.app.schedule(worker, np.zeros((1, 1, 28, 28), np.float32), budget_ms=2)
            worker.release()

    with blank_app() as app:
        app.add(Wrong())
        app.add(Late())
        app.run(frames=3)
        wrong, late = sorted(app.failures, key=lambda failure: failure.where)
    assert wrong.where == "Wrong.update" and "(test_failures.py, line" in wrong.message
    assert late.where.startswith("run of digits") and "line" not in late.message  # it has none of the user's
    assert "scripts.py" not in caplog.text and "<run of digits.onnx: failed>" not in caplog.text
