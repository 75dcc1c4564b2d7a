"""`worker.swap`: another model takes the place of a worker's while it runs."""

from __future__ import annotations

import asyncio
import gc
import math
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from execution.swaps import WIDTH, X, finished, model, output, settled
from garbage import collect_garbage
from perframe.errors import ClosedError, InputError, MissingFileError, ModelError, PerframeError
from perframe.execution import swapping
from perframe.host import App, ManualClock
from perframe.host.surface import BlankSurface
from perframe.plan.segments import Segment


def test_runs_go_on_until_the_exchange(worker: pf.Worker, results: Callable[[int], Any]) -> None:
    old, new = results(1), results(2)
    assert not np.allclose(old, new)
    swap, told, runs = worker.swap(model(2)), set[str](), 0
    while not swap.done:
        found = output(worker)
        np.testing.assert_array_equal(found, new if worker.model.name == "m2" else old)
        assert 0 <= swap.progress <= 1
        told.add(swap.doing)
        runs += 1
        time.sleep(0.001)
    swap.result()
    assert runs > 1 and told and swap.progress == 1 and not swap.failed
    assert worker.model.name == "m2"
    np.testing.assert_array_equal(output(worker), new)


@pytest.mark.quick(cases=0)
def test_the_first_run_after_it_makes_no_plan(
    worker: pf.Worker, results: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker.swap(model(2)).result(wait=True)
    (part,) = worker.parts.planned_parts()
    made = part.latest_plan
    assert made is not None
    np.testing.assert_array_equal(output(worker), results(2))
    assert part.latest_plan is made


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("lends", [False, True])
def test_weights_go_up_in_pieces(
    worker: pf.Worker, results: Callable[[int], Any], backend: str, monkeypatch: pytest.MonkeyPatch, lends: bool
) -> None:
    """Or they stay in the array of the thread, where the driver can use it."""
    if backend == "cpu":
        return
    made: Any = worker._own.backend
    monkeypatch.setattr(made.device, "lends", lends and made.device.lends)
    kind: Any = type(made.alloc((4,), pf.DataType.FLOAT32))
    whole, pieces = list[int](), list[int]()
    upload, write = kind.upload, kind.pieces

    def noted_whole(self: Any, array: Any) -> None:
        whole.append(array.nbytes)
        upload(self, array)

    def noted(self: Any, arranged: Any) -> Iterator[None]:
        pieces.append(arranged.nbytes)
        yield from write(self, arranged)

    monkeypatch.setattr(kind, "upload", noted_whole)
    monkeypatch.setattr(kind, "pieces", noted)
    worker.swap(model(2)).result(wait=True)
    assert max(whole, default=0) < 100_000
    large = [size for size in pieces if size > 100_000]
    assert len(large) == (0 if backend == "gpu_compute" and made.device.lends else 3)
    np.testing.assert_array_equal(output(worker), results(2))
    settled(worker)


@pytest.mark.quick(cases=0)
def test_steps_of_new_programs_run_a_little_before(
    worker: pf.Worker, results: Callable[[int], Any], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drivers put off a part of compiling until then."""
    if backend == "cpu":
        return
    touched = list[int]()
    touch = Segment.touch

    def noted(self: Segment, step: int) -> None:
        touched.append(step)
        touch(self, step)

    def linked(self: Any, program: Any) -> Any:
        yield False
        return True

    monkeypatch.setattr(Segment, "touch", noted)
    worker.swap(model(2)).result(wait=True)
    assert not touched, "all programs have run already"
    monkeypatch.setattr(type(worker._own.backend), "link", linked)
    worker.swap(model(3)).result(wait=True)
    (part,) = worker.parts.planned_parts()
    assert part.latest_plan is not None and touched == list(range(len(part.latest_plan.segments[0])))
    np.testing.assert_array_equal(output(worker), results(3))


def test_times_of_equal_layers_are_known(worker: pf.Worker) -> None:
    for _ in range(3):
        for _ in worker.schedule_iterable(X, budget_ms=1):
            pass

    def seconds() -> list[float]:
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None
        return part.latest_plan.segments[0].costs.seconds  # type: ignore[union-attr]

    before = list(seconds())
    assert before and all(map(math.isfinite, before))
    worker.swap(model(2)).result(wait=True)
    assert seconds() == before


def test_outputs_stay_until_the_first_run_of_the_new_model(worker: pf.Worker, results: Callable[[int], Any]) -> None:
    worker.swap(model(2)).result(wait=True)
    assert worker.model.name == "m2"
    np.testing.assert_array_equal(worker.peek_output().download_to_array(), results(1))
    np.testing.assert_array_equal(worker.copy_output("y").download_to_array(), results(1))
    np.testing.assert_array_equal(output(worker), results(2))


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("budget_ms", [None, 0.0])
def test_a_run_in_steps_ends_before_the_exchange(
    worker: pf.Worker, results: Callable[[int], Any], budget_ms: float | None
) -> None:
    """And a run whose inputs were given before runs on the new model."""
    steps: Any = worker.schedule_iterable(X, budget_ms=budget_ms)  # type: ignore[call-overload]
    next(steps)
    swap = worker.swap(model(2))
    until = time.monotonic() + 60
    while swap.doing != swapping.LAST and time.monotonic() < until:
        assert not swap.done
        time.sleep(0.001)
    with pytest.raises(PerframeError, match="run that advances in steps"):
        swap.result(wait=True)
    waiting: Any = worker.schedule_iterable(X, budget_ms=budget_ms)  # type: ignore[call-overload]
    for _ in steps:
        assert worker.model.name == "m1"
    np.testing.assert_array_equal(worker.peek_output().download_to_array(), results(1))
    finished(swap)
    for _ in waiting:
        pass
    assert worker.model.name == "m2"
    np.testing.assert_array_equal(worker.peek_output().download_to_array(), results(2))
    del waiting
    settled(worker)


def test_in_an_app(backend: str, backend_context: Any, results: Callable[[int], Any]) -> None:
    expected = results(2), results(3)  # and all kernels are compiled

    class Swapping(pf.Script):
        async def start(self) -> None:
            self.worker = pf.Worker(model(1), backend, backend_context)  # type: ignore[arg-type]
            self.worker.schedule(X)
            await self.worker.swap(model(2))
            self.found = output(self.worker)
            self.second = self.worker.swap(model(3))  # it is not awaited, and no run is scheduled

        def update(self, frame: pf.Frame) -> None:
            if hasattr(self, "second") and (self.second._state != "pending" or frame.index > 20_000):
                self.app.quit()
            time.sleep(0.0005)

    script = Swapping()
    with App(surface=BlankSurface((4, 3)), clock=ManualClock(1 / 60), stop_on_error=True) as app:
        app.run(script)
        np.testing.assert_array_equal(script.found, expected[0])
        script.second.result()
        np.testing.assert_array_equal(output(script.worker), expected[1])
        script.worker.release()


@pytest.mark.quick(cases=0)
def test_in_a_program_of_asyncio(worker: pf.Worker, results: Callable[[int], Any], tmp_path: Path) -> None:
    pf.save(model(2), tmp_path / "new.onnx")

    async def main() -> None:
        await worker.swap(tmp_path / "new.onnx")

    asyncio.run(main())
    np.testing.assert_allclose(output(worker), results(2), 1e-6)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda path: path.unlink(), MissingFileError),
        (lambda path: path.write_bytes(path.read_bytes()[:-5000]), ModelError),
    ],
)
def test_a_file_that_cannot_be_loaded(
    worker: pf.Worker, results: Callable[[int], Any], tmp_path: Path, change: Any, error: Any, caplog: Any
) -> None:
    path = tmp_path / "new.onnx"
    pf.save(model(2), path)
    change(path)
    swap = worker.swap(path)
    finished(swap)
    assert swap.failed
    with pytest.raises(error, match=r"new\.onnx"):
        swap.result()
    assert "keeps its model" in caplog.text
    np.testing.assert_array_equal(output(worker), results(1))


@pytest.mark.parametrize(
    "other",
    [
        lambda: model(2, name="other"),
        lambda: model(2, dims=(3, WIDTH)),
        lambda: model(2, dims=(1, 2, WIDTH)),
        lambda: doubles(),
    ],
)
def test_other_inputs_are_an_error(worker: pf.Worker, results: Callable[[int], Any], other: Callable[[], Any]) -> None:
    swap = worker.swap(other())
    with pytest.raises(InputError, match=r"x: float32 \(2, 160\)"):
        swap.result(wait=True)
    np.testing.assert_array_equal(output(worker), results(1))


def doubles() -> pf.Model:
    graph = pf.FunctionalGraph("doubles")
    return graph.compile(y=graph.add_input("int32", (2, WIDTH), "x") * 2)


def test_memory_is_given_back(worker: pf.Worker, backend: str) -> None:
    swap = worker.swap(model(2))
    (part,) = worker.parts.planned_parts()
    kept = [weakref.ref(operand.storage) for operand in part.constants._made.values()]
    kept += [weakref.ref(part), weakref.ref(worker.parts.model)]
    storages = [operand.storage for operand in part.constants._made.values()]
    plan = part.latest_plan
    assert plan is not None and storages
    owned = list(plan._owned)
    finished(swap)
    assert all(storage.is_open for storage in owned)  # the outputs of the last run are there
    settled(worker)
    if backend != "cpu":
        assert not any(storage.is_open for storage in [*storages, *owned])
    assert plan.program is None
    del part, plan, storages, owned, swap
    collect_garbage()
    assert not any(reference() for reference in kept)


def test_kept_inputs_and_bound_outputs_stay(backend: str, backend_context: Any, results: Callable[[int], Any]) -> None:
    with pf.Worker(model(1), backend, backend_context) as worker:  # type: ignore[arg-type]
        mine = pf.Tensor.empty((2, WIDTH), "float32")
        worker.set_input("x", X)
        worker.bind_output("y", mine)
        worker.schedule()
        worker.swap(model(2)).result(wait=True)
        worker.schedule()
        np.testing.assert_array_equal(mine.download_to_array(), results(2))


def counter(step: float, width: int = 4, name: str = "counter") -> pf.Model:
    graph = pf.FunctionalGraph(name)
    total = graph.add_input("float32", (1, width), "total")
    x = graph.add_input("float32", (1, 1), "x")
    made = total + x * step
    return graph.compile(y=made * 1.0, next=made)


def test_states_are_kept_or_begin_again(backend: str, backend_context: Any, caplog: Any) -> None:
    one = np.ones((1, 1), np.float32)
    carry = {"next": "total"}
    with pf.Worker(counter(1), backend, backend_context, carry=carry) as worker:  # type: ignore[arg-type]
        for _ in range(3):
            worker.schedule(one)
        swap = worker.swap(counter(10))
        swap.result(wait=True)
        assert swap.reset_states == ()
        np.testing.assert_array_equal(worker.state().download_to_array(), [[3] * 4])
        np.testing.assert_array_equal(worker.schedule(one).peek_output("y").download_to_array(), [[13] * 4])
        wide = worker.swap(counter(2, width=6))
        wide.result(wait=True)
        assert wide.reset_states == ("total",) and "begins again with zeros" in caplog.text
        np.testing.assert_array_equal(worker.schedule(one).peek_output("y").download_to_array(), [[2] * 6])
        graph = pf.FunctionalGraph("stateless")
        x = graph.add_input("float32", (1, 1), "x")
        with pytest.raises(InputError, match="carry names 'next'"):
            worker.swap(graph.compile(y=x * 2)).result(wait=True)
        np.testing.assert_array_equal(worker.state().download_to_array(), [[2] * 6])


def test_a_model_of_the_callers_may_change_afterwards(worker: pf.Worker, results: Callable[[int], Any]) -> None:
    """The constants of a model that was built in code are not read-only."""
    mine = model(2)
    for value in mine.constant_values:
        value.constant = value.constant.copy()  # type: ignore[union-attr]
    before = [array.copy() for array in mine.constants.values()]
    worker.swap(mine).result(wait=True)
    np.testing.assert_array_equal(output(worker), results(2))
    for array, copy in zip(mine.constants.values(), before, strict=True):
        assert array.flags.writeable
        np.testing.assert_array_equal(array, copy)


def test_shapes_that_no_run_has_told(backend: str, backend_context: Any) -> None:
    """Without them the first run makes the plan."""
    with pf.Worker(model(1, ("n", WIDTH)), backend, backend_context) as worker:  # type: ignore[arg-type]
        worker.swap(model(2, ("n", WIDTH))).result(wait=True)
        assert not any(part.latest_plan for part in worker.parts.planned_parts())
        swap = worker.swap(model(3, ("n", WIDTH)), inputs={"x": X})
        swap.result(wait=True)
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None and part.latest_plan.input_shapes == [(2, WIDTH)]
        with pytest.raises(InputError, match="'x'"):
            worker.swap(model(2, ("n", WIDTH)), inputs={"x": X[:, :3]}).result(wait=True)


def test_a_dropped_worker_ends_its_swap(backend: str, backend_context: Any) -> None:
    worker = pf.Worker(model(1), backend, backend_context)  # type: ignore[arg-type]
    worker.schedule(X)
    swap = worker.swap(model(2))
    swaps = weakref.ref(worker._swaps)
    del worker
    collect_garbage()
    assert swaps() is None and swap.done
    with pytest.raises(ClosedError):
        swap.result()


@pytest.mark.quick(cases=0)
@pytest.mark.usefixtures("thawed")
def test_no_frame_searches_the_new_plan_for_garbage(worker: pf.Worker, results: Callable[[int], Any]) -> None:
    output(worker)
    collect_garbage()
    gc.disable()  # no other search makes the plan old
    try:
        finished(worker.swap(model(2)))
        plans = [id(plan) for plan in worker._own.plans()]
        assert plans and not {id(one) for young in (0, 1) for one in gc.get_objects(generation=young)} & set(plans)
    finally:
        gc.enable()
    np.testing.assert_array_equal(output(worker), results(2))
