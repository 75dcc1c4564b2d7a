"""States that grow: an output is its input with more appended, as the caches of attention are."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import perframe as pf
from execution.recurrent import random
from perframe import functional as F


def cache(batch: Any, heads: int, size: int, axis: int = 2) -> pf.Model:
    """Attention of x over the rows of `past`, with x at their end. Dim `axis` of a row is the one that grows."""
    shape: list[Any] = [batch, heads, size]
    shape.insert(axis, "past")
    new = [*shape[:axis], "new", *shape[axis + 1 :]]
    graph = pf.FunctionalGraph("cache")
    x, past = graph.add_input("float32", tuple(new), "x"), graph.add_input("float32", tuple(shape), "past")
    rows = F.concat([past, F.tanh(x)], axis)
    order = [*(dim for dim in range(4) if dim != axis), axis]
    keys = F.permute(rows, [*order[:2], axis, order[2]])
    query = F.permute(x, [*order[:2], axis, order[2]])
    scores = F.softmax(F.matmul(query, F.transpose(keys, 2, 3)) * 0.5, -1)
    return graph.compile(y=F.matmul(scores, keys), present=rows)


def expected(x: Any, past: Any, axis: int) -> tuple[Any, Any]:
    rows = np.concatenate([past, np.tanh(x)], axis)
    keys, query = (np.moveaxis(value, axis, 2) for value in (rows, x))
    scores = np.exp(query @ keys.swapaxes(2, 3) * 0.5)
    return scores / scores.sum(-1, keepdims=True) @ keys, rows


def shaped(rows: int, batch: int, heads: int, size: int, axis: int) -> tuple[int, ...]:
    dims = [batch, heads, size]
    dims.insert(axis, rows)
    return tuple(dims)


@pytest.mark.parametrize(
    ("batch", "heads", "size", "axis"),
    [(2, 3, 4, 2), (1, 1, 8, 2), (3, 1, 5, 2), (1, 2, 3, 3), (2, 2, 4, 0), (1, 4, 4, 1)],
)
def test_rows_are_appended(backend: str, batch: int, heads: int, size: int, axis: int) -> None:
    with pf.Worker(cache("batch", heads, size, axis), backend, carry={"present": "past"}) as worker:
        for begin in (0, 3):
            past = random(*shaped(begin, batch, heads, size, axis))
            worker.reset(past if begin else None)
            for new in (4, 1, 1, 1, 7, 1, 1, 0, 2, 1, 1, 1):
                x = random(*shaped(new, batch, heads, size, axis))
                y, past = expected(x, past, axis)
                worker.schedule(x)
                np.testing.assert_allclose(worker.peek_output("y").numpy(), y, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(worker.peek_output("present").numpy(), past, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(worker.state().numpy(), past, rtol=1e-5, atol=1e-6)
            copy = pf.Tensor.empty(past.shape)
            worker.copy_output("present", copy)
            np.testing.assert_array_equal(copy.numpy(), worker.state("past").numpy())


@pytest.mark.parametrize("heads", [2, 4])
def test_attention_of_onnx_grows_too(backend: str, heads: int) -> None:
    """The operator's own outputs of keys and values, with four query heads."""
    node = helper.make_node(
        "Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "nk", "nv"], is_causal=1, q_num_heads=4, kv_num_heads=heads
    )
    shapes = {"q": [1, "n", 32], "k": [1, "n", 8 * heads], "v": [1, "n", 8 * heads]}
    shapes |= {name: [1, heads, "p", 8] for name in ("pk", "pv")}
    model = pf.load(of_opset_23([node], shapes, ["y", "nk", "nv"]))
    past = {name: random(1, heads, 0, 8) for name in ("pk", "pv")}
    with pf.Worker(model, backend, carry={"nk": "pk", "nv": "pv"}) as worker:
        for new in (3, 1, 1, 2, 1):
            given = {name: random(1, new, shape[2]) for name, shape in list(shapes.items())[:3]}
            expected = pf.run(model, {**given, **past})
            past = {"pk": expected["nk"], "pv": expected["nv"]}
            np.testing.assert_allclose(worker.schedule(given).peek_output("y").numpy(), expected["y"], 1e-4, 1e-5)
        np.testing.assert_array_equal(worker.state("pk").numpy(), past["pk"])
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None and part.latest_plan.extended == {"nk", "nv"}


