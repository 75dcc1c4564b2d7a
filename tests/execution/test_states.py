"""States: outputs that the next run reads, on all backends."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import numpy as np
import pytest
from onnx import parser

import perframe as pf
from perframe import functional as F
from perframe.backends.protocol import Backend

LOOP = """<ir_version: 9, opset_import: ["" : 17]>
looping (float[3] x, float[3] state) => (float[3] y, float[3] next) {
    begin = Add(state, x)
    trips = Constant<value: tensor = int64 {3}>()
    next = Loop(trips, , begin) <body = body (int64 count, bool going, float[3] value) => (bool again, float[3] after) {
        half = Constant<value: tensor = float {0.5}>()
        again = Identity(going)
        halved = Mul(value, half)
        number = Cast<to = 1>(count)
        after = Add(halved, number)
    }>
    y = Sub(next, state)
}"""
BRANCH = """<ir_version: 9, opset_import: ["" : 17]>
branching (float[3] x, float[3] state, bool changes) => (float[3] next) {
    next = If(changes) <
        then_branch = then () => (float[3] yes) { yes = Add(state, x) },
        else_branch = else () => (float[3] no) { no = Identity(state) }
    >
}"""
HOST = """<ir_version: 9, opset_import: ["" : 17]>
hosted (string[2] x, float[2] state) => (float[2] next) {
    number = Cast<to = 1>(x)
    next = Add(number, state)
}"""
TEXTS = """<ir_version: 9, opset_import: ["" : 20]>
texts (int64[2] x, string[2] state) => (string[2] next) {
    text = Cast<to = 8>(x)
    next = StringConcat(state, text)
}"""
SHAPES = [(2, 3), (1, 1), (7, 13), (5, 0), (3, 4, 5)]
RNG = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape, np.float32)


def recurrent(shape: tuple[Any, ...], joined: bool = False) -> pf.Model:
    """y = next = tanh(x + state / 2), or that joined with itself along the last axis."""
    graph = pf.FunctionalGraph()
    x, state = graph.add_input("float32", shape, "x"), graph.add_input("float32", shape, "state")
    after = F.tanh(x + state * 0.5)
    if joined:
        half = F.split(after, shape[-1] // 2, -1)
        after = F.concat([half[1], F.relu(half[0])], -1)
    return graph.compile(y=after * 2, next=after)


def step(x: Any, state: Any, joined: bool = False) -> Any:
    after = np.tanh(x + state * np.float32(0.5))
    if joined:
        first, second = np.split(after, 2, -1)
        after = np.concatenate([second, np.maximum(first, 0)], -1)
    return after


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with each copy between two storages."""
    found: list[int] = []

    from perframe.backends.cpu.backend import CpuBackend
    from perframe.backends.gl.compute import ComputeBackend
    from perframe.backends.gl.pixel import PixelBackend

    for kind in (CpuBackend, ComputeBackend, PixelBackend):
        before = kind.copy

        def copy(self: Backend, *arguments: Any, before: Any = before) -> None:
            found.append(1)
            before(self, *arguments)

        monkeypatch.setattr(kind, "copy", copy)
    return found


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


def test_new_shapes_keep_a_state_of_one_shape(backend: str) -> None:
    graph = pf.FunctionalGraph()
    x, total = graph.add_input("float32", ("n", 4), "x"), graph.add_input("float32", (4,), "total")
    model = graph.compile(y=x - total, next=total + F.reduce_sum(x, 0))
    with pf.Worker(model, backend, carry={"next": "total"}) as worker:
        expected = np.zeros(4, np.float32)
        for count in (3, 1, 5, 3, 2, 7, 1, 4, 9, 11, 6, 8, 3, 12, 10, 1, 3):
            x_now = random(count, 4)
            got = worker.schedule(x_now).peek_output("y").numpy()
            np.testing.assert_allclose(got, x_now - expected, rtol=1e-4, atol=1e-5)
            expected = expected + x_now.sum(0)
        np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_open_dims_of_a_state_come_from_the_inputs(backend: str) -> None:
    with pf.Worker(recurrent(("batch", 3)), backend, carry={"next": "state"}) as worker:
        x = random(2, 3)
        with pytest.raises(pf.InputError, match="begin with reset"):
            worker.state()
        np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), step(x, 0 * x), rtol=1e-5)
        with pytest.raises(pf.InputError, match="'batch' is 5"):
            worker.schedule(random(5, 3))
        worker.reset()
        x = random(5, 3)
        np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), step(x, 0 * x), rtol=1e-5)


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


def test_two_states_and_an_input_between_them(backend: str) -> None:
    """Two states swap their roles: each storage is written while the other state is read."""
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (3,), "x")
    a, b = graph.add_input("float32", (3,), "a"), graph.add_input("float32", (3,), "b")
    model = graph.compile(next_a=b + x, next_b=a - x, y=a * b)
    with pf.Worker(model, backend, carry={"next_a": "a", "next_b": "b"}) as worker:
        one, two = np.zeros(3, np.float32), np.zeros(3, np.float32)
        for _ in range(6):
            given = random(3)
            np.testing.assert_allclose(worker.schedule(given).peek_output("y").numpy(), one * two, rtol=1e-5, atol=1e-6)
            one, two = two + given, one - given
        with pytest.raises(pf.InputError, match="2 states"):
            worker.reset(one)
        with pytest.raises(pf.InputError, match="no state 'c'; its states are 'a', 'b'"):
            worker.reset({"c": one})
        worker.reset({"b": one})
        np.testing.assert_array_equal(worker.state("a").numpy(), 0)
        np.testing.assert_array_equal(worker.state("b").numpy(), one)


