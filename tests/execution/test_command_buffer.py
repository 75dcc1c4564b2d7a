"""A command buffer replays conversions and schedules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf


def brighten() -> pf.Model:
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["y"])],
        "brighten",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 4, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3, 4, 6))],
        [helper.make_tensor("two", TensorProto.FLOAT, (), [2.0])],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize("backend_name", ["gpu_compute", "gpu_pixel"])
def test_a_recorded_frame_is_replayed_on_new_pixels(gl_context: Any, backend_name: str) -> None:
    if backend_name == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    source, target = gl_context.texture((6, 4), 4), gl_context.texture((6, 4), 4)
    with pf.Worker(brighten(), backend_name, gl_context) as worker, pf.CommandBuffer(gl_context) as commands:
        x = worker.empty_input()
        y = worker.schedule(x).peek_output()
        commands.to_tensor(source, x).schedule_worker(worker, x).to_texture(y, target)
        assert len(commands) == 3
        for value in (10, 60, 100):
            source.write(np.full((4, 6, 4), value, np.uint8).tobytes())
            commands.execute()
            pixels = np.frombuffer(target.read(), np.uint8).reshape(4, 6, 4)
            assert (pixels[..., :3] == 2 * value).all() and (pixels[..., 3] == 255).all()
    with pytest.raises(pf.ClosedError):
        commands.execute()


def chain(layers: int = 5) -> pf.Model:
    graph = pf.FunctionalGraph()
    x = value = graph.add_input(pf.DataType.FLOAT32, (2, 16))
    for _ in range(layers):
        value = pf.functional.softmax(value + x, 1)
    return graph.compile(y=value)


X = np.random.default_rng(1).random((2, 16), np.float32)


def executes(commands: pf.CommandBuffer) -> int:
    """Execute until all is done, and return the number of calls."""
    count = 1
    while not commands.execute():
        count += 1
    return count


@pytest.mark.backend
def test_a_run_in_steps(backend: str, backend_context: Any) -> None:
    """Later commands wait for the end of the run, and earlier ones do not run again meanwhile."""
    model, ctx = chain(), backend_context
    expected = [pf.run(model, x)["y"] for x in (X, X + 1)]
    with pf.Worker(model, backend, ctx) as worker, pf.CommandBuffer(ctx) as commands:
        x, y = worker.empty_input(), pf.Tensor(np.zeros((2, 16), np.float32)).to(backend, ctx)
        steps = sum(1 for _ in worker.schedule_iterable(X))
        assert commands.schedule_worker_iterable(worker, x).copy_output(worker, "y", y) is commands
        for array, wanted in zip((X, X + 1), expected, strict=True):
            x.upload(array)
            assert not commands.execute()
            assert not np.array_equal(y.numpy(), wanted)
            assert 1 + executes(commands) == steps + 1
            np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5)


@pytest.mark.backend
def test_a_run_in_milliseconds(backend: str, backend_context: Any) -> None:
    model = chain()
    with pf.Worker(model, backend, backend_context) as worker, pf.CommandBuffer(backend_context) as commands:
        worker.warmup(X)
        copy = worker.schedule(X + 2).copy_output("y")
        commands.schedule_worker_iterable(worker, X, budget_ms=1000).copy_output(worker, 0, copy)
        for _ in range(3):
            executes(commands)
        assert executes(commands) == 1  # all layers fit
        np.testing.assert_allclose(copy.numpy(), pf.run(model, X)["y"], rtol=1e-5)
        with pytest.raises(pf.InputError, match="budget"):
            commands.schedule_worker_iterable(worker, X, budget_ms=-1)


def test_after_an_error_and_a_clear_it_begins_again() -> None:
    with pf.Worker(chain()) as worker, pf.CommandBuffer() as commands:
        commands.schedule_worker_iterable(worker, X)
        whole = executes(commands)
        assert whole > 2 and not commands.execute()
        worker.schedule(X + 1)  # ends the run of the command buffer
        with pytest.raises(pf.InputError, match="another run began"):
            commands.execute()
        assert executes(commands) == whole
        assert not commands.execute()
        commands.clear()
        assert commands.execute()
        assert executes(commands.schedule_worker_iterable(worker, X)) == whole
        for record in (commands.schedule_worker, commands.schedule_worker_iterable):
            with pytest.raises(pf.InputError, match=r"takes a .*Worker, not Model"):
                record(worker.model, X)


@pytest.mark.backend
def test_copy_output_makes_a_tensor(backend: str, backend_context: Any) -> None:
    with pf.Worker(chain(), backend, backend_context) as worker:
        first = worker.schedule(X).copy_output("y")
        assert first.backend_type == backend and first is not worker.peek_output("y")
        before = first.numpy()
        assert worker.schedule(X + 1).copy_output(0, first) is first
        assert not np.array_equal(first.numpy(), before)
    np.testing.assert_allclose(first.numpy(), pf.run(chain(), X + 1)["y"], rtol=1e-5)  # it outlives the worker
