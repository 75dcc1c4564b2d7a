"""Runs that advance within milliseconds: what they compute, and what they may divide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.errors import InputError
from perframe.plan.allowance import Allowance, Spent, StepCosts
from small import load

CONSTANTS = {
    "w": random(20, 3, 3, 3, seed=1),
    "v": random(12, 20, 1, 1, seed=2),
    "deep": random(12, 1, 3, 3, seed=3),
    "m": random(13 * 9, 7, seed=4),
    "flat": np.array([0, 12, -1]),
    "axis": np.array(2),
}
MODEL = graph(
    [
        node("Conv", "x w", "a", pads=[1] * 4),
        node("Relu", "a", "b"),
        node("Conv", "b v", "c"),
        node("Conv", "c deep", "d", group=12, pads=[1] * 4),
        node("Reshape", "d flat", "e"),
        node("CumSum", "e axis", "f"),
        node("MatMul", "f m", "g"),
        node("Softmax", "g", "y"),
    ],
    {"x": ["n", 3, 13, 9]},
    CONSTANTS,
)


def given(batch: int) -> Any:
    return random(batch, 3, 13, 9, seed=batch)


def wanted(batch: int) -> Any:
    return pf.run(MODEL, {"x": given(batch)})["y"]


def slices(worker: pf.Worker, batch: int, budget_ms: float) -> list[Spent]:
    return list(worker.schedule_iterable(given(batch), budget_ms=budget_ms))


@pytest.mark.parametrize("batch", [1, 2])
def test_results_are_those_of_one_schedule(batch: int, backend: str, backend_context: Any) -> None:
    with pf.Worker(MODEL, backend, backend_context) as worker:
        for budget_ms in (0, 0.2, 1000, 0):
            found = slices(worker, batch, budget_ms)
            assert found and all(one >= 0 and isinstance(one, Spent) for one in found)
            np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(batch), 1e-4, 1e-5)


def test_without_milliseconds_each_slice_is_one_piece(backend: str, backend_context: Any) -> None:
    with pf.Worker(MODEL, backend, backend_context) as worker:
        layers = len(list(worker.schedule_iterable(given(1))))
        assert len(slices(worker, 1, 0)) >= layers
        assert len(slices(worker, 1, 10_000)) == 1  # all is known now, and fits


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_some_rows_of_a_layer_run(
    rows: int, backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the pieces are, the numbers stay."""
    ran = []

    def some(self: StepCosts, step: int, row: int, all_rows: int, count: int, left: float) -> int | None:
        self._begin(count)
        ran.append((row, all_rows))
        return None if all_rows == 1 else min(rows, all_rows - row)

    monkeypatch.setattr(StepCosts, "rows_of", some)
    with pf.Worker(MODEL, backend, backend_context) as worker:
        for batch in (2, 1):
            slices(worker, batch, 0)
            np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(batch), 1e-4, 1e-5)
        worker.schedule(given(2))
        np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(2), 1e-4, 1e-5)
    assert any(row for row, _ in ran) or rows > (1 if backend == "cpu" else 2)


def test_the_cpu_divides_large_layers() -> None:
    """A product and a convolution in many slices give the bits of one run, also after other shapes."""
    model = graph(
        [node("Conv", "x k", "a", pads=[1] * 4), node("Reshape", "a s", "b"), node("MatMul", "b w", "y")],
        {"x": ["n", 8, 40, 40]},
        {"k": random(16, 8, 3, 3, seed=1), "s": np.array([-1, 400]), "w": random(400, 300, seed=2)},
    )
    with pf.Worker(model) as worker:
        for batch in (3, 1, 3):
            x = random(batch, 8, 40, 40, seed=batch)
            whole = worker.schedule(x).peek_output().download_to_array()
            for _ in range(2):
                pieces = list(worker.schedule_iterable(x, budget_ms=0.01))
                np.testing.assert_array_equal(worker.peek_output().download_to_array(), whole)
        assert len(pieces) > 8


