"""States of all kinds: of open dims, and made by branches, loops, constants and layers on the host."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import perframe as pf
from execution.recurrent import random, recurrent, step
from perframe import functional as F
from perframe.testing.checks import trace

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
        with pytest.raises(pf.InputError, match=r"begin with worker\.reset"):
            worker.state()
        np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), step(x, 0 * x), rtol=1e-5)
        with pytest.raises(pf.InputError, match="'batch' is 5"):
            worker.schedule(random(5, 3))
        worker.reset()
        x = random(5, 3)
        np.testing.assert_allclose(worker.schedule(x).peek_output("next").numpy(), step(x, 0 * x), rtol=1e-5)


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


@pytest.mark.parametrize("decided", [True, False])
def test_a_state_that_a_branch_hands_on(backend: str, decided: bool) -> None:
    with pf.Worker(pf.load(parser.parse_model(BRANCH)), backend, carry={"next": "state"}) as worker:
        expected = np.zeros(3, np.float32)
        for changes in (False, True, True, False, True, False, False, True):
            x = random(3)
            worker.schedule(x=x, changes=np.array(changes) if decided else pf.Tensor(np.array(changes)))
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


def test_an_evicted_plan_does_not_take_the_state_with_it(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perframe.execution.plan_cache.MAX_PLANS", 1)
    graph = pf.FunctionalGraph()
    x, total = graph.add_input("float32", ("n",), "x"), graph.add_input("float32", (1,), "total")
    model = graph.compile(next=total + F.reduce_sum(x, 0, True))
    with pf.Worker(model, backend, carry={"next": "total"}) as worker:
        expected = 0.0
        for count in (1, 2, 3, 1, 2, 3, 5):
            worker.schedule(np.ones(count, np.float32))
            expected += count
            assert worker.state().numpy() == [expected]


def test_a_state_that_grows(backend: str) -> None:
    """A cache of keys: each run appends a row, so each run has another shape."""
    graph = pf.FunctionalGraph()
    x, past = graph.add_input("float32", (1, 1, 4), "x"), graph.add_input("float32", (1, "past", 4), "past")
    keys = F.concat([past, x], 1)
    model = graph.compile(present=keys, y=F.softmax(F.matmul(keys, F.transpose(x, 1, 2)), 1))
    with pf.Worker(model, backend, carry={"present": "past"}) as worker:
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


def test_a_state_of_another_shape_after_each_run(backend: str) -> None:
    """The output of a plan that serves all sizes is not storage that the state may keep: it loses its values when the
    plan gets other sizes.
    """
    graph = pf.FunctionalGraph("longer")
    state, x = graph.add_input("float32", ("n", 3), "state"), graph.add_input("float32", ("k", 3), "x")
    model = graph.compile(longer=F.tanh(F.concat([state, x], 0)))
    with pf.Worker(model, backend, carry={"longer": "state"}) as worker:
        for repeat in range(3):
            worker.reset(np.zeros((0, 3), np.float32))
            expected = np.zeros((0, 3), np.float32)
            for step in range(40):
                x = random(1 + (step + repeat) % 3, 3)
                expected = np.tanh(np.concatenate([expected, x]))
                np.testing.assert_allclose(worker.schedule(x=x).peek_output().numpy(), expected, rtol=1e-4, atol=1e-6)
                if repeat == 0:
                    trace(worker)
