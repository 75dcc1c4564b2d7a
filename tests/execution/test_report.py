"""A worker's report: the steps that its last run ran, with sizes and costs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import perframe as pf
from small import Gate, load, node


def test_sizes_and_operations(backend: str, backend_context: Any) -> None:
    w, k = np.ones((6, 5), np.float32), np.ones((4, 2, 3, 3), np.float32)
    nodes = [node("MatMul", "x w", "a"), node("Conv", "p k", "b", pads=[1, 1, 1, 1])]
    model = load(nodes, {"x": ["n", 6], "p": [1, 2, 7, 9]}, "a b", {"w": w, "k": k}, optimize=False)
    with pf.Worker(model, backend, backend_context) as worker:
        assert worker.report() == []
        for rows in (3, 2):
            worker.schedule(np.ones((rows, 6), np.float32), np.ones((1, 2, 7, 9), np.float32))
            steps = {step.layer: step for step in worker.report()}
            product, convolution = steps["a"], steps["b"]
            assert (product.operator, product.backend, product.seconds) == ("MatMul", backend, None)
            assert product.inputs == ((rows, 6), (6, 5)) and product.outputs == ((rows, 5),)
            assert product.bytes == 4 * (rows * 6 + 30 + rows * 5)
            assert product.operations == 2 * rows * 6 * 5
            assert convolution.operations == 2 * 4 * 7 * 9 * 2 * 9


def test_a_transposed_convolution_counts_the_elements_of_its_input() -> None:
    w = np.ones((2, 3, 2, 2), np.float32)
    model = load([node("ConvTranspose", "x w", "y", strides=[2, 2])], {"x": [1, 2, 5, 5]}, constants={"w": w})
    with pf.Worker(model) as worker:
        worker.schedule(np.ones((1, 2, 5, 5), np.float32))
        assert {step.operations for step in worker.report() if step.operator == "ConvTranspose"} == {2 * 25 * 2 * 3 * 4}


def test_steps_on_the_cpu_are_timed() -> None:
    with pf.Worker(load([node("Exp", "x", "a"), node("Softmax", "a", "y")], {"x": [64, 64]})) as worker:
        worker.schedule(np.ones((64, 64), np.float32))
        steps = worker.report(repeats=3)
        assert steps and all(step.seconds is not None and 0 < step.seconds < 10 for step in steps)
        np.testing.assert_allclose(worker.schedule(np.ones((64, 64), np.float32)).peek_output(), 1 / 64, 1e-5)
    with pytest.raises(pf.ClosedError):
        worker.report()


def test_the_cpu_times_the_steps_of_frames() -> None:
    """Compiled steps, and steps in NumPy between them, whole runs and divided runs."""
    nodes = [node("Exp", "x", "a"), node("Unique", "z", "u"), node("MatMul", "a a", "y")]
    x, z = np.ones((96, 96), np.float32), np.ones(3, np.float32)
    with pf.Worker(load(nodes, {"x": [96, 96], "z": [3]}, "y u"), "cpu") as worker:
        assert {step.seconds for step in worker.schedule(x, z).report()} == {None}
        worker.time_steps()
        for _ in range(3):
            worker.schedule(x, z)
            for _ in worker.schedule_iterable(x, z):
                pass
        seconds = {step.layer: step.seconds for step in worker.schedule(x, z).report()}
        assert all(taken is not None and 0 < taken < 10 for taken in seconds.values())
        worker.time_steps(False)
        assert {step.seconds for step in worker.schedule(x, z).report()} == {None}
        np.testing.assert_allclose(worker.peek_output("y"), 96 * np.exp(2), 1e-5)


@pytest.mark.parametrize("gpu", ["gpu_compute", "gpu_pixel"])
def test_a_gpu_times_its_steps(gpu: str, gl_context: Any) -> None:
    """A large product takes longer than the exponential of one number beside it."""
    nodes = [node("MatMul", "x w", "a"), node("Exp", "z", "b")]
    model = load(nodes, {"x": [448, 448], "z": [1]}, "a b", {"w": np.ones((448, 448), np.float32)})
    x, z = np.ones((448, 448), np.float32), np.ones(1, np.float32)
    with pf.Worker(model, gpu, gl_context) as worker:
        assert {step.seconds for step in worker.schedule(x, z).report()} == {None}
        for steps in (worker.report(repeats=3), _timed_in_frames(worker, x, z)):
            seconds = {step.layer: step.seconds for step in steps}
            assert seconds["a"] is not None and seconds["b"] is not None
            assert 0 < seconds["b"] < seconds["a"] < 10
        np.testing.assert_allclose(worker.schedule(x, z).peek_output("a").download_to_array(), 448, 1e-5)
        worker.time_steps(False)
        assert {step.seconds for step in worker.schedule(x, z).report()} == {None}
    with pytest.raises(pf.ClosedError):
        worker.time_steps()


def _timed_in_frames(worker: pf.Worker, *inputs: Any) -> Any:
    """The report after some frames, whole and divided, none of which waited for its times."""
    worker.time_steps()
    for _ in range(3):
        worker.schedule(*inputs).peek_output("b").download_to_array()
        for _ in worker.schedule_iterable(*inputs):
            pass
    return worker.schedule(*inputs).report()


@pytest.mark.parametrize("repeats", [-1, 1.5, "3", None])
def test_wrong_repeats(repeats: Any) -> None:
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]})) as worker:
        worker.schedule(np.ones(3, np.float32))
        with pytest.raises(pf.InputError, match="an integer of at least 0"):
            worker.report(repeats)


def test_a_readback_before_the_report_keeps_its_values() -> None:
    """The report waits for jobs that read the outputs."""
    gate = Gate()
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]})) as worker:
        y = worker.schedule(np.ones(3, np.float32)).peek_output()
        pf.jobs.schedule(gate.wait, depends_on=[y])
        reporter = threading.Thread(target=worker.report, args=(2,))
        reporter.start()
        reporter.join(0.2)
        assert reporter.is_alive()
        gate.open()
        reporter.join(20)
        assert not reporter.is_alive()


def test_bodies_have_steps(backend: str, backend_context: Any) -> None:
    from onnx import parser

    text = """<ir_version: 10, opset_import: ["": 21]>
    g (bool c, float[3] x) => (float[3] y) {
      y = If (c) <
        then_branch = t () => (float[3] a) { a = Exp (x) },
        else_branch = e () => (float[3] b) { b = Neg (x) }
      >
    }"""
    with pf.Worker(pf.load(parser.parse_model(text)), backend, backend_context) as worker:
        worker.schedule({"c": np.array(True), "x": np.ones(3, np.float32)})
        assert [step.operator for step in worker.report() if step.operator] == ["Exp"]


def test_a_shape_that_depends_on_an_input_is_not_known() -> None:
    nodes = [node("Slice", "x zero n one", "a"), node("Concat", "a x", "b", axis=0), node("Neg", "b", "y")]
    constants = {"zero": np.array([0]), "one": np.array([1])}
    model = load(nodes, {"x": [2, 4], "n": [1]}, constants=constants, dtypes={"n": "int64"})
    with pf.Worker(model) as worker:
        worker.schedule({"x": np.ones((2, 4), np.float32), "n": np.array([4])})
        steps = {step.operator: step for step in worker.report()}
        assert steps["Concat"].inputs == (None, (2, 4)) and steps["Concat"].outputs == ((4, 4),)


def test_a_table_without_times_says_how_to_measure_them() -> None:
    with pf.Worker("digits") as worker:
        worker.schedule(np.zeros((1, 1, 28, 28), np.float32))
        assert repr(worker.report()).endswith("\nreport(repeats=5) measures the times")
        assert "repeats" not in repr(worker.report(repeats=2))
