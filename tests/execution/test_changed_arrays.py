"""Runs that begin later than their inputs are given: the caller may fill its arrays anew meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node
from perframe.host import App, ManualClock
from perframe.host.surface import BlankSurface
from perframe.plan.input_ring import MIN_IN_FLIGHT
from perframe.plan.plan import LEAST_LENT, Plan

LARGE, SMALL = LEAST_LENT // 4, 12
LAYERS = [node("Relu", "x", "a"), node("Softmax", "a", "b"), node("Mul", "a b", "c"), node("ReduceMax", "a axes", "y")]
MODEL = graph(LAYERS, {"x": [1, "n"]}, {"axes": np.array([1])})

sizes = pytest.mark.parametrize("size", [SMALL, LARGE])
budgets = pytest.mark.parametrize("budget_ms", [None, 0.0])


@pytest.fixture
def worker(backend: str, backend_context: Any) -> Iterator[pf.Worker]:
    with pf.Worker(MODEL, backend, backend_context) as made:
        yield made


def begun(worker: pf.Worker, array: Any, budget_ms: float | None) -> Iterator[Any]:
    return (
        worker.schedule_iterable(array) if budget_ms is None else worker.schedule_iterable(array, budget_ms=budget_ms)
    )


def result(worker: pf.Worker) -> float:
    return float(worker.peek_output().download_to_array().max())


def filled(size: int, value: float) -> Any:
    return np.full((1, size), value, np.float32)


@sizes
@budgets
def test_an_array_may_change_before_the_first_step(worker: pf.Worker, size: int, budget_ms: float | None) -> None:
    for value in (1, 2, 3):  # the first time there is no plan
        array = filled(size, value)
        steps = begun(worker, array, budget_ms)
        array[:] = -1
        for _ in steps:
            array[:] = -2
        assert result(worker) == value


@sizes
@budgets
def test_runs_that_wait_keep_the_inputs_of_each(worker: pf.Worker, size: int, budget_ms: float | None) -> None:
    """Also if they wait while another run is under way, and while whole runs come between."""
    array = filled(size, 1)
    first = begun(worker, array, budget_ms)
    next(first)
    waiting = []
    for value in range(2, 2 + 2 * MIN_IN_FLIGHT):
        array[:] = value
        waiting.append((value, begun(worker, array, budget_ms)))
    array[:] = -1
    for _ in first:
        pass
    assert result(worker) == 1
    for value, steps in waiting:
        assert result(worker.schedule(filled(size, value + 100))) == value + 100
        for _ in steps:
            pass
        assert result(worker) == value


@sizes
def test_runs_that_are_dropped_free_their_storage(worker: pf.Worker, size: int) -> None:
    def storages() -> int:
        return sum(len(ring) for part in worker.parts.planned_parts() for ring in part.latest_plan._rings)

    worker.schedule(filled(size, 0)).peek_output().download_to_array()
    counts = set()
    for value in range(1, 40):
        dropped = begun(worker, filled(size, -5), 0.0)
        steps = begun(worker, filled(size, value), 0.0)
        for _ in steps:
            pass
        assert result(worker) == value
        del dropped
        counts.add(storages())
    assert max(counts) <= MIN_IN_FLIGHT


def test_a_run_that_waits_uploads_nothing(worker: pf.Worker, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another advances: a newer one may take its place before it begins. On the CPU an upload is a copy."""
    worker.schedule(filled(LARGE, 0)).peek_output().download_to_array()
    first = begun(worker, filled(LARGE, 1), 0.0)
    next(first)
    held, hold = list[int](), Plan.hold
    monkeypatch.setattr(Plan, "hold", lambda self, values: (held.append(1), hold(self, values)))
    waiting = [begun(worker, filled(LARGE, value), 0.0) for value in (2, 3, 4)]
    assert bool(held) == (backend == "cpu")
    for _ in first:
        pass
    assert result(worker) == 1
    for _ in waiting[-1]:
        pass
    assert result(worker) == 4
    next(begun(worker, filled(LARGE, 5), 0.0))
    assert held  # nothing else was under way


@pytest.mark.parametrize("policy", ["newest", "queue"])
@sizes
def test_results_belong_to_the_source_of_their_run(worker: pf.Worker, size: int, policy: Any) -> None:
    """A camera fills one buffer in each frame."""
    buffer, found = filled(size, 0), list[tuple[Any, float]]()
    surface, clock = BlankSurface((4, 3)), ManualClock(0.01)
    with App(surface=surface, clock=clock, stop_on_error=True) as app:
        for index in range(1, 30):
            buffer[:] = index
            app.schedule(
                worker,
                buffer,
                budget_ms=0,
                policy=policy,
                source=index,
                on_done=lambda run: found.append((run.source, result(worker))),
            )
            app.loop_once()
        while len(found) < (29 if policy == "queue" else 1):
            app.loop_once()
    assert found and all(source == value for source, value in found)


def test_values_between_parts_are_those_that_were_given(backend: str, backend_context: Any) -> None:
    """A layer on the host, and the part after it, read the array later than the first part does."""
    layers = [node("Relu", "x", "a"), node("NonZero", "a", "places"), node("Transpose", "places", "turned")]
    layers += [node("GatherND", "x turned", "found"), node("ReduceMax", "found", "y")]
    with pf.Worker(graph(layers, {"x": [1, "n"]}), backend, backend_context) as worker:
        for size, value in ((SMALL, 3), (LARGE, 4), (LARGE, 5)):
            array = filled(size, value)
            steps = worker.schedule_iterable(array)
            for _ in steps:
                array[:] = 9
            assert result(worker) == value


def test_a_sequence_that_comes_out_has_arrays_of_its_own() -> None:
    """Its arrays may be those of the caller, which layers on the host hand on."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    kind = onnx.helper.make_tensor_sequence_value_info("y", onnx.TensorProto.FLOAT, None)
    nodes = [onnx.helper.make_node("SequenceConstruct", ["x", "x"], ["y"])]
    made = onnx.helper.make_graph(nodes, "sequence", [x], [kind])
    model = pf.load(onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 18)]))
    array = np.ones(2, np.float32)
    with pf.Worker(model) as worker:
        out = worker.schedule(array).peek_output()
        array[:] = 7
        assert [np.asarray(item).tolist() for item in out] == [[1, 1], [1, 1]]
