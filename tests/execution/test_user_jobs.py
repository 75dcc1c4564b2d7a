"""A user's functions as jobs, in order with workers' runs on the same tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import perframe as pf
from garbage import collect_garbage
from small import Gate, gated, load, node, row


@pytest.fixture
def double() -> pf.Model:
    return load([node("Add", "x x", "y")], {"x": [3]})


@njit(nogil=True)  # type: ignore[untyped-decorator]
def add_one(source: Any, target: Any) -> None:
    for i in range(source.size):
        target[i] = source[i] + 1


@pytest.mark.quick(cases=0)
def test_a_job_between_two_workers(double: pf.Model) -> None:
    gate = Gate()
    with pf.Worker(double) as first, pf.Worker(double) as second:
        between = pf.Tensor(row(0, 0, 0))
        y = first.schedule(gated(row(1, 2, 3), gate)).peek_output()
        job = pf.jobs.schedule(add_one, y, between, depends_on=[y], writes=[between])
        z = second.schedule(between).peek_output()
        first.schedule(pf.Tensor(row(9, 9, 9)))  # overwrites the tensor that the job still has to read
        assert not job.done
        gate.open()
        np.testing.assert_array_equal(z.download_to_array(), [6, 10, 14])
        assert job.done


def test_a_readback_waits_for_the_job_that_writes() -> None:
    gate, tensor = Gate(), pf.Tensor(row(1, 2, 3))
    before = tensor.readback_request()
    pf.jobs.schedule(lambda array: (gate.wait(), array.fill(7)), tensor, writes=[tensor])
    after = tensor.readback_request()
    assert before.done and not after.done
    gate.open()
    np.testing.assert_array_equal(after.result(wait=True), [7, 7, 7])
    np.testing.assert_array_equal(before.result(), [1, 2, 3])


def test_an_upload_waits_for_the_job_that_reads() -> None:
    gate, tensor, seen = Gate(), pf.Tensor(row(1, 2, 3)), []
    job = pf.jobs.schedule(lambda x: (gate.wait(), seen.append(x.tolist())), tensor, depends_on=[tensor])
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    tensor.upload(row(4, 5, 6))
    assert seen == [[1, 2, 3]] and job.done


def test_storages_jobs_and_other_fences_may_be_depended_on() -> None:
    gate, order = Gate(), list[int]()
    first = pf.jobs.schedule(order.append, 1, depends_on=[gate])
    storage = pf.Tensor(row(1)).data_on_backend
    second = pf.jobs.schedule(order.append, 2, depends_on=[first, storage], writes=[storage])
    third = pf.jobs.schedule(order.append, 3, depends_on=[storage])
    assert not order
    gate.open()
    third.wait()
    assert order == [1, 2, 3] and second.done


def test_a_failure_reaches_all_that_depend_on_it(double: pf.Model) -> None:
    def fail(array: Any) -> None:
        raise KeyError("lost")

    tensor = pf.Tensor(row(1, 2, 3))
    with pf.Worker(double) as worker:
        job = pf.jobs.schedule(fail, tensor, writes=[tensor])
        y = worker.schedule(tensor).peek_output()
        readback = y.readback_request()
        for wait in (job.wait, y.download_to_array, lambda: readback.result(wait=True), tensor.download_to_array):
            with pytest.raises(KeyError, match="lost"):
                wait()
        tensor.upload(row(1, 1, 1))
        np.testing.assert_array_equal(worker.schedule(tensor).peek_output().download_to_array(), [2, 2, 2])


@pytest.mark.backend
def test_a_tensor_on_a_gpu_is_refused(double: pf.Model, backend: str, backend_context: Any) -> None:
    with pf.Worker(double, backend, backend_context) as worker:
        y = worker.schedule(row(1, 2, 3)).peek_output()
        if backend == "cpu":
            pf.jobs.schedule(lambda: None, depends_on=[y]).wait()
            return
        for given in ({"depends_on": [y]}, {"writes": [y]}):
            with pytest.raises(pf.InputError, match=backend):
                pf.jobs.schedule(lambda: None, **given)


def test_two_workers_and_jobs_give_the_same_at_once_and_in_turn() -> None:
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "t"), node("Add", "t x", "y")]
    weights = np.random.default_rng(2).standard_normal((32, 32)).astype(np.float32) / 6
    model = load(nodes, {"x": [32, 32]}, constants={"w": weights})
    failures: list[str] = []

    def frames(seed: int, finish: Callable[[Any], None]) -> list[Any]:
        state = np.random.default_rng(seed).standard_normal((32, 32)).astype(np.float32)
        made = []
        with pf.Worker(model) as first, pf.Worker(model) as second:
            between, out = pf.Tensor(state), pf.Tensor(state)
            for _ in range(60):
                y = first.schedule(out).peek_output()
                finish(pf.jobs.schedule(np.negative, y, between, depends_on=[y], writes=[between]))
                z = second.schedule(between).peek_output()
                finish(pf.jobs.schedule(np.copyto, out, z, depends_on=[z], writes=[out]))
                made.append(z.readback_request())
            return [readback.result(wait=True) for readback in made]

    expected = {seed: frames(seed, lambda job: job.wait()) for seed in range(3)}

    def overlapping(seed: int) -> None:
        for turn in range(3):
            for index, (got, want) in enumerate(zip(frames(seed, lambda _: None), expected[seed], strict=True)):
                if not np.array_equal(got, want):
                    failures.append(f"seed {seed}, turn {turn}, frame {index}")

    threads = [threading.Thread(target=overlapping, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"depends_on": [np.zeros(3)]}, "a job depends on tensors, storages and jobs, not on ndarray"),
        ({"depends_on": [None]}, "not on NoneType"),
        ({"depends_on": pf.Tensor([1.0])}, r"depends_on takes a list, as in depends_on=\[tensor\], and got Tensor"),
        ({"depends_on": "x"}, "depends_on takes a list"),
        ({"writes": pf.Tensor([1.0])}, "writes takes a list"),
        ({"writes": [np.zeros(3)]}, "a job writes tensors and storages, not ndarray"),
        ({"writes": 3}, "writes takes a list"),
    ],
)
def test_what_is_no_tensor_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        pf.jobs.schedule(lambda: None, **options)


def test_a_job_is_a_function() -> None:
    with pytest.raises(pf.InputError, match="a job runs a function, and got str"):
        pf.jobs.schedule("add_one")  # type: ignore[arg-type]


def test_a_job_has_its_tensors_until_it_ran() -> None:
    gate, found, tensor = Gate(), [], pf.Tensor(row(1, 2, 3))
    job = pf.jobs.schedule(lambda array: found.append(array.sum()), tensor, depends_on=[gate])
    tensor.release()
    gate.open()
    job.wait()
    assert found == [6]
    with pytest.raises(pf.ClosedError):
        pf.jobs.schedule(print, tensor)


def test_an_unobserved_failure_is_logged(caplog: Any) -> None:
    def fail() -> None:
        raise KeyError("lost")

    job = pf.jobs.schedule(fail)
    while not job.done:
        time.sleep(0.001)
    assert "lost" not in caplog.text  # a caller may still wait for it
    del job
    collect_garbage()
    assert "a job failed, and no code waited for it: KeyError: 'lost'" in caplog.text
    caplog.clear()
    with pytest.raises(KeyError):
        pf.jobs.schedule(fail).wait()
    collect_garbage()
    assert not caplog.text
