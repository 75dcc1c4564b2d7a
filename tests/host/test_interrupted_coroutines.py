"""Coroutines that release their app, and coroutines that await what belongs to another event loop."""

from __future__ import annotations

import asyncio

import pytest

from host.test_coroutines import FakeReadback, blank_app
from perframe.errors import ClosedError, PerframeError
from perframe.host import KeyEvent, Script, next_frame


@pytest.mark.parametrize("where", ["coroutine", "task", "callback", "update", "render", "start", "on_event", "on_done"])
def test_an_app_may_be_released_from_within(where: str) -> None:
    """The coroutine that releases it goes no further than to its next await, and cleans up."""
    log: list[str] = []

    class Ender(Script):
        def end(self, *_: object) -> None:
            if "released" not in log:
                self.app.release()
                log.append("released")

        async def wait(self) -> None:
            try:
                await next_frame()
                self.end()
                await next_frame()
                log.append("went on")
            finally:
                log.append("finally")

        async def in_a_task(self) -> None:
            async def inner() -> None:
                await asyncio.sleep(0)
                self.end()

            await asyncio.create_task(inner())

        def destroy(self) -> None:
            log.append("destroyed")

    script, app = Ender(), blank_app()
    if where in ("update", "render", "start", "on_event"):
        setattr(script, where, script.end)
    app.add(script)
    if where == "coroutine":
        app.start_coroutine(script.wait(), owner=script)
    elif where == "task":
        app.start_coroutine(script.in_a_task(), owner=script)
    elif where == "callback":
        app.when_done(FakeReadback(1, 7), script.end)
    elif where == "on_done":
        app.advance(iter([0.0]), on_done=script.end)
    app.post(KeyEvent("a", True))
    with pytest.raises(ClosedError):
        for _ in range(6):
            app.loop_once()
    assert log.count("destroyed") == 1 and "released" in log and "went on" not in log
    assert where != "coroutine" or log == ["destroyed", "released", "finally"]


def test_run_ends_when_a_script_releases_the_app() -> None:
    app = blank_app()

    async def end() -> None:
        await next_frame()
        app.release()

    app.start_coroutine(end())
    app.run(frames=10)
    assert app.frame is not None and app.frame.index < 3


def test_a_coroutine_goes_on_after_the_refusal_of_another_loops_future() -> None:
    """It awaits its own app's asyncio, frames, and other futures that are refused."""
    other = asyncio.new_event_loop()
    foreign, log = other.create_future(), list[object]()

    async def stubborn() -> None:
        for _ in range(3):
            with pytest.raises(PerframeError, match="another event loop"):
                await foreign
        await asyncio.sleep(0)
        log.append("slept")
        with pytest.raises(PerframeError, match="another event loop"):
            await foreign
        await next_frame()
        log.append(await asyncio.to_thread(lambda: "thread"))

    with blank_app() as app:
        task = app.start_coroutine(stubborn())
        for _ in range(400):
            app.loop_once()
            if task.done:
                break
    other.close()
    assert task.done and not task.failed and log == ["slept", "thread"]
