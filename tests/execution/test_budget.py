"""Runs that advance within milliseconds: what they compute, and what they may divide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.program.timers import TimedWork
from perframe.errors import InputError
from perframe.plan.budget import Budget, Position, Spent, StepCosts, Submission
from perframe.plan.segments import FRAMES_AHEAD
from small import load
from support import unavailable

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


def test_without_milliseconds_each_frame_has_one_submission(backend: str, backend_context: Any) -> None:
    with pf.Worker(MODEL, backend, backend_context) as worker:
        layers = len(list(worker.schedule_iterable(given(1))))
        assert len(slices(worker, 1, 0)) >= layers
        assert len(slices(worker, 1, 10_000)) == 1  # all is known now, and fits


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_some_rows_of_a_layer_run(
    rows: int, backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the submissions are, the numbers stay."""
    ran = []

    chosen = StepCosts.next

    def some(costs: StepCosts, at: Position, all_rows: int, count: int, budget: Budget) -> Submission:
        chosen(costs, at, all_rows, count, budget)
        step, row = at
        ran.append((row, all_rows))
        return step + 1 if all_rows == 1 else (row, min(rows, all_rows - row))

    monkeypatch.setattr(StepCosts, "next", some)
    with pf.Worker(MODEL, backend, backend_context) as worker:
        for batch in (2, 1):
            slices(worker, batch, 0)
            np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(batch), 1e-4, 1e-5)
        worker.schedule(given(2))
        np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(2), 1e-4, 1e-5)
    assert any(row for row, _ in ran) or rows > (1 if backend == "cpu" else 2)


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("gl_backend", ["gpu_compute", "gpu_pixel"])
def test_nothing_waits_for_a_gpu(gl_backend: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first run the GPU's clock tells what layers take, when it is done."""
    if gl_backend == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    with pf.Worker(MODEL, gl_backend, gl_context) as worker:
        slices(worker, 1, 1000)
        device = device_for(gl_context)
        monkeypatch.setattr(device, "is_software", False)
        segment = next(worker.parts.planned_parts()).latest_plan.segments[0]
        finished: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(device.gl, "glFinish", lambda: finished.append(1))
            for _ in range(20):
                found = slices(worker, 1, 0.2)
                assert all(one.longest for one in found if one)
        assert not finished
        np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(1), 1e-4, 1e-5)
        assert len({one.frame for one in segment._begun}) <= FRAMES_AHEAD
        costs = segment.costs.seconds
        segment.costs.seconds = [1e-9] * len(costs)
        slices(worker, 1, 1000)
        gl_context.finish()
        slices(worker, 1, 1000)  # it learns from the run before
        assert sum(segment.costs.seconds) > 1e-6


def test_a_gpu_that_is_behind_gets_no_more(gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pf.Worker(MODEL, "gpu_pixel", gl_context) as worker:
        slices(worker, 1, 1000)
        monkeypatch.setattr(device_for(gl_context), "is_software", False)
        with monkeypatch.context() as patch:
            patch.setattr(TimedWork, "seconds", None)
            steps = worker.schedule_iterable(given(1), budget_ms=0)
            taken = [next(steps) for _ in range(FRAMES_AHEAD + 4)]
        assert all(taken[1:FRAMES_AHEAD]) and not any(taken[FRAMES_AHEAD + 1 :])
        assert list(steps)
        np.testing.assert_allclose(worker.peek_output().download_to_array(), wanted(1), 1e-4, 1e-5)


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
                frames = list(worker.schedule_iterable(x, budget_ms=0.01))
                np.testing.assert_array_equal(worker.peek_output().download_to_array(), whole)
        assert len(frames) > 8


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


def test_the_longest_submission_has_a_name(backend: str, backend_context: Any) -> None:
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


def left_of(seconds: float, spent: float = 0.0) -> Budget:
    return Budget(seconds, spent)


def known(*seconds: float) -> StepCosts:
    costs = StepCosts()
    costs.seconds = list(seconds)
    return costs


def test_a_frame_takes_the_whole_steps_that_fit() -> None:
    costs = known(1.0, 1.0, 1.0, 1.0)
    assert costs.next((0, 0), 10, 4, left_of(2.5)) == 2
    assert costs.next((0, 0), 10, 4, left_of(9.0)) == 4
    assert costs.next((1, 0), 10, 4, left_of(3.0, 1.5)) == 2


def test_a_step_that_does_not_fit_is_divided() -> None:
    costs = known(1.0)
    assert costs.next((0, 0), 10, 1, left_of(0.35)) == (0, 3)
    assert costs.next((0, 8), 10, 1, left_of(0.35)) == (8, 2)
    assert costs.next((0, 0), 10, 1, left_of(math.inf)) == 1
    assert costs.next((0, 5), 10, 1, left_of(math.inf)) == (5, 5)


def test_the_first_submission_of_a_frame_runs_in_any_case() -> None:
    costs = known(1.0)
    assert costs.next((0, 0), 1, 1, left_of(0.1)) == 1
    assert costs.next((0, 5), 10, 1, left_of(0.01)) == (5, 1)


def test_a_frame_ends_before_a_submission_that_does_not_fit() -> None:
    costs = known(1.0)
    assert costs.next((0, 0), 1, 1, left_of(1.1, 0.2)) is None
    assert costs.next((0, 0), 1000, 1, left_of(1.0, 0.9)) is None  # too little is left to be worth a wait
    assert costs.next((0, 999), 1000, 1, left_of(1.0, 0.9)) == (999, 1)


def test_a_step_that_never_ran_is_tried_while_half_of_the_frame_is_left() -> None:
    assert StepCosts().next((0, 0), 64, 4, left_of(1.0, 0.4)) == (0, 2)
    assert StepCosts().next((0, 0), 1, 4, left_of(1.0, 0.4)) == 1
    assert StepCosts().next((0, 0), 64, 4, left_of(1.0, 0.6)) is None


def test_less_fits_where_expectations_are_often_wrong() -> None:
    costs = known(1.0, 1.0, 1.0, 1.0)
    for _ in range(20):
        costs.learn_steps(0, 1, costs.seconds[0] * 1.5)
        costs.learn_steps(0, 1, costs.seconds[0] / 1.5)
    steps = costs.next((1, 0), 10, 4, left_of(3.0))
    assert 0.3 < costs.error < 0.5
    assert steps == 2


def test_costs_follow_what_is_measured() -> None:
    costs = known(math.inf, math.inf)
    costs.learn_rows(0, 1, 10, 0.1)
    assert costs.seconds[0] == pytest.approx(1.0)
    for _ in range(1, 10):
        costs.learn_rows(0, 1, 10, 0.2)
    assert 1.5 < costs.seconds[0] < 2.0
    costs.learn_steps(1, 2, 3.0)
    before = costs.seconds[0] + costs.seconds[1]
    costs.learn_steps(0, 2, 2 * before)
    assert before < sum(costs.seconds) < 2 * before


def test_a_budget_is_spent_and_refilled() -> None:
    budget = Budget(0.004)
    budget.spend(0.001, "a")
    assert not budget.is_spent and budget.left == pytest.approx(0.003)
    budget.spend(0.003, "b")
    taken = budget.refill()
    assert taken == pytest.approx(4) and (taken.longest, taken.longest_ms) == ("b", pytest.approx(3))
    assert budget.spent == 0
