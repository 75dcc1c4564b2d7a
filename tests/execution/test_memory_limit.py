"""A limit on memory: what fits exactly, what goes first, and what stays as it was when something does not fit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest

import perframe as pf
from garbage import collect_garbage
from perframe import functional as F
from perframe.backends.cpu.program.arena import ALIGNMENT
from perframe.tensor.memory import MEGABYTE, Held, ledger
from perframe.testing.checks import trace

random = np.random.default_rng(5)
ROOM = 1 << 40  # bytes: a limit that leaves room for all


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test makes changes the bytes held: not what earlier tests have dropped, no plans of workers that they
    keep, and no jobs that trace.
    """
    monkeypatch.setenv("PERFRAME_FOLLOW", "0")
    settled()
    monkeypatch.setattr(ledger, "holders", WeakSet[Any]())


def limit(size: int) -> pf.MemoryLimit:
    """A limit in bytes."""
    return pf.MemoryLimit(size / MEGABYTE)


def settled() -> int:
    """The bytes held, once nothing waits to be freed: a context frees objects when it is next used."""
    collect_garbage()
    for holder in list(ledger.holders):
        holder.free_spare()
    return ledger.held


def dense(size: int = 256, name: str = "dense") -> tuple[pf.Model, Any]:
    """Two products with different weights. The rows are of any number."""
    weights = [random.standard_normal((size, size)).astype(np.float32) / 16 for _ in range(2)]
    graph = pf.FunctionalGraph(name)
    x = graph.add_input("float32", ("rows", size), "x")
    return graph.compile(y=F.matmul(F.tanh(F.matmul(x, weights[0])), weights[1])), weights


def check(worker: pf.Worker, weights: Any, rows: int, size: int = 256) -> None:
    """One run, compared with NumPy."""
    x = random.standard_normal((rows, size)).astype(np.float32)
    y = worker.schedule(x).peek_output().numpy()
    np.testing.assert_allclose(y, np.tanh(x @ weights[0]) @ weights[1], rtol=1e-4, atol=1e-4)


@pytest.fixture
def plain() -> tuple[pf.Model, Any]:
    return dense()


def test_exactly_what_a_run_needs_is_enough(backend: str, plain: Any) -> None:
    """One aligned unit less than a run needs is not enough, and then nothing stays allocated."""
    model, weights = plain
    with limit(ROOM), pf.Worker(model, backend) as worker:
        before = settled()
        worker.schedule(np.zeros((96, 256), np.float32))
        needed = settled() - before
    host = sum(array.nbytes for array in weights)
    values = 2 * 96 * 256 * 4  # the input and the output; others share the storage of a run
    assert values + host <= needed, "on the CPU the weights are packed, on a GPU uploaded"
    for less in (0, ALIGNMENT):
        with pf.Worker(model, backend) as worker:
            before = settled()
            with limit(before + needed - less) as bound:
                if less:
                    with pytest.raises(pf.MemoryLimitError, match=r"dense with the inputs x \(96, 256\)") as caught:
                        worker.schedule(np.zeros((96, 256), np.float32))
                    assert caught.value.limit == before + needed - less
                    assert (
                        before <= caught.value.held <= caught.value.limit < caught.value.held + caught.value.requested
                    )
                    assert bound.used == before, "nothing is half allocated"
                    assert not worker.memory_use[0].packed and not worker.memory_use[0].workspace
                    check(worker, weights, 8)
                else:
                    worker.schedule(np.zeros((96, 256), np.float32))
                    assert bound.used == bound.bytes


def test_the_error_says_who_holds_what(backend: str, plain: Any) -> None:
    model, weights = plain
    with pf.Worker(model, backend) as worker, pf.Worker(dense(128, "other")[0], backend) as other:
        check(worker, weights, 32)
        check(worker, weights, 64)
        other.schedule(np.zeros((8, 128), np.float32))
        kept = pf.Tensor(np.zeros(50_000, np.float32))
        with limit(ROOM) as bound:
            held = {one.holder: one for one in bound.holders}
            mine, others = held[f"dense on {backend}"], held["tensors and buffers outside of workers"]
            assert sum(one.total for one in bound.holders) == bound.used
        assert mine.weights >= 2 * sum(array.nbytes for array in weights), "the model's, and the kernels'"
        assert mine.plan >= 2 * 64 * 256 * 4 and mine.caches >= 2 * 32 * 256 * 4 and not mine.states
        assert others.other >= kept.shape.size * 4
        with limit(ledger.held + 1000), pytest.raises(pf.MemoryLimitError) as caught:
            worker.schedule(np.zeros((4096, 256), np.float32))
        assert f"dense on {backend}: " in str(caught.value) and "weights 0." in str(caught.value)
        largest, *_ = (one for one in caught.value.holders if one.holder != others.holder)
        assert largest.holder == f"dense on {backend}"


