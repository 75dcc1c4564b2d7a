"""Runs own the memory that they touch: workers that are dropped, outputs that are released, threads that take turns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe.tensor.sharing import begin_job
from perframe.testing.checks import trace
from small import Gate, load, node, row

LAYERS = 6


@pytest.fixture(params=["fixed", "planned", "followed"])
def chain(request: pytest.FixtureRequest) -> pf.Worker:
    """A worker whose runs take a while, with a plan of each kind for 4,000 rows."""
    w = np.full((64, 64), 1 / 64, np.float32)
    nodes = [node("MatMul", f"{f't{i - 1}' if i else 'x'} w", f"t{i}") for i in range(LAYERS)]
    dims = [4000 if request.param == "fixed" else "n", 64]
    worker = pf.Worker(load(nodes, {"x": dims}, f"t{LAYERS - 1}", {"w": w}, optimize=False))
    if request.param == "followed":
        worker.schedule(np.ones((100, 64), np.float32)).peek_output().download_to_array()
        trace(worker)
    return worker


def test_a_run_outlives_its_worker(chain: pf.Worker) -> None:
    gate, x = Gate(), pf.Tensor(np.ones((4000, 64), np.float32))
    x.data_on_backend.write = gate  # type: ignore[attr-defined]
    request = chain.schedule(x).peek_output().readback_request()
    del chain, x
    collect_garbage()
    rubbish = [np.full(1 << 20, 7, np.uint8) for _ in range(40)]  # where freed memory was
    gate.open()
    np.testing.assert_allclose(request.result(wait=True), 1, 1e-5)
    del rubbish


def test_a_tensor_that_is_released_during_a_run_is_read_to_the_end(chain: pf.Worker) -> None:
    gate, x = Gate(), pf.Tensor(np.ones((4000, 64), np.float32))
    x.data_on_backend.write = gate  # type: ignore[attr-defined]
    request = chain.schedule(x).peek_output().readback_request()
    x.release()
    gate.open()
    np.testing.assert_allclose(request.result(wait=True), 1, 1e-5)
    with pytest.raises(pf.ClosedError, match=r"\(4000, 64\) was released"):
        chain.schedule(x)
    chain.release()


def test_what_a_released_worker_made_is_closed(backend: str, backend_context: Any) -> None:
    x = np.ones(1000, np.float32)
    with pf.Worker(load([node("Neg", "x", "y")], {"x": [1000]}), backend, backend_context) as first:
        y = first.schedule(x).peek_output()
        pending = y.readback_request()
        np.testing.assert_array_equal(y.download_to_array(), -1)
    with pf.Worker(load([node("Abs", "x", "y")], {"x": [1000]}), backend, backend_context) as second:
        second.schedule(x)
        for use in (
            y.download_to_array,
            y.readback_request,
            y.readback_and_clone,
            lambda: y.upload(x),
            lambda: y.reshape((10, 100)),
            lambda: second.schedule(y),
        ):
            with pytest.raises(pf.ClosedError, match=r"tensor 'y' \(1000\) was released"):
                use()
        np.testing.assert_array_equal(second.schedule(x).peek_output().download_to_array(), 1)
    np.testing.assert_array_equal(pending.result(wait=True), -1)


def test_an_error_stays_with_its_run() -> None:
    """Two layers find a wrong index. The second one's error must not appear after the next run."""
    nodes = [node("Gather", "t i", "a"), node("Gather", "u i", "b"), node("Add", "a b", "y")]
    model = load(nodes, {"i": [2], "t": [5], "u": [5]}, dtypes={"i": "int64"}, optimize=False)
    data = {"t": np.arange(5, dtype=np.float32), "u": np.arange(5, dtype=np.float32)}
    with pf.Worker(model) as worker:
        for indices in ([9, 9], [1, 2], [-9, 0], [3, 4]):
            request = worker.schedule({"i": np.array(indices), **data}).peek_output().readback_request()
            if abs(indices[0]) == 9:
                with pytest.raises(pf.BackendError, match=r"layer 'a' \(Gather\)"):
                    request.result(wait=True)
            else:
                np.testing.assert_array_equal(request.result(wait=True), 2 * row(*indices))


@pytest.mark.parametrize("size", [4, 96, 256])
def test_threads_take_turns_with_a_worker(size: int) -> None:
    """Each readback has the result of one run, by any of the threads."""
    random = np.random.default_rng(size)
    w = (random.standard_normal((size, size)) / size**0.5).astype(np.float32)
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("MatMul", "b w", "y")]
    given = [random.standard_normal((size, size)).astype(np.float32) for _ in range(3)]
    wanted = [np.maximum(x @ w, 0) @ w for x in given]
    found: list[Any] = []
    with pf.Worker(load(nodes, {"x": [size, size]}, constants={"w": w})) as worker:

        def use(x: Any) -> None:
            try:
                for _ in range(100):
                    found.append(worker.schedule(x).peek_output().download_to_array())
            except Exception as error:
                found.append(error)

        threads = [threading.Thread(target=use, args=(x,), daemon=True) for x in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "it hangs"
    assert len(found) == 300
    for value in found:
        assert any(np.allclose(value, one, atol=1e-3) for one in wanted), value


def test_no_reader_comes_between_the_begin_of_a_job_and_the_look_at_readers() -> None:
    """A readback that another thread requests meanwhile has all of the job's result."""
    tensor, gate, found = pf.Tensor(row(1, 2, 3)), Gate(), list[Any]()
    reader = threading.Thread(target=lambda: found.append(tensor.readback_request()))

    def begin(needed: list[Any], after: list[Any]) -> Gate:
        reader.start()
        reader.join(0.2)
        return gate

    storage: Any = tensor.data_on_backend
    begin_job(begin, [], [storage])
    reader.join(20)
    assert not found[0].done
    storage.memory.fill(0)
    gate.open()
    np.testing.assert_array_equal(found[0].result(wait=True), [0, 0, 0])


def test_a_run_in_the_submitting_thread_waits_for_copies_of_its_input() -> None:
    x = pf.Tensor(row(1, 2, 3))
    with pf.Worker(load([node("Relu", "x", "y")], {"x": [3]})) as worker:
        for _ in range(3):  # the first run is a job, those after it run where they are submitted
            worker.schedule(x).peek_output().download_to_array()
        runner = threading.Thread(target=worker.schedule, args=(x,))
        with x.data_on_backend.lock:  # type: ignore[attr-defined]
            runner.start()
            runner.join(0.2)
            assert runner.is_alive()
        runner.join(20)
        assert not runner.is_alive()


def test_a_worker_takes_models_and_refuses_other_objects() -> None:
    with pytest.raises(pf.MissingFileError, match=r"no model file 'm\.onnx'"):
        pf.Worker("m.onnx")
    with pytest.raises(pf.InputError, match=r"a Worker runs a Model, and got dict: Worker\(pf\.load\(\.\.\.\)\)"):
        pf.Worker({})
    model = load([node("Add", "a b", "y")], {"a": [3], "b": [3]})
    with pytest.raises(pf.InputError, match=r"inputs by name, .* and got ndarray; .* has the inputs a, b"):
        pf.run(model, row(1, 2, 3))
