"""`worker.warmup`: what the first run would do, ahead of it and in slices."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType

CHAIN = 12


def chain() -> Model:
    """Layers that no pass joins."""
    layers = [
        Layer("Softmax" if k % 2 else "CumSum", f"layer {k}", [f"v{k}", "axis"][: 2 - k % 2], [f"v{k + 1}"])
        for k in range(CHAIN)
    ]
    inputs = [Value("v0", DataType.FLOAT32, DynamicTensorShape(("n", 6)))]
    outputs = [Value(f"v{CHAIN}", DataType.FLOAT32, DynamicTensorShape(("n", 6)))]
    return Model(inputs, outputs, layers, {"axis": np.array(1)})


def given(rows: int) -> Any:
    return np.random.default_rng(rows).normal(size=(rows, 6)).astype(np.float32)


def test_it_goes_on_where_it_stopped(backend: str, backend_context: Any) -> None:
    with pf.Worker(chain(), backend, backend_context) as worker:
        calls = 1
        while not worker.warmup(given(3), budget_ms=0):
            calls += 1
            assert calls < 1000
        planned = CHAIN if backend != "cpu" else 0  # the CPU makes a plan at once
        assert calls >= CHAIN + planned
        assert [part.latest_plan is not None for part in worker.parts.planned_parts()] == [True]
        made = next(worker.parts.planned_parts()).latest_plan
        worker.schedule(given(3))
        assert next(worker.parts.planned_parts()).latest_plan is made


def test_all_at_once(backend: str, backend_context: Any) -> None:
    with pf.Worker(chain(), backend, backend_context) as worker:
        assert worker.warmup(given(3))
        assert worker.warmup(given(3))
        want = pf.run(chain(), {"v0": given(3)})[f"v{CHAIN}"]
        np.testing.assert_allclose(worker.schedule(given(3)).peek_output().download_to_array(), want, 1e-5)


@pytest.mark.slow
def test_other_runs_come_in_between(backend: str, backend_context: Any) -> None:
    small, large = given(2), given(5)
    want = pf.run(chain(), {"v0": small})[f"v{CHAIN}"]
    with pf.Worker(chain(), backend, backend_context) as worker:
        frame, done = 0, 0
        while done < 3 and frame < 10_000:  # a busy machine gets little done in a budget
            worker.schedule(small)
            np.testing.assert_allclose(worker.peek_output().download_to_array(), want, 1e-5)
            done += worker.warmup(large, budget_ms=5 if frame > 20 else 0)
            frame += 1
        assert done == 3


def test_another_shape_begins_another_warm_up(backend: str, backend_context: Any) -> None:
    with pf.Worker(chain(), backend, backend_context) as worker:
        worker.warmup(given(2), budget_ms=0)
        worker.warmup(given(3), budget_ms=0)
        assert worker.warmup(given(2))
        worker.schedule(given(4))


def test_wrong_inputs_and_ends(backend: str, backend_context: Any) -> None:
    worker = pf.Worker(chain(), backend, backend_context)
    with pytest.raises(InputError, match="v0"):
        worker.warmup(np.zeros((2, 7), np.float32))
    for budget_ms in (-1, "4", float("nan")):
        with pytest.raises(InputError, match="budget_ms"):
            worker.warmup(given(2), budget_ms=budget_ms)
    worker.warmup(given(2), budget_ms=0)
    worker.release()
    with pytest.raises(pf.errors.ClosedError):
        worker.warmup(given(2), budget_ms=0)


def test_an_error_comes_again(backend: str, backend_context: Any) -> None:
    layers = [Layer("Relu", "doubles", ["x"], ["y"])]
    values = [Value(name, DataType.FLOAT64, DynamicTensorShape((2, 3))) for name in "xy"]
    with pf.Worker(Model(values[:1], values[1:], layers, {}), backend, backend_context, strict=True) as worker:
        for _ in range(2):
            if backend == "cpu":
                assert worker.warmup(np.zeros((2, 3), np.float64))
            else:
                with pytest.raises(pf.errors.FallbackError, match="doubles"):
                    worker.warmup(np.zeros((2, 3), np.float64))


def test_threads_take_turns() -> None:
    failed: list[Exception] = []

    def warm() -> None:
        try:
            for rows in range(2, 40):
                worker.warmup(given(rows % 3 + 1), budget_ms=0)
        except Exception as error:
            failed.append(error)

    with pf.Worker(chain()) as worker:
        threads = [threading.Thread(target=warm) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


def test_a_plan_that_a_run_has_made_meanwhile_is_kept(backend: str, backend_context: Any) -> None:
    with pf.Worker(chain(), backend, backend_context) as worker:
        worker.warmup(given(3), budget_ms=0)
        worker.schedule(given(3))
        (part,) = worker.parts.planned_parts()
        made = part.latest_plan
        assert worker.warmup(given(3)) and part.latest_plan is made