def plans_of(worker: pf.Worker) -> list[int]:
    """The rows for which a worker has plans, the oldest first."""
    (part,) = worker.parts.planned_parts()
    return [plan.input_shapes[0][0] for plan in part._plans.values()]


def test_the_oldest_plans_go_first(backend: str, plain: Any) -> None:
    """They go one by one, of whichever worker, and never the last of a worker."""
    model, weights = plain
    with pf.Worker(model, backend) as first, pf.Worker(model, backend) as second:
        for rows in (96, 97):
            check(second, weights, rows)
        for rows in (98, 99, 100):
            check(first, weights, rows)
        check(second, weights, 101)
        assert (plans_of(first), plans_of(second)) == ([98, 99, 100], [96, 97, 101])
        with limit(settled()):  # what readbacks keep would go before any plan
            check(first, weights, 95)
            assert plans_of(first)[-1] == 95 and 101 in plans_of(second)
            assert 96 not in plans_of(second), "the oldest of all"
            order = [96, 98, 99, 97]  # in which other plans took their places
            gone = {*order} - {*plans_of(first), *plans_of(second)}
            assert gone == {*order[: len(gone)]}
            check(first, weights, 100)
            check(second, weights, 101)


@pytest.mark.quick(cases=0)
def test_what_readbacks_keep_goes_before_plans(backend: str) -> None:
    model, weights = dense(size=512)
    with pf.Worker(model, backend) as worker:
        for rows in (200, 199):
            for _ in range(3):
                check(worker, weights, rows, 512)
        worker._own.backend.free_spare()
        with limit(ledger.held + 400_000):
            check(worker, weights, 100, 512)
            assert plans_of(worker) == [200, 199, 100]


def test_a_readback_that_does_not_fit_is_the_callers(plain: Any) -> None:
    model, weights = plain
    with pf.Worker(model, "cpu") as worker:
        worker.schedule(np.zeros((512, 256), np.float32))
        with limit(ledger.held) as bound:
            for _ in range(3):
                check(worker, weights, 512)
            assert bound.used == bound.bytes
        check(worker, weights, 512)
        assert ledger.held > bound.bytes, "kept for the next readback"


def test_another_thread_keeps_its_plans(plain: Any) -> None:
    """A worker that another thread uses is left alone, and nothing waits for it."""
    model, weights = plain
    with pf.Worker(model, "cpu") as busy, pf.Worker(model, "cpu") as worker:
        for rows in (31, 32):
            check(busy, weights, rows)
        entered, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with busy._lock:
                entered.set()
                leave.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        entered.wait(60)
        try:
            with limit(ledger.held), pytest.raises(pf.MemoryLimitError):
                worker.schedule(np.zeros((64, 256), np.float32))
            assert plans_of(busy) == [31, 32]
        finally:
            leave.set()
            thread.join()
        with limit(ledger.held + 2 * 64 * 256 * 4), pytest.raises(pf.MemoryLimitError):
            worker.schedule(np.zeros((640, 256), np.float32))
        assert plans_of(busy) == [32]


