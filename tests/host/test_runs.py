"""`app.schedule`: runs that advance within milliseconds a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.errors import ClosedError, InputError
from perframe.host import App, ManualClock, Run, Script
from perframe.host.surface import BlankSurface
from perframe.plan.budget import Spent


class FakeWorker:
    """Takes its budget in each frame, until it has taken `costs_ms`."""

    def __init__(self, cost_ms: float) -> None:
        self.cost_ms, self.begun, self.log = cost_ms, list[Any](), list[Any]()

    def schedule_iterable(self, /, *inputs: Any, budget_ms: float, **_: Any) -> Iterator[Spent]:
        self.begun.append(inputs)
        left = self.cost_ms
        while left > 0:
            taken = Spent(min(left, budget_ms))
            taken.longest, taken.longest_ms, left = "conv", float(taken), left - budget_ms
            taken.is_last = left <= 0
            self.log.append(inputs)
            yield taken


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(step=0.01)


@pytest.fixture
def app(clock: ManualClock) -> Iterator[App]:
    with App(surface=BlankSurface((4, 3)), clock=clock, stop_on_error=True) as app:
        yield app


def test_a_run_ends_in_the_frame_of_its_last_slice(app: App) -> None:
    worker, ended = FakeWorker(10), list[Run]()
    run = app.schedule(worker, "x", budget_ms=4, source="picture", on_done=ended.append)
    frames = 0
    while not run.done:
        assert app.loop_once().budget_ms == 4
        frames += 1
    assert (frames, run.frames, run.spent_ms) == (3, 3, 10.0)
    assert (run.source, run.longest, run.longest_ms) == ("picture", "conv", 4.0)
    assert ended == [run] and run.result() is worker and worker.begun == [("x",)]
    assert app.loop_once().budget_ms == 0


def test_it_is_done_before_render_and_knows_its_frame(app: App) -> None:
    log: list[Any] = []

    class Runner(Script):
        def update(self, frame: pf.Frame) -> None:
            if frame.index == 2:
                self.app.schedule(FakeWorker(1), 0, on_done=lambda run: log.append(("done", run.frame)), owner=self)

        def render(self, frame: pf.Frame) -> None:
            log.append(("render", frame.index))

    app.run(Runner(), frames=4)
    assert log == [("render", 0), ("render", 1), ("done", 2), ("render", 2), ("render", 3)]


def asked(app: App, worker: FakeWorker, policy: Any) -> list[Run]:
    """One run in each of three frames, which take two frames each."""
    runs = []
    for index in range(3):
        runs.append(app.schedule(worker, index, budget_ms=5, policy=policy))
        app.loop_once()
    for _ in range(6):
        app.loop_once()
    return runs


@pytest.mark.parametrize(
    ("policy", "finished", "cancelled"), [("newest", [0, 2], [1]), ("queue", [0, 1, 2], []), ("skip", [0, 2], [1])]
)
def test_what_happens_to_runs_that_come_too_fast(
    app: App, policy: str, finished: list[int], cancelled: list[int]
) -> None:
    worker = FakeWorker(12 if policy == "newest" else 10)
    runs = asked(app, worker, policy)
    assert all(run.done for run in runs)
    assert [begun for (begun,) in worker.begun] == finished
    for index in cancelled:
        with pytest.raises(ClosedError):
            runs[index].result()


def test_the_newest_replaces_a_run_that_has_not_begun(clock: ManualClock) -> None:
    low, high = FakeWorker(1), FakeWorker(6)
    with App(surface=BlankSurface((4, 3)), clock=clock, budget_ms=3, stop_on_error=True) as app:
        app.schedule(high, 0, budget_ms=3, priority=1)
        runs = []
        for picture in range(3):
            runs.append(app.schedule(low, picture, budget_ms=3))
            app.loop_once()
        assert [run.done for run in runs] == [True] * 3 and low.begun == [(2,)]


def test_workers_of_a_higher_priority_come_first(clock: ManualClock) -> None:
    low, high = FakeWorker(6), FakeWorker(6)
    with App(surface=BlankSurface((4, 3)), clock=clock, budget_ms=4, stop_on_error=True) as app:
        runs = [app.schedule(low, 0, budget_ms=3), app.schedule(high, 0, budget_ms=3, priority=1)]
        assert app.loop_once().budget_ms == 4
        assert [run.frames for run in runs] == [0, 1]
        app.loop_once()
        assert runs[1].done and runs[0].frames == 0
        app.loop_once()
        app.loop_once()
        assert runs[0].done


def test_two_workers_share_a_frame_that_has_room_for_both(clock: ManualClock) -> None:
    workers = FakeWorker(6), FakeWorker(6)
    with App(surface=BlankSurface((4, 3)), clock=clock, budget_ms=6, stop_on_error=True) as app:
        runs = [app.schedule(worker, 0, budget_ms=3) for worker in workers]
        app.run(frames=2)
    assert all(run.done and run.frames == 2 for run in runs)


def test_a_run_that_is_late_is_dropped(app: App, clock: ManualClock) -> None:
    worker, ended = FakeWorker(100), list[Run]()
    run = app.schedule(worker, 0, budget_ms=1, deadline_ms=25, on_done=ended.append)
    for _ in range(5):
        app.loop_once()
    assert run.done and not ended and 1 <= run.frames <= 3
    with pytest.raises(ClosedError):
        run.result()


def test_runs_end_with_their_script(app: App) -> None:
    script = Script()
    app.add(script)
    run = app.schedule(FakeWorker(100), 0, owner=script)
    app.loop_once()
    app.remove(script)
    assert run.done


def test_runs_are_awaited(app: App) -> None:
    async def infer() -> Any:
        return await app.schedule(FakeWorker(8), 0, budget_ms=4)

    task = app.start_coroutine(infer())
    app.run(frames=4)
    assert isinstance(task.result(), FakeWorker)


@pytest.mark.parametrize(
    ("worker", "options"),
    [
        (None, {}),
        (FakeWorker(1), {"budget_ms": -1}),
        (FakeWorker(1), {"budget_ms": "4"}),
        (FakeWorker(1), {"policy": "oldest"}),
        (FakeWorker(1), {"deadline_ms": 0}),
        (FakeWorker(1), {"priority": float("nan")}),
    ],
    ids=["no worker", "negative", "text", "policy", "deadline", "priority"],
)
def test_wrong_use(app: App, worker: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        app.schedule(worker, 0, **options)


def test_an_error_of_a_run_names_it(app: App) -> None:
    model = graph([node("Relu", "x", "y")], {"x": [2, 3]})
    worker = pf.Worker(model)
    app.schedule(worker, np.zeros((2, 3), np.float32))
    worker.release()
    with pytest.raises(pf.ClosedError) as caught:
        app.loop_once()
    assert any("run of small" in note for note in caught.value.__notes__)


def test_inputs_that_do_not_fit_are_an_error_at_once_and_cancel_nothing(app: App) -> None:
    model = graph([node("Relu", "x", "y")], {"x": [2, 3]})
    with pf.Worker(model) as worker:
        first = app.schedule(worker, np.ones((2, 3), np.float32))
        with pytest.raises(InputError, match=r"'x' has the shape \(2, 3\), and got \(2, 4\)"):
            app.schedule(worker, np.zeros((2, 4), np.float32))
        for _ in range(5):
            app.loop_once()
        assert first.result() is worker and worker.peek_output().numpy().all()


def test_a_model_may_have_no_inputs_left(app: App) -> None:
    model = graph([node("Identity", "x", "y")], {"x": [2, 3]})
    with pf.Worker(model, carry={"y": "x"}) as worker:
        runs = app.schedule(worker), app.schedule(worker, [], policy="queue")
        for _ in range(10):
            app.loop_once()
        assert all(run.result() is worker for run in runs)


def test_real_workers_with_real_costs(app: App, backend: str, backend_context: Any) -> None:
    """The results are those of one schedule, whatever the frames were."""
    weights = {"w": random(8, 3, 3, 3, seed=1), "v": random(8, 8, 3, 3, seed=2)}
    layers = [node("Conv", "x w", "a"), node("Relu", "a", "b"), node("Conv", "b v", "c"), node("Softmax", "c", "y")]
    model = graph(layers, {"x": [1, 3, 40, 50]}, weights)
    x = random(1, 3, 40, 50)
    want = pf.run(model, {"x": x})["y"]
    with pf.Worker(model, backend, backend_context) as worker:
        for budget_ms in (0, 0.5, 10_000):  # the last is enough on a busy machine, too
            run = app.schedule(worker, x, budget_ms=budget_ms)
            frames = 0
            while not run.done:
                app.loop_once()
                frames += 1
                assert frames < 10_000
            assert run.frames == frames and run.longest and run.spent_ms > 0
            np.testing.assert_allclose(worker.peek_output().download_to_array(), want, 1e-4, 1e-5)
        assert frames == 1