def test_states_of_outputs_that_are_inputs_constants_or_each_other(backend: str) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (3,), "x")
    states = [graph.add_input("float32", (3,), f"s{k}") for k in range(4)]
    after = F.relu(x + states[1])
    model = graph.compile(
        n0=states[1], n1=after, n2=F.reshape(after, [3]), n3=np.float32([1, 2, 3]) + states[3] * 0, y=states[0] + x
    )
    with pf.Worker(model, backend, carry={f"n{k}": f"s{k}" for k in range(4)}) as worker:
        found = [np.zeros(3, np.float32)] * 4
        for _ in range(5):
            given = random(3)
            y = worker.schedule(given).peek_output("y").numpy()
            np.testing.assert_allclose(y, found[0] + given, rtol=1e-5, atol=1e-6)
            after_now = np.maximum(given + found[1], 0)
            found = [found[1], after_now, after_now, np.float32([1, 2, 3])]
            for k, expected in enumerate(found):
                np.testing.assert_allclose(worker.state(f"s{k}").numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_state_that_a_loop_makes(backend: str) -> None:
    model = pf.load(parser.parse_model(LOOP))
    with pf.Worker(model, backend, carry={"next": "state"}) as worker:
        expected = np.zeros(3, np.float32)
        for _ in range(4):
            given = random(3)
            y = worker.schedule(given).peek_output("y").numpy()
            before, expected = expected, expected + given
            for k in range(3):
                expected = expected * np.float32(0.5) + k
            np.testing.assert_allclose(y, expected - before, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_state_that_a_branch_hands_on(backend: str) -> None:
    with pf.Worker(pf.load(parser.parse_model(BRANCH)), backend, carry={"next": "state"}) as worker:
        expected = np.zeros(3, np.float32)
        for changes in (False, True, True, False, True, False, False, True):
            x = random(3)
            worker.schedule(x=x, changes=np.array(changes))
            expected = expected + x * changes
            np.testing.assert_allclose(worker.state().numpy(), expected, rtol=1e-5)


def test_states_that_layers_on_the_host_make(backend: str) -> None:
    with pf.Worker(pf.load(parser.parse_model(HOST)), backend, carry={"next": "state"}) as worker:
        for count in range(1, 5):
            worker.schedule(np.array(["1", "2.5"], object))
            np.testing.assert_array_equal(worker.state().numpy(), [count, 2.5 * count])
    with pf.Worker(pf.load(parser.parse_model(TEXTS)), backend, carry={"next": "state"}) as worker:
        worker.reset(np.array(["a", ""], object))
        for count in range(1, 5):
            worker.schedule(np.array([1, 2]))
            assert worker.state().numpy().tolist() == ["a" + "1" * count, "2" * count]
        worker.reset()
        assert worker.state().numpy().tolist() == ["", ""]
        worker.schedule(np.array([1, 2]))
        assert worker.state().numpy().tolist() == ["1", "2"]


@pytest.mark.parametrize(
    ("carry", "says"),
    [
        ({"none": "state"}, "'none', which is not an output; the outputs are y"),
        ({"next": "none"}, "'none', which is not an input; the inputs are x"),
        ({"y": "state", "next": "state"}, "gives the input 'state' two outputs"),
        ({"flat": "state"}, "cannot make the output 'flat'"),
        ({"whole": "state"}, "cannot make the output 'whole'"),
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
        assert "the state 'state' is as before it" in caplog.text
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


def test_an_evicted_plan_does_not_take_the_state_with_it(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perframe.execution.planned_part.MAX_PLANS", 1)
    graph = pf.FunctionalGraph()
    x, total = graph.add_input("float32", ("n",), "x"), graph.add_input("float32", (1,), "total")
    model = graph.compile(next=total + F.reduce_sum(x, 0, True))
    with pf.Worker(model, backend, carry={"next": "total"}) as worker:
        expected = 0.0
        for count in (1, 2, 3, 1, 2, 3, 5):
            worker.schedule(np.ones(count, np.float32))
            expected += count
            assert worker.state().numpy() == [expected]


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


def test_a_state_that_grows(backend: str) -> None:
    """A cache of keys: each run appends a row, so each run has another shape."""
    graph = pf.FunctionalGraph()
    x, past = graph.add_input("float32", (1, 1, 4), "x"), graph.add_input("float32", (1, "past", 4), "past")
    keys = F.concat([past, x], 1)
    model = graph.compile(present=keys, y=F.softmax(F.matmul(keys, F.transpose(x, 1, 2)), 1))
    with pf.Worker(model, backend, carry={"present": "past"}) as worker:
        with pytest.raises(pf.InputError, match=r"the state past: .* has open dims"):
            worker.schedule(random(1, 1, 4))
        for _ in range(2):
            worker.reset(np.zeros((1, 0, 4), np.float32))
            rows = np.zeros((1, 0, 4), np.float32)
            for _ in range(20):
                row = random(1, 1, 4)
                rows = np.concatenate([rows, row], 1)
                scores = np.exp(rows @ row.transpose(0, 2, 1))
                got = worker.schedule(row).peek_output("y").numpy()
                np.testing.assert_allclose(got, scores / scores.sum(1, keepdims=True), rtol=1e-4)
                np.testing.assert_array_equal(worker.state().numpy(), rows)
