"""asyncio in scripts: on the app's one thread, once a frame, by the app's clock."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.host import App, Frame, ManualClock, Script
from perframe.host.surface import BlankSurface


def blank_app(step: float = 0.25, **settings: Any) -> App:
    return App(surface=BlankSurface((4, 3)), clock=ManualClock(step), **{"stop_on_error": True, **settings})


def frames_until(work: Callable[[App], Awaitable[Any]], step: float = 0.25) -> tuple[Any, int]:
    """What the awaited work returns, and the number of frames that it takes after the first."""
    with blank_app(step) as app:

        async def main() -> Any:
            await pf.next_frame()
            return await work(app)

        task = app.start_coroutine(main())
        app.loop_once()
        for frames in range(20_000):
            if task.done:
                return task.result(), frames
            app.loop_once()
            time.sleep(0.001)  # kernels may be compiled meanwhile
    raise AssertionError("it does not end")


async def after(seconds: float, value: str) -> str:
    await asyncio.sleep(seconds)
    return value


async def over_frames(frames: int, value: str) -> str:
    for _ in range(frames):
        await pf.next_frame()
    return value


def test_sleep_waits_by_the_apps_clock() -> None:
    assert frames_until(lambda app: after(1.0, "slept")) == ("slept", 4)


def test_gather_runs_side_by_side() -> None:
    def work(app: App) -> Awaitable[Any]:
        return asyncio.gather(after(0.5, "a"), over_frames(3, "b"), pf.seconds(0.5), over_frames(0, "c"))

    assert frames_until(work) == (["a", "b", None, "c"], 4)  # tasks begin in the frame after


def test_tasks_can_be_created_and_awaited() -> None:
    async def work(app: App) -> str:
        first, second = asyncio.create_task(over_frames(2, "x")), asyncio.create_task(over_frames(3, "y"))
        return await first + await second

    assert frames_until(work)[0] == "xy"


def test_wait_for_returns_a_result_that_comes_in_time() -> None:
    assert frames_until(lambda app: asyncio.wait_for(over_frames(2, "in time"), 5))[0] == "in time"


@pytest.mark.parametrize("endless", ["asyncio", "frames", "readback"])
def test_wait_for_ends_what_takes_too_long(endless: str) -> None:
    class Never:
        done = False

        def __await__(self) -> Any:
            while True:
                yield

    ends: list[str] = []

    async def wait() -> None:
        try:
            await {"asyncio": lambda: asyncio.sleep(100), "frames": lambda: over_frames(1000, ""), "readback": Never}[
                endless
            ]()
        finally:
            ends.append("cleaned")

    async def work(app: App) -> str:
        try:
            await asyncio.wait_for(wait(), 0.5)
        except TimeoutError:
            return "too late"
        return "never"

    result, frames = frames_until(work)
    assert result == "too late" and 2 <= frames <= 5 and ends == ["cleaned"]


def test_a_timeout_may_stand_around_several_awaits() -> None:
    async def work(app: App) -> str:
        try:
            async with asyncio.timeout(0.6):
                while True:
                    await pf.next_frame()
        except TimeoutError:
            await pf.next_frame()  # the coroutine goes on
            return "too late"

    assert frames_until(work)[0] == "too late"


def test_a_group_of_tasks_ends_together() -> None:
    ended: list[str] = []

    async def other() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("other")

    async def failing() -> None:
        await pf.next_frame()
        raise ZeroDivisionError("as asked")

    async def work(app: App) -> None:
        with pytest.raises(ExceptionGroup, match="TaskGroup"):
            async with asyncio.TaskGroup() as group:
                group.create_task(other())
                group.create_task(failing())
        ended.append("group")

    frames_until(work)
    assert ended == ["other", "group"]


def test_queues_and_events_join_scripts() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    taken: list[int] = []

    class Producer(Script):
        async def start(self) -> None:
            for number in range(3):
                await queue.put(number)
                await pf.next_frame()

    class Consumer(Script):
        async def start(self) -> None:
            while True:
                taken.append(await queue.get())

    blank_app().run(Consumer(), Producer(), frames=6)
    assert taken == [0, 1, 2]


def test_work_in_a_thread_does_not_hold_the_frame() -> None:
    entered, go = threading.Event(), threading.Event()

    def slow() -> int:
        entered.set()
        assert go.wait(10)
        return threading.get_ident()

    with blank_app() as app:
        task = app.start_coroutine(asyncio.to_thread(slow))
        assert entered.wait(10)
        for _ in range(3):
            app.loop_once()
        assert not task.done
        go.set()
        while not task.done:
            app.loop_once()
            time.sleep(0.001)
        assert task.result() != threading.get_ident()


def test_readbacks_can_be_gathered(backend: str, backend_context: Any) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (2, 2))
    model = graph.compile(x * 2 + 1)
    with pf.Worker(model, backend, backend_context) as worker:

        async def work(app: App) -> Any:
            outputs = worker.schedule(np.ones((2, 2), np.float32)).peek_output()
            readback = outputs.readback_request()
            return await asyncio.gather(readback, asyncio.wait_for(outputs.readback_and_clone_async(), 100))

        (values, tensor), _ = frames_until(work, 0.0)  # the clock stands still
    assert np.array_equal(values, np.full((2, 2), 3)) and np.array_equal(tensor.download_to_array(), values)


def test_callbacks_without_an_end_do_not_hold_the_frame() -> None:
    with blank_app() as app:

        async def begin() -> None:
            loop = asyncio.get_running_loop()

            def again() -> None:
                loop.call_soon(again)

            again()

        app.start_coroutine(begin())
        app.run(frames=3)
        assert app.frame is not None and app.frame.index == 2


def test_tasks_of_a_removed_script_are_cancelled_and_those_of_others_are_not() -> None:
    log: list[str] = []

    async def work(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(0)
                log.append(name)
        finally:
            log.append(f"{name} ends")

    class Owner(Script):
        def __init__(self, name: str) -> None:
            self.name = name

        async def start(self) -> None:
            self.task = asyncio.create_task(work(self.name))

    with blank_app() as app:
        first, second = Owner("first"), Owner("second")
        app.run(first, second, frames=4)
        app.remove(first)
        app.loop_once()
        assert log[-1] == "second" and "first ends" in log
        log.clear()
        app.run(frames=2)
        assert log == ["second", "second"]
    assert log == ["second", "second", "second ends"]


@pytest.mark.parametrize("stop_on_error", [True, False])
def test_the_error_of_a_task_that_nothing_awaits_is_reported(
    stop_on_error: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing() -> None:
        raise ZeroDivisionError("as asked")

    class Starter(Script):
        async def start(self) -> None:
            asyncio.create_task(failing())  # noqa: RUF006

    with blank_app(stop_on_error=stop_on_error) as app:
        app.add(Starter())
        if stop_on_error:
            with pytest.raises(ZeroDivisionError) as caught:
                app.run(frames=3)
            assert "failing" in caught.value.__notes__[0]
        else:
            app.run(frames=3)
            (failure,) = app.failures
            assert "failing" in failure.where and "as asked" in failure.message


def test_an_app_waits_for_tasks_to_clean_up_and_names_those_that_do_not_end(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def polite() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await pf.next_frame()
            log.append("cleaned")

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                log.append("refused")
                if len(log) > 5:
                    raise

    class Starter(Script):
        async def start(self) -> None:
            self.tasks = [asyncio.create_task(polite()), asyncio.create_task(stubborn(), name="the stubborn one")]

    with caplog.at_level(logging.WARNING):
        blank_app().run(Starter(), frames=2)
        collect_garbage()
    assert "cleaned" in log
    assert "the stubborn one was canceled at the app's end, and did not end" in caplog.text


def test_a_task_may_release_the_app() -> None:
    app = blank_app()

    async def end() -> None:
        app.release()

    async def start() -> None:
        await asyncio.create_task(end())

    app.start_coroutine(start())
    with pytest.raises(pf.ClosedError):
        for _ in range(4):
            app.loop_once()


def test_a_future_of_another_loop_is_an_error() -> None:
    other = asyncio.new_event_loop()
    future = other.create_future()

    async def wait() -> None:
        await future

    with blank_app() as app, pytest.raises(pf.PerframeError, match="belongs to another event loop"):
        app.start_coroutine(wait())
    other.close()


def test_two_apps_have_loops_and_frames_of_their_own() -> None:
    seen: list[tuple[str, int]] = []

    async def count(app: App, name: str) -> None:
        while True:
            await asyncio.sleep(0)
            assert app.frame is not None
            seen.append((name, app.frame.index))

    class Outer(Script):
        """Runs a frame of another app within its own."""

        def start(self) -> None:
            self.inner = blank_app()
            self.inner.start_coroutine(asyncio.wait_for(count(self.inner, "inner"), 100))

        async def update(self, frame: Frame) -> None:
            loop = asyncio.get_running_loop()
            for _ in range(2):
                self.inner.loop_once()
            assert asyncio.get_running_loop() is loop
            begun = pf.Tensor(np.ones(1, np.float32)).readback_request()
            assert begun.frame == frame.index
            await begun

        def destroy(self) -> None:
            self.inner.release()

    with blank_app() as app:
        app.start_coroutine(asyncio.wait_for(count(app, "outer"), 100))
        app.run(Outer(), frames=6)
    outer = [index for name, index in seen if name == "outer"]
    inner = [index for name, index in seen if name == "inner"]
    assert outer == list(range(outer[0], 6)) and inner == list(range(inner[0], inner[-1] + 1)) and len(inner) >= 4