def test_an_error_ends_a_divided_run_on_the_cpu() -> None:
    """A kernel that reports an index out of range does so in its part; later runs are sound."""
    model = load([node("Gather", "t i", "y")], {"t": [100, 64], "i": [4096]}, dtypes={"i": "int64"})
    table, good = random(100, 64, seed=1), np.arange(4096) % 100
    bad = good.copy()
    bad[4000] = 1000
    with pf.Worker(model) as worker:
        for _ in range(2):
            with pytest.raises(pf.PerframeError, match="index"):
                list(worker.schedule_iterable(table, bad, budget_ms=0.001))
                worker.peek_output().download_to_array()
            list(worker.schedule_iterable(table, good, budget_ms=0.001))
            np.testing.assert_array_equal(worker.peek_output().download_to_array(), table[good])


def test_the_longest_piece_has_a_name(backend: str, backend_context: Any) -> None:
    with pf.Worker(MODEL, backend, backend_context) as worker:
        names = set(worker.schedule_iterable(given(1))) | {"the inputs"}
        for one in slices(worker, 1, 1000):
            assert one.longest in names and 0 < one.longest_ms <= one + 1e-6


def test_another_run_ends_it(backend: str, backend_context: Any) -> None:
    with pf.Worker(MODEL, backend, backend_context) as worker:
        steps = worker.schedule_iterable(given(1), budget_ms=0)
        next(steps)
        worker.schedule(given(2))
        with pytest.raises(InputError, match="another run began"):
            next(steps)
        np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(2), 1e-4, 1e-5)


@pytest.mark.parametrize("budget_ms", [-1, "4", math.nan])
def test_wrong_budgets(budget_ms: Any) -> None:
    with pf.Worker(MODEL) as worker, pytest.raises(InputError, match="budget_ms"):
        worker.schedule_iterable(given(1), budget_ms=budget_ms)


def test_models_with_loops_and_data_dependent_shapes(backend: str, backend_context: Any) -> None:
    model = graph(
        [node("NonZero", "x", "a"), node("Cast", "a", "b", to=onnx.TensorProto.FLOAT), node("Relu", "b", "y")],
        {"x": [3, 4]},
    )
    x = np.eye(3, 4, dtype=np.float32)
    with pf.Worker(model, backend, backend_context) as worker:
        assert list(worker.schedule_iterable(x, budget_ms=0))
        np.testing.assert_array_equal(worker.peek_output().download_to_array(), np.array(np.nonzero(x)))


# --- what a step is expected to take ---


def test_costs_choose_what_fits() -> None:
    costs = StepCosts()
    assert costs.end_of(0, 4, 1.0) == 1  # nothing is known
    costs.learn(0, 4, 4.0)
    assert costs.seconds == [1.0] * 4
    assert costs.end_of(0, 4, 2.5) == 2 and costs.end_of(1, 4, 0.1) == 2 and costs.end_of(0, 4, 9) == 4
    assert costs.rows_of(0, 0, 10, 4, 1.5) is None and costs.rows_of(0, 0, 10, 4, 0.35) == 3
    assert costs.rows_of(0, 8, 10, 4, 0.35) == 2 and costs.rows_of(0, 0, 1, 4, 0.1) is None
    assert costs.rows_of(0, 5, 10, 4, 0.01) == 1


def test_costs_follow_what_is_measured() -> None:
    costs = StepCosts()
    costs.end_of(0, 2, 1)
    costs.learn_rows(0, 0, 1, 10, 0.1)
    assert costs.seconds[0] == pytest.approx(1.0)
    for row in range(1, 10):
        costs.learn_rows(0, row, 1, 10, 0.2)
    assert 1.5 < costs.seconds[0] < 2.0
    costs.learn(1, 2, 3.0)
    before = costs.seconds[0] + costs.seconds[1]
    costs.learn(0, 2, 2 * before)
    assert before < sum(costs.seconds) < 2 * before


def test_an_allowance_is_spent_and_refilled() -> None:
    allowance = Allowance(0.004)
    allowance.spend(0.001, "a")
    assert not allowance.is_spent and allowance.left == pytest.approx(0.003)
    allowance.spend(0.003, "b")
    taken = allowance.refill()
    assert taken == pytest.approx(4) and (taken.longest, taken.longest_ms) == ("b", pytest.approx(3))
    assert allowance.spent == 0
