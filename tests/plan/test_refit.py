"""Jobs trace templates beside the frames, for all workers of a model. PERFRAME_FOLLOW=0 turns that off."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu import backend as cpu
from perframe.plan.plan import Plan
from perframe.testing.checks import trace
from plan.test_new_shapes import compiled, counted, expected, forget, network
from small import load, node

__all__ = ["compiled", "counted"]  # fixtures


def test_a_shape_that_is_given_out_follows_no_other_size() -> None:
    model = load([node("Relu", "x", "y"), node("Shape", "x", "s")], {"x": ["n", 4]}, "y s", optimize=False)
    with pf.Worker(model) as worker:
        for rows in (5, 5, 7, 5):
            worker.schedule(np.full((rows, 4), rows, np.float32))
            np.testing.assert_array_equal(worker.peek_output("s").download_to_array(), [rows, 4])
            np.testing.assert_array_equal(worker.peek_output("y").download_to_array(), np.full((rows, 4), rows))
            for part in trace(worker):
                part._plans.clear()


def test_workers_of_one_model_share_templates(counted: dict[str, int]) -> None:
    model, constants = network()
    with pf.Worker(model) as first:
        first.schedule(np.zeros((4, 8), np.float32)).peek_output().download_to_array()
        trace(first)
        with pf.Worker(model) as second:
            first.release()
            counted.clear()
            x = np.random.default_rng(6).standard_normal((6, 8)).astype(np.float32)
            made = second.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(x, constants), 1e-4, 1e-5)
            assert not counted


def test_a_job_traces_sizes_once_a_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plan, "is_costly", True)
    model, _ = network(seed=8)
    with pf.Worker(model) as worker:
        (part,) = worker.parts.planned_parts()
        assert part._templates is not None
        deadline = time.monotonic() + 60
        while not part._templates._known and time.monotonic() < deadline:
            worker.schedule(np.zeros((4, 8), np.float32)).peek_output().download_to_array()
            time.sleep(0.01)
        assert part._templates._known


def test_a_layer_that_cannot_be_followed_is_named(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    lower = cpu._lower

    def careless(layer: Any, inputs: Any, *others: Any) -> Any:
        if layer.op == "Softmax":
            inputs[0].shape[0].bit_length()  # which an int has, and a followed size has not
        return lower(layer, inputs, *others)

    monkeypatch.setattr(cpu, "_lower", careless)
    model = load([node("Softmax", "x", "y")], {"x": ["n", 4]})
    with pf.Worker(model) as worker:
        worker.schedule(np.zeros((4, 4), np.float32)).peek_output().download_to_array()
        (part,) = worker.parts.planned_parts()
        with pytest.raises(AttributeError):
            trace(worker)
        assert part._tracing.layer == "y"
        assert part._templates is not None and not part._templates.is_open
        part._templates.can_follow = True
        part._trace_in_job(((5, 4),))
        assert "layer 'y' cannot be followed" in caplog.text
        for rows in (5, 6):
            worker.schedule(np.zeros((rows, 4), np.float32))
            np.testing.assert_array_equal(worker.peek_output().download_to_array(), 0.25)


def test_sizes_that_were_only_expected_may_exceed_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size that was given is followed nevertheless, and nobody hears of the others."""
    nodes = [node("Exp", "x", "a"), node("MatMul", "a a", "b"), node("Exp", "b", "y")]
    model = load(nodes, {"x": ["n", "m", "m"]}, optimize=False)
    with pf.Worker(model) as worker:
        worker.schedule(np.zeros((1, 40, 40), np.float32)).peek_output().download_to_array()
        monkeypatch.setattr("perframe.backends.cpu.program.arena.machine_bytes", lambda: 4 * 5 * 40 * 40)
        (part,) = trace(worker)
        assert part._templates is not None and part._templates.is_open and part._templates._known


def test_following_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, counted: dict[str, int]) -> None:
    monkeypatch.setenv("PERFRAME_FOLLOW", "0")
    model, constants = network()
    with pf.Worker(model) as worker:
        for rows in (3, 5):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            forget(counted, worker)
            made = worker.schedule(x).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(x, constants), 1e-4, 1e-5)
            assert counted
    monkeypatch.setenv("PERFRAME_FOLLOW", "perhaps")
    with pytest.raises(pf.InputError, match="PERFRAME_FOLLOW is 0 or 1"):
        pf.Worker(model)


def test_no_plan_waits_for_the_runs_of_others() -> None:
    """The ninth set of shapes ends the plan of the first, whose run is still waiting for its input here."""
    gate = threading.Event()
    model = load([node("Softmax", "x", "y")], {"x": ["n", 4]})
    with pf.Worker(model) as worker:
        late = pf.Tensor(np.zeros((2, 4), np.float32))
        pf.jobs.schedule(lambda: gate.wait(60), writes=[late])
        readback = worker.schedule(late).peek_output().readback_request()
        for rows in range(3, 30):
            worker.schedule(np.zeros((rows, 4), np.float32))
        assert not readback.done
        (part,) = worker.parts.planned_parts()
        assert len(part._plans) == 8 and len(part._plans.evicted) == 20
        gate.set()
        np.testing.assert_array_equal(readback.result(wait=True), 0.25)
        worker.peek_output().download_to_array()
        worker.schedule(np.zeros((30, 4), np.float32))
        assert len(part._plans.evicted) <= 1