def test_steady_frames_never_ask_the_ledger(backend: str, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = plain
    with pf.Worker(model, backend) as worker, limit(ROOM):
        x = np.zeros((64, 256), np.float32)
        for _ in range(3):
            worker.schedule(x).peek_output().numpy()

        def fail(*_: object) -> None:
            raise AssertionError("a steady frame allocates")

        for name in ("add", "fits", "require", "uses"):
            monkeypatch.setattr(ledger, name, fail)
        for _ in range(20):
            worker.schedule(x).peek_output().numpy()


@pytest.mark.quick(cases=0)
def test_a_resized_program_fails_as_a_whole(backend: str, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template's program gets other sizes in place: all of its storages grow, or none."""
    monkeypatch.setenv("PERFRAME_FOLLOW", "1")
    model, weights = plain
    with pf.Worker(model, backend) as worker:
        for rows in (40, 41, 42):
            check(worker, weights, rows)
        trace(worker)
        for rows in (*range(50, 61), 43):
            check(worker, weights, rows)
        with limit(settled() + 4000):
            held = ledger.held
            with pytest.raises(pf.MemoryLimitError, match="dense with the inputs"):
                worker.schedule(np.zeros((5000, 256), np.float32))
            assert ledger.held <= held
            for rows in (43, 44, 30):
                check(worker, weights, rows)
        check(worker, weights, 5000)


@pytest.fixture
def recall() -> pf.Model:
    """A sum over a state that grows."""
    graph = pf.FunctionalGraph("recall")
    x, past = graph.add_input("float32", ("new", 64), "x"), graph.add_input("float32", ("past", 64), "past")
    rows = F.concat([past, x], 0)
    return graph.compile(total=F.reduce_sum(rows, [0]), rows=rows)


def appended(worker: pf.Worker, count: int) -> int:
    """Append up to `count` rows of ones in turn. Return how many fit."""
    for at in range(count):
        try:
            worker.schedule(np.ones((1, 64), np.float32))
        except pf.MemoryLimitError:
            return at
    return count


@pytest.mark.quick(cases=0)
def test_a_state_grows_up_to_the_limit(backend: str, recall: pf.Model) -> None:
    """Its room doubles while that fits. The state that does not fit any more keeps its values."""
    with pf.Worker(recall, backend, carry={"rows": "past"}) as worker:
        assert appended(worker, 8) == 8
        room = 1 << 16
        with limit(settled() + room) as bound:
            more = appended(worker, 1000)
            rows = 8 + more
            assert room / (5 * 64 * 4) < more < room / (64 * 4), "two storages while it moves, and those of two plans"
            state = next(one for one in bound.holders if one.states)
            assert state.holder == f"recall on {backend}" and state.states >= rows * 64 * 4
        assert worker.state().shape == (rows, 64) and (worker.state().numpy() == 1).all()
        assert appended(worker, 100) == 100
        np.testing.assert_array_equal(worker.peek_output("total").numpy(), np.full(64, rows + 100))


def test_capacity_is_not_allocated_beyond_the_limit(backend: str, recall: pf.Model) -> None:
    with pf.Worker(recall, backend, carry={"rows": "past"}, carry_capacity=10**6) as worker:
        with limit(settled() + (1 << 20)):
            assert appended(worker, 20) == 20
        assert worker.state().shape == (20, 64)


def test_a_state_stays_within_the_largest_block(recall: pf.Model, gl_context: Any, monkeypatch: Any) -> None:
    """GL limits the bytes of a storage block, and the sides of a texture."""
    from perframe.backends.gl.compute import BufferStorage
    from perframe.backends.gl.pixel import TextureStorage

    for kind, name in ((BufferStorage, "gpu_compute"), (TextureStorage, "gpu_pixel")):
        monkeypatch.setattr(kind, "most_elements", 100 * 64)
        for capacity in (None, 10**6):
            with pf.Worker(recall, name, gl_context, carry={"rows": "past"}, carry_capacity=capacity) as worker:
                assert appended(worker, 90) == 90
                made = worker.states._states[0].storages
                assert {one.backend_type for one in made} == {name}
                assert max(one.held_bytes for one in made) < 42_000, "100 rows, and what a texture is rounded up by"


def test_limits_of_an_app(plain: Any) -> None:
    """An app's limit holds until it is released, and the smallest of all limits counts."""
    model, weights = plain
    app = pf.App(headless=True, memory_mb=ledger.held / MEGABYTE + 1)
    assert app.memory is not None and ledger.least == app.memory.bytes
    with limit(ROOM), pf.Worker(model) as worker:
        assert ledger.least == app.memory.bytes
        with pytest.raises(pf.MemoryLimitError, match="memory_mb"):
            worker.schedule(np.zeros((4096, 256), np.float32))
        app.release()
        assert ledger.least == ROOM
        check(worker, weights, 4096)
    assert ledger.least == float("inf")


def test_an_app_that_is_dropped_has_no_limit() -> None:
    bound = limit(ROOM)
    assert ledger.least == ROOM
    del bound
    assert ledger.least == float("inf")


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "64", True])
def test_wrong_limits(wrong: Any) -> None:
    with pytest.raises(pf.InputError, match="memory_mb is a number of MiB"):
        pf.App(headless=True, memory_mb=wrong)


def test_a_limit_below_what_is_held() -> None:
    """It is refused, and does not hold."""
    kept = pf.Tensor(np.zeros(100_000, np.float32))
    with pytest.raises(pf.MemoryLimitError, match="the limit itself"):
        pf.App(headless=True, memory_mb=0.1)
    assert ledger.least == float("inf") and kept.shape.size


@pytest.fixture
def held() -> Iterator[int]:
    yield ledger.held


def test_tensors_count_until_their_last_view_is_gone(held: int) -> None:
    tensor = pf.Tensor(np.zeros(1000, np.float32))
    assert ledger.held == held + 4000 + ALIGNMENT
    with limit(ledger.held), pytest.raises(pf.MemoryLimitError, match="host memory: 4,064 bytes more"):
        pf.Tensor(np.zeros(1000, np.float32))
    view = tensor.data_on_backend.native((1000,), pf.DataType.FLOAT32)  # type: ignore[attr-defined]
    del tensor
    assert ledger.held == held + 4000 + ALIGNMENT
    del view
    collect_garbage()
    assert ledger.held == held


def test_threads_count_together(held: int) -> None:
    def work() -> None:
        for _ in range(2000):
            Held(100, "a test")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.held == held
