"""Swaps that end early: canceled, replaced, released, or with an error, in every stage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from execution.swaps import X, finished, model, output, settled
from perframe.errors import BackendError, ClosedError
from perframe.execution import readying, swapping
from perframe.execution.swapping import Swap

CPU_STAGES = ("loads", "prepares", "plans and runs it once")
GPU_STAGES = ("uploads constants", "links programs", "plans", "records the run")


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages to which swaps have come."""
    found, beside, note = list[str](), Swap.beside, Swap.note

    def noted_beside(self: Swap, what: str, function: Any) -> Any:
        found.append(what)
        return (yield from beside(self, what, function))

    def noted(self: Swap, what: str, share: float) -> None:
        found.extend([what] if what in GPU_STAGES else [])
        note(self, what, share)

    monkeypatch.setattr(Swap, "beside", noted_beside)
    monkeypatch.setattr(Swap, "note", noted)
    return found


def threads() -> int:
    return sum(thread.name.startswith("perframe: swap") for thread in threading.enumerate())


@pytest.mark.slow
@pytest.mark.parametrize("end", ["cancel", "release", "another"])
def test_it_may_end_in_every_stage(
    backend: str, backend_context: Any, results: Callable[[int], Any], tmp_path: Path, end: str, reached: list[str]
) -> None:
    path = tmp_path / "new.onnx"
    pf.save(model(2), path)
    for stage in CPU_STAGES if backend == "cpu" else (*CPU_STAGES[:2], "derives constants", *GPU_STAGES):
        worker = pf.Worker(model(1), backend, backend_context)  # type: ignore[arg-type]
        worker.schedule(X)
        reached.clear()
        swap = worker.swap(path, budget_ms=0)
        until = time.monotonic() + 60
        while stage not in reached and not swap.done:
            assert time.monotonic() < until
            time.sleep(0.0002)
        assert swap._state == "pending", (stage, reached)
        if end == "another":
            second = worker.swap(model(3))
            finished(second)
            np.testing.assert_array_equal(output(worker), results(3))
        elif end == "cancel":
            swap.cancel()
            swap.cancel()
            np.testing.assert_array_equal(output(worker), results(1))
            settled(worker)
        worker.release()
        assert swap.done and not swap.failed and worker._swaps.is_idle
        with pytest.raises(ClosedError, match="canceled"):
            swap.result()
        with pytest.raises(ClosedError, match="released"):
            worker.swap(path)
    assert not threads()


PLACES = [
    (swapping, "load"),
    (swapping, "check_inputs"),
    (swapping, "machine_for"),
    (swapping, "Instance"),
    (swapping, "trial_values"),
    (readying, "_ahead"),
    (readying, "_run_beside"),
    (readying, "_trial"),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
def test_an_error_in_every_stage(
    worker: pf.Worker,
    results: Callable[[int], Any],
    backend: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[Any, str],
) -> None:
    pf.save(model(2), tmp_path / "new.onnx")

    def fail(*_: Any, **__: Any) -> Any:
        raise BackendError("broken here")

    module, name = place
    if (name == "_run_beside") != (backend == "cpu") and name.startswith("_"):
        return
    monkeypatch.setattr(module, name, fail)
    if name == "_trial":  # it runs where programs are new
        monkeypatch.setattr(type(worker._own.backend), "link", linked)
    swap = worker.swap(tmp_path / "new.onnx")
    with pytest.raises(BackendError, match="broken here") as error:
        swap.result(wait=True)
    assert "keeps its model" in "".join(error.value.__notes__)
    monkeypatch.undo()
    np.testing.assert_array_equal(output(worker), results(1))
    settled(worker)
    worker.swap(model(3)).result(wait=True)
    np.testing.assert_array_equal(output(worker), results(3))


def linked(self: Any, program: Any) -> Any:
    yield False
    return True


@pytest.mark.quick(cases=0)
def test_an_error_of_the_driver(
    worker: pf.Worker, results: Callable[[int], Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "cpu":
        return

    def refuse(*_: Any, **__: Any) -> Any:
        raise BackendError("the driver refuses")

    def refuse_later(*_: Any, **__: Any) -> Any:
        yield False
        refuse()

    for name, fails in (("link", refuse_later), ("record", refuse_later)):
        with monkeypatch.context() as patch:
            patch.setattr(type(worker._own.backend), name, fails)
            with pytest.raises(BackendError, match="the driver refuses"):
                worker.swap(model(2)).result(wait=True)
            np.testing.assert_array_equal(output(worker), results(1))
    monkeypatch.setattr(type(worker._own.backend), "parcel", refuse)
    worker.swap(model(2)).result(wait=True)  # the frames do it then
    np.testing.assert_array_equal(output(worker), results(2))
