"""Outputs that runs write into the caller's tensors, and copies of outputs, on all backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe import functional as F

RNG = np.random.default_rng(3)


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape, np.float32)


def model(shape: tuple[Any, ...] = (3, 5)) -> pf.Model:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", shape, "x")
    return graph.compile(double=x * 2, joined=F.concat([x, F.relu(x)], -1), same=x)


def expected(x: Any) -> dict[str, Any]:
    return {"double": x * 2, "joined": np.concatenate([x, np.maximum(x, 0)], -1), "same": x}


@pytest.mark.parametrize("name", ["double", "joined", "same"])
def test_runs_write_into_the_callers_tensor_until_it_is_given_back(backend: str, name: str) -> None:
    with pf.Worker(model(), backend) as worker:
        first = random(3, 5)
        worker.schedule(first)
        own = worker.peek_output(name)
        tensors = [pf.Tensor.empty(expected(first)[name].shape) for _ in range(2)]
        for turn in range(5):
            tensor, x = tensors[turn % 2], random(3, 5)
            worker.bind_output(name, tensor)
            assert worker.schedule(x).peek_output(name).data_on_backend is tensor.data_on_backend
            assert tensor.backend_type == backend
            for other, values in expected(x).items():
                np.testing.assert_allclose(worker.peek_output(other).numpy(), values, rtol=1e-6)
            np.testing.assert_allclose(tensor.numpy(), expected(x)[name], rtol=1e-6)
        kept, last = tensor.numpy(), random(3, 5)
        np.testing.assert_allclose(own.numpy(), expected(first)[name], rtol=1e-6, err_msg="nothing wrote there")
        worker.bind_output(name, None)
        worker.schedule(last)
        np.testing.assert_array_equal(tensor.numpy(), kept)
        np.testing.assert_allclose(worker.peek_output(name).numpy(), expected(last)[name], rtol=1e-6)
    np.testing.assert_array_equal(tensor.numpy(), kept, err_msg="the tensor is the caller's after the worker's end")


def test_one_worker_writes_what_another_reads(backend: str, backend_context: Any) -> None:
    with pf.Worker(model(), backend, backend_context) as one, pf.Worker(model(), backend, backend_context) as two:
        between = two.empty_input("x")
        one.bind_output("double", between)
        for _ in range(3):
            x = random(3, 5)
            one.schedule(x)
            np.testing.assert_allclose(two.schedule(between).peek_output("double").numpy(), x * 4, rtol=1e-6)


def test_another_shape_or_dtype_is_refused_before_the_run(backend: str) -> None:
    with pf.Worker(model(("n", 5)), backend) as worker:
        tensor = pf.Tensor(np.ones((3, 5), np.float32))
        worker.bind_output("double", tensor)
        with pytest.raises(pf.InputError, match=r"'double' of this run is float32 \(4, 5\), and its tensor"):
            worker.schedule(random(4, 5))
        np.testing.assert_array_equal(tensor.numpy(), 1)
        x = random(3, 5)
        worker.schedule(x)
        np.testing.assert_allclose(tensor.numpy(), x * 2, rtol=1e-6)
        worker.bind_output("double", pf.Tensor(np.ones((3, 5), np.int32)))
        with pytest.raises(pf.InputError, match="int32"):
            worker.schedule(x)


def test_wrong_names_and_tensors_are_refused(backend: str) -> None:
    tensor = pf.Tensor.empty((3, 5))
    with pf.Worker(model(), backend) as worker:
        with pytest.raises(pf.InputError, match="no output 'none'; its outputs are double, joined, same"):
            worker.bind_output("none", tensor)
        with pytest.raises(pf.InputError, match="not ndarray"):
            worker.bind_output("double", np.ones((3, 5), np.float32))  # type: ignore[arg-type]
        with pytest.raises(pf.InputError, match="before the first schedule"):
            worker.copy_output("double", tensor)
        worker.bind_output("double", tensor)
        with pytest.raises(pf.InputError, match="cannot be one tensor"):
            worker.bind_output("same", tensor)
        with pytest.raises(pf.InputError, match="is the input 'x'"):
            worker.schedule(tensor)
        worker.schedule(random(3, 5))
        tensor.release()
        with pytest.raises(pf.ClosedError):
            worker.schedule(random(3, 5))
        with pytest.raises(pf.InputError, match="its tensor is int32"):
            worker.copy_output("double", pf.Tensor(np.ones((3, 5), np.int32)))
    for call in (worker.bind_output, worker.copy_output):
        with pytest.raises(pf.ClosedError):
            call("double", tensor)


def test_outputs_are_copied(backend: str) -> None:
    with pf.Worker(model(), backend) as worker:
        x = random(3, 5)
        here, elsewhere = worker.empty_input("x"), pf.Tensor(np.zeros((3, 5), np.float32))
        for tensor in (here, elsewhere, pf.Tensor.empty((3, 5))):
            worker.schedule(x)
            worker.copy_output("double", tensor)
            worker.schedule(random(3, 5))
            np.testing.assert_allclose(tensor.numpy(), x * 2, rtol=1e-6)


def test_an_output_of_a_layer_on_the_host_is_copied(backend: str) -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (6,), "x")
    found = graph.compile(where=F.nonzero(x > 0))
    with pf.Worker(found, backend) as worker:
        given = np.float32([1, -1, 2, -1, -1, 3])
        tensor = pf.Tensor(np.zeros(worker.schedule(given).peek_output().shape, np.int64))
        worker.bind_output("where", tensor)
        assert worker.schedule(given).peek_output().data_on_backend is tensor.data_on_backend
        np.testing.assert_array_equal(tensor.numpy().ravel(), [0, 2, 5])
