"""A brief run reads large arrays of the caller in place: within `schedule`, and never after it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu.backend import CpuBackend
from perframe.backends.cpu.program import program as programs
from perframe.plan.plan import LEAST_LENT
from perframe.tensor import HostStorage
from perframe.tensor.guarded import guard
from small import load, node

SIZE = LEAST_LENT // 4
pytestmark = pytest.mark.skipif(bool(guard()), reason="guarded memory is never the caller's")


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are brief, except for those that have not been measured."""
    monkeypatch.setattr(programs, "BRIEF", 1 << 60)


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the arrays that are copied in."""
    seen: list[int] = []
    upload = HostStorage.upload

    def watched(self: HostStorage, array: Any) -> None:
        seen.append(array.size)
        upload(self, array)

    monkeypatch.setattr(HostStorage, "upload", watched)
    return seen


@pytest.fixture
def worker() -> Iterator[pf.Worker]:
    """The running sums of x, and then the product with z: two layers."""
    nodes = [node("CumSum", "x axis", "sums"), node("Mul", "sums z", "y")]
    model = load(nodes, {"x": [1, "n"], "z": [1, "n"]}, "y", {"axis": np.array(1)})
    with pf.Worker(model) as made:
        for _ in range(3):
            made.schedule(ones(), ones()).peek_output().download_to_array()
        yield made


def ones() -> Any:
    return np.ones((1, SIZE), np.float32)


def last(worker: pf.Worker) -> float:
    return float(worker.peek_output().download_to_array()[0, -1])


def test_large_arrays_are_not_copied(worker: pf.Worker, uploads: list[int]) -> None:
    assert last(worker.schedule(ones(), 2 * ones())) == 2 * SIZE
    assert uploads == []


def test_the_caller_may_change_an_array_when_schedule_has_returned(worker: pf.Worker) -> None:
    x, z = ones(), ones()
    output = worker.schedule(x, z).peek_output()
    x[:], z[:] = 5, 7
    assert last(worker) == SIZE
    kept = output.download_to_array()
    assert last(worker.schedule(x, z)) == 35 * SIZE
    assert kept[0, -1] == SIZE


def test_a_run_that_must_wait_gets_a_copy(
    worker: pf.Worker, uploads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuBackend, "_nothing_pends", lambda *_: False)
    x = 3 * ones()
    worker.schedule(x, ones())
    x[:] = 0
    assert last(worker) == 3 * SIZE
    assert uploads == [SIZE, SIZE]


def test_a_run_layer_by_layer_gets_a_copy(worker: pf.Worker) -> None:
    x, z = ones(), ones()
    for _ in worker.schedule_iterable(x, z):
        x[:], z[:] = 0, 0
    assert last(worker) == SIZE


def test_no_array_is_kept(worker: pf.Worker) -> None:
    x = ones()
    gone = weakref.ref(x)
    worker.schedule(x, ones())
    del x
    assert gone() is None


def test_an_array_of_a_refused_run_is_not_read_later(worker: pf.Worker) -> None:
    wrong = pf.Tensor(ones())
    wrong.release()
    with pytest.raises(pf.ClosedError):
        worker.schedule(9 * ones(), wrong)
    assert last(worker.schedule(pf.Tensor(ones()), pf.Tensor(ones()))) == SIZE


@pytest.mark.parametrize("kind", ["odd address", "columns", "read-only", "mapped"])
def test_all_kinds_of_arrays(worker: pf.Worker, uploads: list[int], kind: str, tmp_path: Any) -> None:
    values = np.arange(2 * SIZE + 1, dtype=np.float32) % 7
    x = {"odd address": values[1 : SIZE + 1], "columns": values[1::2]}.get(kind, values[:SIZE]).reshape(1, SIZE)
    wanted = float(x.astype(np.float64).sum())
    if kind == "read-only":
        x.flags.writeable = False
    if kind == "mapped":
        x.tofile(tmp_path / "x")
        x = np.memmap(tmp_path / "x", np.float32, "r", shape=(1, SIZE))
    assert last(worker.schedule(x, ones())) == pytest.approx(wanted)
    assert uploads == ([SIZE] if kind == "columns" else [])


def test_the_steps_can_be_timed_after_a_run_on_lent_arrays(worker: pf.Worker) -> None:
    worker.schedule(ones(), ones())
    assert all(step.seconds is not None for step in worker.report(2))


def test_after_an_error_the_arrays_are_not_read_later(worker: pf.Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no run")

    x, z = ones(), ones()
    with monkeypatch.context() as patched:
        patched.setattr(programs.CpuProgram, "run", fail)
        worker.schedule(9 * x, 9 * z)
    with pytest.raises(RuntimeError, match="no run"):
        last(worker)
    assert last(worker.schedule(pf.Tensor(x), pf.Tensor(z))) == SIZE


def test_a_tensor_does_not_keep_the_result_of_a_readback(worker: pf.Worker) -> None:
    output = worker.schedule(ones(), ones()).peek_output()
    result = output.readback_request().result(wait=True)
    gone = weakref.ref(result)
    del result
    assert gone() is None and output.is_readback_request_done()
