from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.errors import ClosedError, PerframeError
from perframe.host import App, Frame, KeyEvent, ManualClock, Script, Task, next_frame, seconds
from perframe.host.surface import BlankSurface


def blank_app(step: float = 0.25) -> App:
    return App(surface=BlankSurface((4, 3)), clock=ManualClock(step), stop_on_error=True)


class FakeReadback:
    """A readback that is done after some polls, and can be awaited like perframe's own."""

    def __init__(self, polls: int, value: int) -> None:
        self.polls, self.value = polls, value

    @property
    def done(self) -> bool:
        self.polls -= 1
        return self.polls < 0

    def result(self) -> int:
        return self.value

    def __await__(self) -> Generator[None, None, int]:
        while not self.done:
            yield
        return self.value


def test_an_async_start_goes_on_frame_by_frame_while_updates_run() -> None:
    log: list[str] = []

    class Loader(Script):
        async def start(self) -> None:
            log.append("start")
            await next_frame()
            log.append("started")

        def update(self, frame: Frame) -> None:
            log.append(f"update {frame.index}")

    blank_app().run(Loader(), frames=2)
    # `start` comes before the first frame's time, so the next frame is the first one
    assert log == ["start", "started", "update 0", "update 1"]


def test_next_frame_is_never_the_same_frame() -> None:
    frames: list[int] = []

    class Counter(Script):
        async def update(self, frame: Frame) -> None:
            if frame.index == 0:
                for _ in range(3):
                    frames.append(self.app.frame.index)  # type: ignore[union-attr]
                    await next_frame()

    with blank_app() as app:

        async def from_callback() -> None:
            begun = app.frame
            await next_frame()
            assert app.frame is not begun
            frames.append(-1)

        app.when_done(FakeReadback(0, 0), lambda _: app.start_coroutine(from_callback()))
        app.run(Counter(), frames=4)
    assert frames == [0, -1, 1, 2]


def test_an_async_update_is_not_called_again_while_it_is_under_way() -> None:
    log: list[str] = []

    class Slow(Script):
        async def update(self, frame: Frame) -> None:
            log.append(f"begin {frame.index}")
            await FakeReadback(2, 0)
            log.append(f"end {frame.index}")

    blank_app().run(Slow(), frames=5)
    assert log == ["begin 0", "end 0", "begin 2", "end 2", "begin 4"]


def test_an_async_on_event_misses_no_event() -> None:
    seen: list[str] = []

    class Typist(Script):
        async def on_event(self, event: KeyEvent) -> None:  # type: ignore[override]
            await seconds(0.25)
            seen.append(event.key)

    with blank_app() as app:
        app.post(KeyEvent("a", True))
        app.post(KeyEvent("b", True))
        app.run(Typist(), frames=3)
    assert seen == ["a", "b"]


def test_seconds_wait_by_the_injected_clock() -> None:
    times: list[float] = []

    async def wait(app: App) -> None:
        await next_frame()
        for duration in (0.5, 0.0, 0.3):
            await seconds(duration)
            times.append(app.frame.time)  # type: ignore[union-attr]

    with blank_app() as app:
        app.start_coroutine(wait(app))
        app.run(frames=8)
    assert times == [0.75, 1.0, 1.5], "none of them goes on in the frame that it was awaited in"


async def at_once() -> str:
    return "no frame later"


@pytest.mark.parametrize(
    "begin",
    [
        lambda app: pf.Tensor(np.ones(3, np.float32)).readback_request(),
        lambda app: pf.Tensor(np.ones(3, np.float32)).readback_and_clone_async(),
        lambda app: app.start_coroutine(at_once()),
        lambda app: app.advance([], 1.0),
        lambda app: pf.seconds(0),
        lambda app: pf.next_frame(),
    ],
    ids=["readback", "clone", "coroutine", "schedule", "seconds", "next_frame"],
)
def test_an_endless_loop_over_finished_awaits_gives_every_frame_back(
    begin: Callable[[App], Awaitable[object]],
) -> None:
    frames: list[int] = []

    class Endless(Script):
        async def update(self, frame: Frame) -> None:
            while True:
                frames.append(self.app.frame.index)  # type: ignore[union-attr]
                assert len(frames) < 100, "it holds the frame"
                await begin(self.app)

    blank_app().run(Endless(), frames=6)
    assert frames[0] == 0 and frames[-1] >= 4 and len(frames) <= 7


def test_readbacks_of_an_earlier_frame_take_no_frame_each() -> None:
    frames: list[int] = []

    class Reader(Script):
        async def update(self, frame: Frame) -> None:
            readbacks = [pf.Tensor(np.ones(3, np.float32)).readback_request() for _ in range(3)]
            for readback in readbacks:
                await readback
                frames.append(self.app.frame.index)  # type: ignore[union-attr]

    blank_app().run(Reader(), frames=2)
    assert frames == [1, 1, 1]


def test_seconds_outside_the_loop_is_an_error() -> None:
    async def wait() -> None:
        await seconds(1.0)

    with pytest.raises(PerframeError, match="an App's clock"):
        asyncio.run(wait())


