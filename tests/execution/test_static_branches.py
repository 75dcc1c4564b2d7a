"""Branches that shapes decide: for each set of input shapes they are part of the model around them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from perframe.backends import evaluator
from perframe.execution.control_flow import ControlPart
from perframe.execution.static_branches import MAX_NUMBERS, decide_branches, deciding_inputs, follow_shapes
from small import node


def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    """A body whose output is "out"."""
    return helper.make_graph(list(nodes), name, [], [onnx.ValueInfoProto(name="out")])


@pytest.fixture
def by_rank() -> pf.Model:
    """A pattern of exporters: a matrix gets a batch of one, and loses it again."""
    grows = branch("grows", node("Unsqueeze", "x zero", "out"))
    keeps = branch("keeps", node("Identity", "x", "out"))
    shrinks = branch("shrinks", node("Neg", "whole", "inner"), node("Squeeze", "inner zero", "out"))
    stays = branch("stays", node("Abs", "whole", "inner"), node("Identity", "inner", "out"))
    nodes = [
        node("Shape", "x", "s"),
        node("Size", "s", "rank"),
        node("Equal", "rank two", "flat"),
        helper.make_node("If", ["flat"], ["whole"], name="grow", then_branch=grows, else_branch=keeps),
        helper.make_node("If", ["flat"], ["y"], name="shrink", then_branch=shrinks, else_branch=stays),
        node("Mul", "y y", "inner"),
        node("Relu", "inner", "z"),
    ]
    constants = [helper.make_tensor("zero", TensorProto.INT64, [1], [0])]
    constants.append(helper.make_tensor("two", TensorProto.INT64, [], [2]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    ends = [onnx.ValueInfoProto(name=name) for name in ("y", "z")]
    graph = helper.make_graph(nodes, "by rank", [x], ends, constants)
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (1, 1, 1)])
def test_a_decided_branch_keeps_its_values(
    by_rank: pf.Model, shape: tuple[int, ...], backend: str, backend_context: Any
) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 5
    made = pf.run(by_rank, {"x": x}, backend=backend, ctx=backend_context)
    wanted = -x if len(shape) == 2 else np.abs(x)
    np.testing.assert_array_equal(made["y"], wanted)
    np.testing.assert_array_equal(made["z"], wanted * wanted)


def test_no_branch_is_left_to_a_run(by_rank: pf.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: ControlPart, *rest: Any) -> Any:
        raise AssertionError("a branch was run")

    monkeypatch.setattr(ControlPart, "advance", refuse)
    with pf.Worker(by_rank, "cpu") as worker:
        for shape in ((3, 4), (2, 2, 2), (3, 4)):
            worker.schedule(np.ones(shape, np.float32))
            assert worker.peek_output("y").shape == shape
        assert list(worker.schedule_iterable(np.ones((2, 2), np.float32)))


def test_names_in_bodies_become_unique(by_rank: pf.Model) -> None:
    _, model = decide_branches(by_rank, {"x": (3, 4)}, evaluator())
    assert model is not None
    model.verify()
    assert not any(layer.op == "If" for layer in model.layers)


def test_a_branch_that_data_decide_stays_one(by_rank: pf.Model) -> None:
    yes, no = branch("yes", node("Neg", "x", "out")), branch("no", node("Identity", "x", "out"))
    nodes = [helper.make_node("If", ["c"], ["y"], name="choose", then_branch=yes, else_branch=no)]
    given = [
        helper.make_tensor_value_info(*value) for value in (("x", TensorProto.FLOAT, [2]), ("c", TensorProto.BOOL, []))
    ]
    graph = helper.make_graph(nodes, "by data", given, [onnx.ValueInfoProto(name="y")])
    model = pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    assert decide_branches(model, {"x": (2,), "c": ()}, lambda layer, values: []) == ((), model)
    assert follow_shapes(by_rank) and not follow_shapes(model)
    x = np.array([1, -2], np.float32)
    for choice in (True, False):
        made = pf.run(model, {"x": x, "c": np.array(choice)}, backend="cpu")
        np.testing.assert_array_equal(made["y"], -x if choice else x)


def test_a_few_numbers_decide(backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = by_number()
    monkeypatch.setattr(ControlPart, "run_whole", lambda *_: 1 / 0)
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    with pf.Worker(model, backend=backend, ctx=backend_context) as worker:
        for rate in (8, 16, 8, 8, 8, 16, 16, 16, 8):
            worker.schedule(x, np.array([rate]))
            wanted = np.abs(x) if rate == 16 else -x
            np.testing.assert_array_equal(worker.peek_output().numpy(), wanted + 1)
            worker.schedule(x * 2, np.array([rate]))
            np.testing.assert_array_equal(worker.peek_output().numpy(), wanted * 2 + 1)


def test_a_counter_decides_during_the_run(backend: str, backend_context: Any) -> None:
    x, model = np.float32([-1, 2, -3]), by_number()
    with pf.Worker(model, backend=backend, ctx=backend_context) as worker:
        for rate in [*range(20), 16, 16]:
            worker.schedule(x, np.array([rate]))
            wanted = np.abs(x) if rate == 16 else -x
            np.testing.assert_array_equal(worker.peek_output().numpy(), wanted + 1)
        assert len(worker.parts._chosen_for) <= MAX_NUMBERS + 2


def test_numbers_in_a_tensor_decide_during_the_run(backend: str, backend_context: Any) -> None:
    x, model = np.float32([-1, 2, -3]), by_number()
    with pf.Worker(model, backend=backend, ctx=backend_context) as worker:
        for rate in (8, 16, 16, 16, 8):
            worker.schedule(x, pf.Tensor(np.array([rate])))
            np.testing.assert_array_equal(worker.peek_output().numpy(), (np.abs(x) if rate == 16 else -x) + 1)


def test_states_of_a_decided_branch_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perframe.execution.state.copy_values", lambda *_: 1 / 0)
    state, x = np.float32([1, 2, 3]), np.float32([5, -6, 7])
    with pf.Worker(by_number(), carry={"y": "x"}) as worker:
        worker.reset(x)
        for rate in (8, 8, 8, 16, 16, 16, 16, 8):
            worker.schedule(np.array([rate]))
            x = (np.abs(x) if rate == 16 else -x) + 1
            np.testing.assert_array_equal(worker.peek_output().numpy(), x)
        worker.reset(state)
        np.testing.assert_array_equal(worker.schedule(np.array([8])).peek_output().numpy(), 1 - state)


@pytest.mark.parametrize(("dtype", "shape"), [(TensorProto.FLOAT, [1]), (TensorProto.INT64, ["n"])])
def test_other_inputs_decide_nothing(dtype: int, shape: list[Any]) -> None:
    assert not deciding_inputs(by_number(dtype, shape))


def by_number(dtype: int = TensorProto.INT64, shape: Any = (1,)) -> pf.Model:
    """y = abs(x) + 1 where the rate is 16, and 1 - x elsewhere."""
    nodes = [
        node("Equal", "rate sixteen", "fits"),
        helper.make_node(
            "If",
            ["fits"],
            ["part"],
            name="by rate",
            then_branch=branch("fast", node("Abs", "x", "out")),
            else_branch=branch("slow", node("Neg", "x", "out")),
        ),
        node("Add", "part one", "y"),
    ]
    constants = [
        helper.make_tensor("sixteen", dtype, [1], [16]),
        helper.make_tensor("one", TensorProto.FLOAT, [], [1]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("rate", dtype, shape),
    ]
    graph = helper.make_graph(nodes, "by number", inputs, [onnx.ValueInfoProto(name="y")], constants)
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
