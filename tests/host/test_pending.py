from __future__ import annotations

from collections.abc import Iterator

import pytest

from perframe.errors import ClosedError
from perframe.host import App, Frame, ManualClock, Script
from perframe.host.surface import BlankSurface


class FakeReadback:
    name = "scores"

    def __init__(self) -> None:
        self.done = False

    def result(self) -> str:
        assert self.done, "asked before it was done"
        return "values"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(step=0.1)


@pytest.fixture
def app(clock: ManualClock) -> Iterator[App]:
    with App(surface=BlankSurface((4, 3)), clock=clock, stop_on_error=True) as app:
        yield app


def layers(clock: ManualClock, costs_ms: list[float], taken: list[int]) -> Iterator[None]:
    """Steps that each take their cost by the clock."""
    for index, cost in enumerate(costs_ms):
        clock.advance(cost / 1000)
        taken.append(index)
        yield


def test_when_done_polls_once_a_frame_and_calls_before_updates(app: App) -> None:
    log: list[str] = []
    readback = FakeReadback()

    class Watcher(Script):
        def update(self, frame: Frame) -> None:
            log.append(f"update {frame.index}")
            if frame.index == 1:
                readback.done = True

    task = app.when_done(readback, log.append)
    app.run(Watcher(), frames=4)
    assert log == ["update 0", "update 1", "values", "update 2", "update 3"]
    assert task.done and task.result() == "values"


def test_when_done_never_calls_back_at_once(app: App) -> None:
    readback = FakeReadback()
    readback.done = True
    results: list[str] = []
    app.when_done(readback, results.append)
    assert results == []
    app.loop_once()
    assert results == ["values"]


def test_a_failing_callback_names_the_readback(app: App) -> None:
    readback = FakeReadback()
    readback.done = True

    def fail(_: str) -> None:
        raise ZeroDivisionError

    app.when_done(readback, fail)
    with pytest.raises(ZeroDivisionError) as caught:
        app.loop_once()
    assert caught.value.__notes__ == ["in when_done of scores"]


def test_a_readback_of_a_removed_script_calls_no_callback(app: App) -> None:
    readback = FakeReadback()
    script = Script()
    app.add(script)
    app.when_done(readback, lambda _: pytest.fail("called"), owner=script)
    app.remove(script)
    readback.done = True
    app.loop_once()


def test_a_schedule_advances_until_its_budget_is_spent(app: App, clock: ManualClock) -> None:
    taken: list[int] = []
    task = app.advance(layers(clock, [1.0] * 5 + [9.0] + [1.0] * 2, taken), budget_ms=2.5)
    counts = []
    while not task.done:
        frame = app.loop_once()
        assert frame.budget_ms == 2.5
        counts.append(len(taken))
    assert counts == [3, 6, 8]  # the long step is not split
    assert task.result() is None
    assert app.loop_once().budget_ms == 0.0


def test_at_least_one_step_a_frame(app: App, clock: ManualClock) -> None:
    taken: list[int] = []
    app.advance(layers(clock, [50.0] * 3, taken), budget_ms=0.0)
    app.run(frames=2)
    assert taken == [0, 1]


def test_steps_may_report_their_cost(app: App) -> None:
    """GPU work does so, since the clock does not measure it."""
    taken: list[float] = []

    def steps() -> Iterator[float]:
        for cost in (0.75, 0.75, 0.75, 5.0, 0.75):
            taken.append(cost)
            yield cost

    app.advance(steps(), budget_ms=2.0)
    app.loop_once()
    assert taken == [0.75, 0.75, 0.75]
    app.loop_once()
    assert taken[3:] == [5.0]


def test_schedules_advance_after_updates_and_are_done_before_render(app: App, clock: ManualClock) -> None:
    log: list[object] = []

    class Runner(Script):
        def update(self, frame: Frame) -> None:
            if frame.index == 0:
                self.app.advance(layers(clock, [0.1, 0.1], []), on_done=lambda: log.append("done"))

        def late_update(self, frame: Frame) -> None:
            log.append("late_update")

        def render(self, frame: Frame) -> None:
            log.append("render")

    app.run(Runner(), frames=1)
    assert log == ["late_update", "done", "render"]


def test_a_schedule_can_be_awaited(app: App, clock: ManualClock) -> None:
    async def infer() -> int:
        await app.advance(layers(clock, [1.0] * 4, []), budget_ms=1.5)
        return app.frame.index  # type: ignore[union-attr]

    task = app.start_coroutine(infer())
    app.run(frames=4)
    # two steps in each of the frames 0 and 1, the end in frame 2; coroutines come before schedules
    assert task.result() == 3


def test_cancelling_closes_the_iterator(app: App, clock: ManualClock) -> None:
    log: list[str] = []

    def steps() -> Iterator[None]:
        try:
            while True:
                clock.advance(0.001)
                yield
        finally:
            log.append("closed")

    task = app.advance(steps(), budget_ms=2.0, on_done=lambda: log.append("done"))
    app.loop_once()
    task.cancel()
    app.loop_once()
    assert log == ["closed"]
    with pytest.raises(ClosedError):
        task.result()


def test_an_iterator_may_cancel_its_own_schedule(app: App) -> None:
    log: list[str] = []

    def steps() -> Iterator[None]:
        try:
            while True:
                task.cancel()
                yield
                log.append("never")
        finally:
            log.append("closed")

    task = app.advance(steps())
    app.loop_once()
    assert log == ["closed"]


def test_any_iterable_will_do(app: App) -> None:
    task = app.advance([1, 2, 3])
    app.loop_once()
    assert task.done


def test_a_failing_step_leaves_the_loop_with_its_name(app: App) -> None:
    def explode() -> Iterator[None]:
        yield
        raise ZeroDivisionError

    app.advance(explode())
    with pytest.raises(ZeroDivisionError) as caught:
        app.loop_once()
    assert "explode" in caught.value.__notes__[0]