def test_a_coroutine_awaits_coroutines_readbacks_and_tasks() -> None:
    async def inner() -> int:
        return await FakeReadback(2, 20)

    async def outer(app: App) -> int:
        return await app.start_coroutine(inner()) + await inner() + await FakeReadback(0, 2)

    with blank_app() as app:
        task = app.start_coroutine(outer(app))
        assert not task.done
        with pytest.raises(PerframeError, match="not done"):
            task.result()
        app.run(frames=6)
        assert task.done and task.result() == 42


def test_a_coroutine_that_never_waits_is_done_at_once() -> None:
    async def quick() -> str:
        return "now"

    with blank_app() as app:
        assert app.start_coroutine(quick()).result() == "now"


def test_a_foreign_awaitable_is_an_error_where_it_is_awaited() -> None:
    caught: list[str] = []

    class Foreign:
        def __await__(self) -> Generator[object, None, None]:
            yield "a foreign loop's token"

    async def confused() -> None:
        try:
            await Foreign()
        except PerframeError as error:
            caught.append(str(error))
            raise

    with blank_app() as app, pytest.raises(PerframeError, match="yielded a str: it belongs to another event loop"):
        app.start_coroutine(confused())
    assert len(caught) == 1


def test_an_app_runs_inside_a_running_asyncio_loop() -> None:
    """As in a notebook: an awaited object must not take asyncio's loop for the app's."""
    loops: list[object] = []

    async def look() -> None:
        loops.append(asyncio._get_running_loop())
        await next_frame()

    async def notebook() -> None:
        with blank_app() as app:
            app.start_coroutine(look())
            app.run(frames=2)
        await asyncio.sleep(0)

        loops.append(asyncio.get_running_loop())

    asyncio.run(notebook())
    assert len(loops) == 2 and loops[0] is not loops[1]


@pytest.mark.parametrize("frames_until_error", [0, 1])
def test_an_error_leaves_the_loop_and_stays_in_the_task(frames_until_error: int) -> None:
    class Failing(Script):
        async def start(self) -> None:
            for _ in range(frames_until_error):
                await next_frame()
            raise ZeroDivisionError("as asked")

    with pytest.raises(ZeroDivisionError) as caught:
        blank_app().run(Failing())
    assert caught.value.__notes__ == ["in Failing.start"]


def test_a_failed_task_raises_again_and_is_not_stepped_again() -> None:
    async def failing() -> None:
        await next_frame()
        raise ZeroDivisionError("as asked")

    with blank_app() as app:
        task: Task[None] = app.start_coroutine(failing(), name="the failing one")
        with pytest.raises(ZeroDivisionError) as caught:
            app.loop_once()
        assert caught.value.__notes__ == ["in the failing one"]
        app.loop_once()
        with pytest.raises(ZeroDivisionError):
            task.result()


def test_cancel_runs_finally_blocks() -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            await seconds(100.0)
        finally:
            log.append("cleaned")

    with blank_app() as app:
        task = app.start_coroutine(work())
        task.cancel()
        task.cancel()
        assert log == ["cleaned"] and task.done
        with pytest.raises(ClosedError, match="work was canceled"):
            task.result()
        app.loop_once()


def test_a_coroutine_may_cancel_itself_and_remove_its_script() -> None:
    log: list[str] = []

    class Leaver(Script):
        async def update(self, frame: Frame) -> None:
            try:
                await next_frame()
                self.app.remove(self)
                log.append("removed")
                await next_frame()
                log.append("never")
            finally:
                log.append("cleaned")

        def destroy(self) -> None:
            log.append("destroy")

    blank_app().run(Leaver(), frames=4)
    assert log == ["destroy", "removed", "cleaned"]


def test_destroy_comes_after_the_scripts_coroutines_are_cancelled() -> None:
    log: list[str] = []

    class Worker(Script):
        async def start(self) -> None:
            try:
                await seconds(100.0)
            finally:
                log.append("start cancelled")

        def awake(self) -> None:
            self.app.start_coroutine(self.wait(), owner=self)

        async def wait(self) -> None:
            try:
                await seconds(100.0)
            finally:
                log.append("wait cancelled")

        def destroy(self) -> None:
            log.append("destroy")

    blank_app().run(Worker(), frames=2)
    assert log == ["wait cancelled", "start cancelled", "destroy"]


def test_a_script_whose_awake_fails_leaves_no_coroutine_behind() -> None:
    log: list[str] = []

    class Failing(Script):
        def awake(self) -> None:
            self.app.start_coroutine(self.wait(), owner=self)
            raise ZeroDivisionError

        async def wait(self) -> None:
            try:
                await seconds(100.0)
            finally:
                log.append("cancelled")

    with blank_app() as app:
        with pytest.raises(ZeroDivisionError):
            app.add(Failing())
        assert log == ["cancelled"]


@pytest.mark.parametrize("wait", [pf.next_frame, lambda: pf.seconds(1)])
def test_a_wait_that_is_not_awaited_is_warned_of(wait: Any) -> None:
    with pytest.warns(RuntimeWarning, match="never awaited"):
        wait()
        collect_garbage()
