"""States: outputs that the next run reads, on all backends."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import numpy as np
import pytest

import perframe as pf
from execution.recurrent import random, recurrent, step
from perframe import functional as F

SHAPES = [(2, 3), (1, 1), (7, 13), (5, 0), (3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_state_goes_from_run_to_run_without_a_copy(backend: str, shape: tuple[int, ...], copies: list[int]) -> None:
    with pf.Worker(recurrent(shape), backend, carry={"next": "state"}) as worker:
        expected = np.zeros(shape, np.float32)
        for _ in range(7):
            x = random(*shape)
            expected = step(x, expected)
            y = worker.schedule(x).peek_output("y").numpy()
            np.testing.assert_allclose(y, expected * 2, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(worker.state("state").numpy(), expected, rtol=1e-5, atol=1e-6)
    assert copies == []


def test_values_within_a_state_follow_it(backend: str, copies: list[int]) -> None:
    """The parts of a join, and of a cut, lie in the state's storage."""
    shape = (3, 8)
    with pf.Worker(recurrent(shape, joined=True), backend, carry={"next": "state"}) as worker:
        expected = np.zeros(shape, np.float32)
        for _ in range(5):
            x = random(*shape)
            expected = step(x, expected, joined=True)
            np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), expected, rtol=1e-5, atol=1e-6)
    assert copies == []


def test_reset_takes_arrays_and_tensors_and_copies_them(backend: str) -> None:
    with pf.Worker(recurrent((2, 3)), backend, carry={"next": "state"}) as worker:
        x, begin = random(2, 3), random(2, 3)
        expected = step(x, begin)
        tensor = worker.empty_input("x")
        tensor.upload(begin)
        for given in ({"state": begin}, begin, pf.Tensor(begin), tensor):
            worker.reset(given)
            np.testing.assert_array_equal(worker.state("state").numpy(), begin)
            for _ in range(2):  # the caller's values stay
                worker.reset(given)
                np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), expected, rtol=1e-5)
                worker.schedule(x)
        np.testing.assert_array_equal(tensor.numpy(), begin)
        changed = begin.copy()
        worker.reset(changed)
        changed[:] = 99
        np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), expected, rtol=1e-5)
        worker.reset()
        np.testing.assert_array_equal(worker.state().numpy(), 0)


