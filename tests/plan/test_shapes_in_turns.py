"""A worker whose input shapes change from run to run computes exactly what a fresh worker computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe import functional as F
from perframe.backends.gl.replay import CommandList
from perframe.execution.inputs import Inputs
from perframe.plan.refit import PATIENCE, FittedPlan
from perframe.testing.checks import trace
from small import load, node
from support import GL_BACKENDS

pytestmark = [pytest.mark.parametrize("backend", GL_BACKENDS, indirect=True)]
WARM = [(3, 5), (8, 40), (4, 64), (37, 6), (1, 2), (2, 1), (16, 16), (0, 5), (5, 0)]


def table() -> pf.Model:
    """Rows and columns of any number: a product, a softmax, sums and a join."""
    graph = pf.FunctionalGraph("table")
    x = graph.add_input("float32", ("rows", "columns"), "x")
    products = F.matmul(x, F.transpose(x, 0, 1))
    joined = F.concat([F.softmax(x, -1), F.exp(x) * 0.5], 1)
    return graph.compile(products=products, joined=joined, sums=F.reduce_sum(x * x, [0]))


def values(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def check(worker: pf.Worker, wanted: dict[str, Any], case: str) -> None:
    for name, want in wanted.items():
        np.testing.assert_array_equal(worker.peek_output(name).numpy(), want, err_msg=f"{name} of {case}")


@pytest.fixture
def wanted(backend: str) -> dict[tuple[int, int], dict[str, Any]]:
    """The results of fresh workers, by shapes."""
    sides = (0, 1, 2, 7, 13, 31, 64, 127)
    random = np.random.default_rng(3)
    shapes = {(int(a), int(b)) for a, b in random.choice(sides, (28, 2))}
    return {shape: pf.run(table(), {"x": values(*shape)}, backend=backend) for shape in sorted(shapes)}


@pytest.fixture
def workers(backend: str) -> Iterator[list[pf.Worker]]:
    """Two workers of one model, with templates."""
    model = table()
    with pf.Worker(model, backend) as one, pf.Worker(model, backend) as other:
        for shape in WARM:
            for worker in (one, other):
                worker.schedule(values(*shape)).peek_output().numpy()
                trace(worker)
        yield [one, other]


def test_any_order_of_shapes(workers: list[pf.Worker], wanted: Any) -> None:
    """In turns, back and forth, some runs twice, and some in frames with a budget."""
    random, shapes = np.random.default_rng(5), list(wanted)
    before = shapes[0]
    for turn in range(120):
        worker = workers[random.integers(2)]
        shape = before if turn % 5 == 4 else shapes[random.integers(len(shapes))]
        way = random.integers(6)
        if way == 0:
            for _ in worker.schedule_iterable(values(*shape), budget_ms=0.01):
                pass
        elif way == 1:
            next(worker.schedule_iterable(values(*shape)), None)  # and the next run ends it
            worker.schedule(values(*shape))
        else:
            for _ in range(way // 2):
                worker.schedule(values(*shape))
        check(worker, wanted[shape], f"{shape} in turn {turn}")
        before = shape


def test_profiles_and_tensors_come_between(workers: list[pf.Worker], wanted: Any) -> None:
    worker = workers[0]
    for turn, shape in enumerate([*wanted, *reversed(wanted)]):
        x = values(*shape)
        if turn % 3 == 0:
            with pf.profile():
                worker.schedule(x)
        else:
            worker.schedule(pf.Tensor(x) if turn % 3 == 1 else x)
        check(worker, wanted[shape], f"{shape} in turn {turn}")


def test_known_shapes_and_new_ones_decide_nothing(workers: list[pf.Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    worker, model = workers[0], table()
    expected = {shape: pf.run(model, {"x": values(*shape)}) for shape in [(9 + k, 32) for k in range(8)]}
    for shape in list(expected)[:2] * 2:
        worker.schedule(values(*shape))
        trace(worker)
    decided: list[Any] = []
    gather = Inputs.gather
    monkeypatch.setattr(Inputs, "gather", lambda *given: decided.append(given) or gather(*given))
    for shape, outputs in (list(expected.items()) + list(expected.items())[::-1])[2:]:
        worker.schedule(values(*shape))
        for name, want in outputs.items():
            np.testing.assert_allclose(worker.peek_output(name).numpy(), want, 1e-4, 1e-4)
    assert len(decided) <= 2, "runs with shapes that a template serves are like the run before"


def test_storages_that_grow_keep_the_recorded_commands(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Exp", "x", "a"), node("MatMul", "a eye", "y")]
    model = load(nodes, {"x": ["n", 8]}, constants={"eye": np.eye(8, dtype=np.float32)})
    with pf.Worker(model, backend) as worker:
        for rows in (16, 32, 16):
            worker.schedule(values(rows, 8)).peek_output().numpy()
            trace(worker)
        (part,) = worker.parts.planned_parts()
        part.evict_all()
        worker.schedule(values(16, 8))
        plan, device = part.latest_plan, part._machine.backend.device  # type: ignore[attr-defined]
        assert isinstance(plan, FittedPlan)
        moves = device.moves
        monkeypatch.setattr(CommandList, "finish", lambda _: 1 / 0)
        for rows in (64, 100, 16, 200):
            x = values(rows, 8)
            worker.schedule(x)
            np.testing.assert_allclose(worker.peek_output().numpy(), np.exp(x), 1e-5)
        assert part.latest_plan is plan and device.moves > moves


@pytest.fixture
def by_length() -> pf.Model:
    """y = abs(x) + 1 where x has at least 9 rows, and 1 - x elsewhere."""

    def branch(name: str, made: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([made], name, [], [onnx.ValueInfoProto(name="out")])

    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Greater", "n eight", "long"),
        helper.make_node(
            "If",
            ["long"],
            ["part"],
            name="by length",
            then_branch=branch("then", node("Abs", "x", "out")),
            else_branch=branch("else", node("Neg", "x", "out")),
        ),
        node("Add", "part one", "y"),
    ]
    constants = [
        helper.make_tensor("zero", TensorProto.INT64, [], [0]),
        helper.make_tensor("eight", TensorProto.INT64, [], [8]),
        helper.make_tensor("one", TensorProto.FLOAT, [], [1]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(nodes, "by length", [x], [onnx.ValueInfoProto(name="y")], constants)
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def test_shapes_that_decide_a_branch(backend: str, by_length: pf.Model) -> None:
    with pf.Worker(by_length, backend) as worker:
        random = np.random.default_rng(1)
        for turn in range(80):
            rows = int(random.integers(12, 40) if turn % 7 < 4 else random.integers(1, 9))
            steps = None
            if turn % 11 == 5:  # another run's inputs are looked at in between
                steps = worker.schedule_iterable(values(20 if rows < 9 else 4, 3))
            x = values(rows, 3)
            worker.schedule(x)
            y = (np.abs(x) if rows > 8 else -x) + 1
            np.testing.assert_array_equal(worker.peek_output().numpy(), y, err_msg=f"{rows} rows in turn {turn}")
            del steps
            if turn < 12:
                trace(worker)


def test_a_use_lets_tracing_continue(backend: str) -> None:
    with pf.Worker(load([node("Softmax", "x", "y")], {"x": ["n", "m"]}), backend) as worker:
        for shape in ((4, 6), (8, 6)):
            worker.schedule(values(*shape)).peek_output().numpy()
        (part,) = trace(worker)
        assert part._templates is not None
        part._templates._unused = PATIENCE
        assert not part._templates.is_open
        part.evict_all()
        worker.schedule(values(9, 6)).peek_output().numpy()
        assert part._templates.is_open