def of_opset_23(nodes: list[Any], shapes: dict[str, Any], outputs: list[str]) -> Any:
    """A model of opset 23."""
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "attention", inputs, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def storages(worker: pf.Worker) -> list[int]:
    """The storages that the present plan writes, with their numbers of elements."""
    (part,) = worker.parts.planned_parts()
    plan = part.latest_plan
    assert plan is not None and plan.extended == {"present"}
    return [id(plan.outputs["present"].data_on_backend)]


def test_a_run_writes_the_new_rows_alone(backend: str) -> None:
    """Old rows that another hand changes stay changed: nothing wrote them again, and the run read them."""
    with pf.Worker(cache(1, 2, 4), backend, carry={"present": "past"}, carry_capacity=64) as worker:
        worker.reset(random(1, 2, 5, 4))
        worker.schedule(random(1, 2, 3, 4))
        first = storages(worker)
        for _ in range(20):
            changed = random(1, 2, worker.state().shape[2], 4)
            (part,) = worker.parts.planned_parts()
            assert part.latest_plan is not None
            part.latest_plan.outputs["present"].data_on_backend.upload(changed.transpose(2, 0, 1, 3).copy())
            x = random(1, 2, 1, 4)
            y, rows = expected(x, changed, 2)
            np.testing.assert_allclose(worker.schedule(x).peek_output("y").numpy(), y, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(worker.state().numpy(), rows, rtol=1e-5, atol=1e-6)
            assert storages(worker) == first, "the storage has room"


def test_the_room_doubles(backend: str) -> None:
    with pf.Worker(cache(1, 2, 4), backend, carry={"present": "past"}) as worker:
        sizes = set()
        for _ in range(40):
            worker.schedule(random(1, 2, 1, 4))
            sizes.add(worker.peek_output("present").shape[2])
            (part,) = worker.parts.planned_parts()
            assert part.latest_plan is not None
            sizes.add(-part.latest_plan.outputs["present"].data_on_backend.max_capacity)
        assert len([size for size in sizes if size < 0]) <= 7


@pytest.mark.parametrize("size", [4, 5], ids=["in place", "copied on GPUs"])
def test_a_capacity_is_a_limit(size: int, backend: str) -> None:
    with pf.Worker(cache(1, 2, size), backend, carry={"present": "past"}, carry_capacity={"past": 4}) as worker:
        past = random(1, 2, 0, size)
        for _ in range(4):
            x = random(1, 2, 1, size)
            _, past = expected(x, past, 2)
            worker.schedule(x)
        for _ in range(2):
            with pytest.raises(pf.InputError, match=r"'past' would have 5 rows, and carry_capacity allows 4"):
                worker.schedule(random(1, 2, 1, size))
            np.testing.assert_allclose(worker.state().numpy(), past, rtol=1e-5, atol=1e-6)
        worker.reset()
        worker.schedule(x)
        assert worker.state().shape == (1, 2, 1, size)


def test_wrong_capacities_are_refused() -> None:
    model, carry = cache(1, 2, 4), {"present": "past"}
    for capacity, message in (
        ({"x": 3}, "carry_capacity names 'x', which is not a state that grows; those are 'past'"),
        (0, "a number of rows, at least 1, and got 0"),
        (True, "at least 1, and got True"),
        ({"past": "many"}, "got 'many'"),
    ):
        with pytest.raises(pf.InputError, match=message):
            pf.Worker(model, carry=carry, carry_capacity=capacity)  # type: ignore[arg-type]
    with pytest.raises(pf.InputError, match="is for states that grow"):
        pf.Worker(model, carry_capacity=3)


def test_a_run_that_ends_early_appends_nothing(backend: str) -> None:
    with pf.Worker(cache(1, 2, 4), backend, carry={"present": "past"}) as worker:
        past = random(1, 2, 3, 4)
        worker.reset(past)
        for _ in range(3):
            steps = worker.schedule_iterable(random(1, 2, 2, 4))
            for _ in range(2):
                next(steps)
            assert worker.warmup(random(1, 2, 2, 4)) or backend == "cpu"
            x = random(1, 2, 1, 4)
            y, past = expected(x, past, 2)
            for _ in worker.schedule_iterable(x):
                pass
            np.testing.assert_allclose(worker.peek_output("y").numpy(), y, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(worker.state().numpy(), past, rtol=1e-5, atol=1e-6)


def test_a_run_that_fails_appends_nothing() -> None:
    """On the CPU a kernel may fail after the call has returned, when later runs have begun."""
    graph = pf.FunctionalGraph("failing")
    at, past = graph.add_input("int64", (1,), "at"), graph.add_input("float32", ("past", 400), "past")
    table = graph.add_input("float32", (3, 400), "table")
    rows = F.concat([past, F.index_select(table, 0, at)], 0)
    model = graph.compile(present=rows, y=F.reduce_sum(rows, 0))
    with pf.Worker(model, carry={"present": "past"}) as worker:
        worker.set_input("table", random(3, 400))
        for index in (0, 1, 2):
            worker.schedule(at=np.array([index]))
        expected = worker.state().numpy()
        for index in (7, 1):
            worker.schedule(at=np.array([index]))
        with pytest.raises(pf.PerframeError):
            worker.peek_output("y").numpy()
        np.testing.assert_array_equal(worker.state().numpy(), expected)
        worker.schedule(at=np.array([2]))
        np.testing.assert_array_equal(worker.state().numpy(), np.concatenate([expected, expected[2:]]))


def test_a_tensor_begins_a_state(backend: str) -> None:
    """A tensor of the device, and the state of another worker, are copied."""
    model, past = cache(1, 2, 4), random(1, 2, 3, 4)
    with pf.Worker(model, backend, carry={"present": "past"}) as worker:
        worker.reset(pf.Tensor(past))
        x = random(1, 2, 1, 4)
        _, past = expected(x, past, 2)
        worker.schedule(x)
        with pf.Worker(model, backend, ctx=getattr(worker, "ctx", None), carry={"present": "past"}) as other:
            other.reset({"past": worker.state()})
            y, _ = expected(x, past, 2)
            other.schedule(x)
            worker.schedule(random(1, 2, 1, 4))
            np.testing.assert_allclose(other.peek_output("y").numpy(), y, rtol=1e-4, atol=1e-5)


def test_no_plan_is_made_within_a_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    from perframe.plan import planner
    from perframe.testing.checks import trace

    model, made = cache(1, 2, 16), []
    with pf.Worker(model, carry={"present": "past"}) as worker:
        for new in (5, 1):
            worker.schedule(random(1, 2, new, 16)).peek_output().numpy()
        trace(worker)
        init = planner.Planner.__init__

        def counted(self: Any, *args: Any) -> None:
            made.extend([1] * (threading.current_thread() is threading.main_thread()))  # jobs trace beside it
            init(self, *args)

        monkeypatch.setattr(planner.Planner, "__init__", counted)
        for _ in range(100):
            worker.schedule(random(1, 2, 1, 16)).peek_output().numpy()
    assert not made


@pytest.mark.parametrize("waits", [True, False])
def test_runs_take_turns_with_few_programs(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that no run uses gets the numbers of the next length. Outputs that lay in it are closed."""
    from perframe.backends.cpu.refit.template import CpuSizedProgram
    from perframe.testing.checks import trace

    model, made, late = cache(1, 2, 16), list[Any](), list[Any]()
    with pf.Worker(model, carry={"present": "past"}) as worker:
        for new in (5, 1, 1):
            worker.schedule(random(1, 2, new, 16)).peek_output().numpy()
            trace(worker)
        init = CpuSizedProgram.__init__
        monkeypatch.setattr(CpuSizedProgram, "__init__", lambda self, *given: made.append(self) or init(self, *given))
        worker.reset()
        past = np.zeros((1, 2, 0, 16), np.float32)
        for step in range(150):
            x = random(1, 2, 1, 16)
            y, past = expected(x, past, 2)
            output = worker.schedule(x).peek_output("y")
            if step == 120:
                earlier = output
            late.append((output.readback_request(), y))
            if waits:
                late[-1][0].result(wait=True)
        for request, want in late:
            np.testing.assert_allclose(request.result(wait=True), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(worker.state().numpy(), past, rtol=1e-5, atol=1e-6)
        assert len(made) <= 3 or not waits
        if waits:
            with pytest.raises(pf.ClosedError, match="was released"):
                earlier.numpy()


def test_messages_have_the_dims_of_the_file() -> None:
    with pf.Worker(cache("batch", 3, 4), carry={"present": "past"}) as worker:
        worker.schedule(random(2, 3, 5, 4))
        with pytest.raises(pf.InputError, match=r"'past' is \(2, 3, 5, 4\), and 'batch' is 1 in this run's inputs"):
            worker.schedule(random(1, 3, 1, 4))
