"""Wrong arguments to an app are errors at once, with a message that helps."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import BackendError, InputError
from perframe.host import App, Frame, ManualClock, Script, open_surface
from perframe.host.blank import BlankSurface


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

    with pytest.raises(InputError, match=r"Unity\.update has a `yield`.*async def"):
        app().run(Unity(), frames=1)


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