def test_a_run_by_steps_and_one_with_a_budget_carry_the_state(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        expected = np.zeros((4, 5), np.float32)
        for turn in range(6):
            x = random(4, 5)
            if turn % 3 == 0:
                worker.schedule(x)
            elif turn % 3 == 1:
                for _ in worker.schedule_iterable(x):
                    pass
            else:
                for _ in worker.schedule_iterable(x, budget_ms=1000):
                    pass
            expected = step(x, expected)
            np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_run_that_is_dropped_leaves_the_state(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        x = random(4, 5)
        worker.schedule(x)
        state = worker.state().numpy()
        begun = worker.schedule_iterable(random(4, 5))
        next(begun)
        next(begun)
        np.testing.assert_array_equal(worker.state().numpy(), state)
        worker.schedule(x)
        np.testing.assert_allclose(worker.state().numpy(), step(x, state), rtol=1e-5)
        with pytest.raises(pf.InputError, match="another run began, or a reset, before this one ended"):
            list(begun)


def test_a_run_that_begins_later_reads_the_state_of_then(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        x, later = random(4, 5), random(4, 5)
        begun = worker.schedule_iterable(later)
        worker.schedule(x)
        for _ in begun:
            pass
        expected = step(later, step(x, np.zeros((4, 5), np.float32)))
        np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_reset_ends_a_run(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        begun = worker.schedule_iterable(random(4, 5))
        next(begun)
        worker.reset(np.ones((4, 5), np.float32))
        with pytest.raises(pf.InputError, match="another run began, or a reset, before this one ended"):
            list(begun)
        np.testing.assert_array_equal(worker.state().numpy(), 1)


def test_a_warmup_leaves_the_state(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        worker.reset(np.ones((4, 5), np.float32))
        assert worker.warmup(random(4, 5))
        np.testing.assert_array_equal(worker.state().numpy(), 1)


@pytest.mark.parametrize(
    ("carry", "says"),
    [
        ({"none": "state"}, "'none', which is not an output; the outputs are y"),
        ({"next": "none"}, "'none', which is not an input; the inputs are x"),
        ({"state": "next"}, r"'state', which is not an output: carry=\{'next': 'state'\}; the outputs are y"),
        ({"y": "state", "next": "state"}, "gives the input 'state' two outputs"),
        ({"flat": "state"}, "carry={'flat': 'state'} does not fit"),
        ({"whole": "state"}, "carry={'whole': 'state'} does not fit"),
        (["next"], "carry is a dict from outputs to inputs, and got list"),
    ],
)
def test_a_carry_that_cannot_work_is_refused(carry: Any, says: str) -> None:
    graph = pf.FunctionalGraph()
    x, state = graph.add_input("float32", (2, 3), "x"), graph.add_input("float32", (2, 3), "state")
    model = graph.compile(y=x + state, next=x - state, flat=F.reshape(x, [6]), whole=F.to(x, "int32"))
    with pytest.raises(pf.InputError, match=says):
        pf.Worker(model, carry=carry)


def test_a_state_is_not_an_input_of_the_caller(backend: str) -> None:
    x = random(2, 3)
    with pf.Worker(recurrent((2, 3)), backend, carry={"next": "state"}) as worker:
        for wrong in ({"x": x, "state": x}, {"state": x}):
            with pytest.raises(pf.InputError, match="carries its input 'state' itself"):
                worker.schedule(wrong)
        with pytest.raises(pf.InputError, match="takes 1 input"):
            worker.schedule(x, x)
        with pytest.raises(pf.InputError, match="carries its input 'state' itself"):
            worker.set_input("state", x)
        with pytest.raises(pf.InputError, match="carries its output 'next' itself"):
            worker.bind_output("next", pf.Tensor(x))
        with pytest.raises(pf.InputError, match="has the shape"):
            worker.reset({"state": np.zeros((2, 4), np.float32)})
    with pytest.raises(pf.ClosedError):
        worker.state()
    with pytest.raises(pf.ClosedError):
        worker.reset()
    with pf.Worker(recurrent((2, 3)), backend) as worker, pytest.raises(pf.InputError, match="has no state"):
        worker.state()


def test_a_state_of_open_dims_has_no_value_before_the_first_run(backend: str) -> None:
    graph = pf.FunctionalGraph("trails")
    x, before = graph.add_input("float32", (1, "n"), "x"), graph.add_input("float32", (1, "n"), "before")
    model = graph.compile(after=F.maximum(x, before * 0.5))
    with pf.Worker(model, backend, carry={"after": "before"}) as worker:
        with pytest.raises(pf.InputError, match=r"no value before the first run.* schedule a run, or begin with"):
            worker.state()
        worker.schedule(np.ones((1, 3), np.float32))
        np.testing.assert_array_equal(worker.state().numpy(), np.ones((1, 3)))


def test_a_shape_that_the_input_cannot_take_leaves_the_state(backend: str) -> None:
    graph = pf.FunctionalGraph()
    x, state = graph.add_input("float32", ("n",), "x"), graph.add_input("float32", (3,), "state")
    model = graph.compile(next=x * 2, y=state + 1)
    with pf.Worker(model, backend, carry={"next": "state"}) as worker:
        good = random(3)
        worker.schedule(good)
        with pytest.raises(pf.InputError, match="its input state"):
            worker.schedule(random(4))
        np.testing.assert_allclose(worker.state().numpy(), good * 2)
        np.testing.assert_allclose(worker.schedule(good).peek_output("y").numpy(), good * 2 + 1)


@pytest.mark.parametrize("runs", [1, 2, 3, 4])
def test_a_run_that_fails_leaves_the_last_good_state(runs: int, caplog: pytest.LogCaptureFixture) -> None:
    """On the CPU a kernel may fail after the call has returned."""
    graph = pf.FunctionalGraph()
    at, state = graph.add_input("int64", (2,), "at"), graph.add_input("float32", (3, 400), "state")
    rows = F.index_select(state + 1, 0, at)
    model = graph.compile(next=F.concat([rows, state[:1] + 5], 0), y=rows)
    with pf.Worker(model, carry={"next": "state"}) as worker:
        for _ in range(5):
            worker.schedule(np.array([1, 2]))
        expected = worker.state().numpy()
        with caplog.at_level(logging.WARNING, "perframe"):
            for _ in range(runs):
                worker.schedule(np.array([1, 7]))
            with pytest.raises(pf.PerframeError):
                worker.peek_output("y").numpy()
            np.testing.assert_array_equal(worker.state().numpy(), expected)
        assert "its states are as before it" in caplog.text
        worker.schedule(np.array([0, 2]))
        rows_now = expected[[0, 2]] + 1
        np.testing.assert_array_equal(worker.state().numpy(), np.concatenate([rows_now, expected[:1] + 5]))


def test_states_are_checked_layer_by_layer(backend: str) -> None:
    from perframe.backends import evaluator
    from perframe.execution.layer_check import LayerCheck
    from perframe.tensor import BackendType

    check = LayerCheck(evaluator(), BackendType(backend), True)
    with pf.Worker(recurrent((2, 3)), backend, carry={"next": "state"}, check=check) as worker:
        expected = np.zeros((2, 3), np.float32)
        for _ in range(3):
            x = random(2, 3)
            expected = step(x, expected)
            np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_worker_with_a_state_in_two_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    graph = pf.FunctionalGraph()
    x, total = graph.add_input("float32", (50,), "x"), graph.add_input("float32", (50,), "total")
    model = graph.compile(next=total + x)
    with pf.Worker(model, carry={"next": "total"}) as worker, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: worker.schedule(np.ones(50, np.float32)), range(200)))
        np.testing.assert_array_equal(worker.state().numpy(), 200)


def test_outputs_of_one_run_stay_while_the_next_one_is_scheduled(backend: str) -> None:
    """A readback that was begun gets the values of its own run."""
    with pf.Worker(recurrent((64, 64)), backend, carry={"next": "state"}) as worker:
        expected, requests, wanted = np.zeros((64, 64), np.float32), [], []
        for _ in range(12):
            x = random(64, 64)
            expected = step(x, expected)
            wanted.append(expected)
            requests.append(worker.schedule(x).peek_output("next").readback_request())
        for request, values in zip(requests, wanted, strict=True):
            np.testing.assert_allclose(request.result(wait=True), values, rtol=1e-4, atol=1e-5)


def test_a_command_buffer_carries_the_state(backend: str, backend_context: Any) -> None:
    with pf.Worker(recurrent((4, 5)), backend, backend_context, carry={"next": "state"}) as worker:
        given = worker.empty_input("x")
        expected = np.zeros((4, 5), np.float32)
        with pf.CommandBuffer(backend_context) as commands:
            commands.schedule_worker(worker, given)
            for _ in range(3):
                x = random(4, 5)
                given.upload(x)
                commands.execute()
                expected = step(x, expected)
                np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_an_app_drops_a_run_and_keeps_the_state() -> None:
    states: list[Any] = []

    class Flow(pf.Script):
        def start(self) -> None:
            self.worker = pf.Worker(recurrent((4, 5)), carry={"next": "state"})
            self.worker.reset(np.ones((4, 5), np.float32))
            self.x = random(4, 5)

        def update(self, frame: pf.Frame) -> None:
            if frame.index == 0:
                self.dropped = self.app.schedule(self.worker, self.x, budget_ms=0)
            elif frame.index == 2:
                self.dropped.cancel()
            elif frame.index == 4:
                self.app.schedule(self.worker, self.x)
            states.append(self.worker.state().numpy())

        def destroy(self) -> None:
            self.worker.release()
            states.append(self.x)

    pf.App(size=(64, 64), headless=True).run(Flow(), frames=8)
    *states, x = states
    for state in states[:5]:
        np.testing.assert_array_equal(state, 1)
    np.testing.assert_allclose(states[-1], step(x, np.ones((4, 5), np.float32)), rtol=1e-5)


def test_a_profile_of_runs_with_a_state(backend: str) -> None:
    with pf.Worker(recurrent((4, 5)), backend, carry={"next": "state"}) as worker:
        expected = np.zeros((4, 5), np.float32)
        with pf.profile() as profile:
            for _ in range(3):
                x = random(4, 5)
                worker.schedule(x)
                expected = step(x, expected)
        assert profile.layers
        worker.report(repeats=2)  # it runs the steps again, from the same state
        np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("joined", [False, True])
def test_runs_allocate_nothing_once_the_state_is_there(
    backend: str, joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perframe.backends.gl.compute import BufferStorage
    from perframe.backends.gl.pixel import TextureStorage
    from perframe.tensor import HostStorage

    shape = (6, 8)
    with pf.Worker(recurrent(shape, joined), backend, carry={"next": "state"}) as worker:
        x = worker.empty_input("x")
        x.upload(random(*shape))
        for _ in range(4):
            worker.schedule(x)
        worker.state().numpy()
        made: list[type] = []
        for kind in (HostStorage, BufferStorage, TextureStorage):
            before = kind.__init__

            def begin(self: Any, *arguments: Any, before: Any = before, **more: Any) -> None:
                if "alias" not in inspect.stack()[1].function and "part" not in inspect.stack()[1].function:
                    made.append(type(self))
                before(self, *arguments, **more)

            monkeypatch.setattr(kind, "__init__", begin)
        for _ in range(10):
            worker.schedule(x)
        assert made == []
