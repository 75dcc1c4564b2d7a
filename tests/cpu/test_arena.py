"""Values of a run share memory unless they live at the same time. Plans of one worker share the arena."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.program import arena as arenas
from perframe.backends.cpu.program.arena import Arena, ArenaStorage, ArenaWorkspace
from perframe.execution.plan_cache import MAX_PLANS
from perframe.plan.refit import FittedPlan
from perframe.tensor import DataType
from perframe.testing.checks import trace
from small import load, node

BIG = 1 << 20


@given(st.lists(st.tuples(st.integers(0, 40 * BIG // 4), st.integers(0, 5)), min_size=1, max_size=30))
@settings(deadline=None)
def test_values_that_live_together_lie_apart(values: list[tuple[int, int]]) -> None:
    """A value is given back after some others were taken. The layout may move all values at the end."""
    arena = Arena()
    workspace = ArenaWorkspace(arena)
    live: list[tuple[int, ArenaStorage]] = []
    pairs: list[tuple[ArenaStorage, ArenaStorage]] = []
    most = 0
    for index, (size, life) in enumerate(values):
        storage = workspace.take((size,), DataType.FLOAT32)
        assert isinstance(storage, ArenaStorage)
        pairs += [(storage, other) for _, other in live]
        live.append((index + life, storage))
        most = max(most, workspace.used)
        for item in [item for item in live if item[0] <= index]:
            live.remove(item)
            workspace.give_back(item[1])
    as_taken = workspace.size
    check(pairs, workspace.size)
    workspace.end_plan()
    check(pairs, workspace.size)
    assert most <= workspace.size <= as_taken


def check(pairs: list[tuple[ArenaStorage, ArenaStorage]], size: int) -> None:
    for a, b in pairs:
        first, second = ((x.offset, x.offset + 4 * x.size) for x in (a, b))
        assert first[1] <= second[0] or second[1] <= first[0]
        assert max(first[1], second[1]) <= size and a.offset % 64 == b.offset % 64 == 0


def test_what_was_not_taken_here_is_left_alone() -> None:
    workspace = ArenaWorkspace(Arena())
    storage = workspace.take((4,), DataType.FLOAT32)
    for _ in range(2):
        workspace.give_back(storage)
    assert workspace.used == 0 and workspace.size == 64


def test_a_waste_is_laid_out_anew() -> None:
    """A large value between two small ones is given back. The next value is larger still, and does not fit there."""
    workspace = ArenaWorkspace(Arena())
    first, hole, last = (workspace.take((size,), DataType.FLOAT32) for size in (16, BIG, 16))
    workspace.give_back(hole)
    workspace.take((BIG + 16,), DataType.FLOAT32)
    before = workspace.size
    workspace.end_plan()
    assert before > 8 * BIG and workspace.size < 5 * BIG
    assert isinstance(first, ArenaStorage) and isinstance(last, ArenaStorage) and first.offset != last.offset


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that arenas get."""
    made: list[int] = []
    allocate = arenas.aligned_bytes

    def count(size: int) -> Any:
        made.append(size)
        return allocate(size)

    monkeypatch.setattr(arenas, "aligned_bytes", count)
    return made


def chain() -> pf.Model:
    """Sums and products that no pass joins: each value is read twice."""
    nodes = [node("Add", "x x", "a"), node("Mul", "a x", "b"), node("Sub", "b a", "c"), node("Mul", "c b", "y")]
    return load(nodes, {"x": ["n", 64]}, optimize=False)


def expected(x: Any) -> Any:
    a = x + x
    b = a * x
    return (b - a) * b


def test_plans_share_one_block(blocks: list[int]) -> None:
    """A smaller shape takes no memory of its own, nor a little larger one; others take a new block, where the first
    one runs then too.
    """
    inputs = {
        rows: np.random.default_rng(rows).standard_normal((rows, 64)).astype("f4") for rows in (64, 32, 100, 9000)
    }
    with pf.Worker(chain()) as worker:
        for rows, count in ((64, 1), (32, 1), (100, 1), (9000, 2), (64, 2), (32, 2), (9000, 2)):
            made = worker.schedule(inputs[rows]).peek_output().download_to_array()
            np.testing.assert_allclose(made, expected(inputs[rows]), 1e-5, 1e-5)
            assert len(blocks) == count


def test_steps_in_numpy_follow_the_block() -> None:
    """float64 has no kernels."""
    nodes = [
        node("Cast", "x", "d", to=11),
        node("Add", "d d", "a"),
        node("Mul", "a d", "b"),
        node("Cast", "b", "y", to=1),
    ]
    model = load(nodes, {"x": ["n"]}, optimize=False)
    with pf.Worker(model) as worker:
        for rows in (10, 100000, 10, 5, 200000, 10):
            x = np.linspace(0, 1, rows, dtype=np.float32)
            np.testing.assert_allclose(worker.schedule(x).peek_output().download_to_array(), 2 * x * x, 1e-5)


def test_a_release_frees_the_block() -> None:
    worker = pf.Worker(chain())
    worker.schedule(np.ones((8, 64), np.float32)).peek_output().download_to_array()
    arena = worker._own.backend.arena  # type: ignore[attr-defined]
    assert arena.block(0)[0].size
    worker.release()
    assert not arena.block(0)[0].size and not arena.workspaces


def test_fitted_plans_leave_the_block() -> None:
    """One that is freed since others were used later, and all of them with their worker."""
    for name in ("arithmetic", "arithmetic.write"):
        jit.kernel(name)  # while they are being compiled, other sizes are planned
    worker = pf.Worker(chain())
    arena = worker._own.backend.arena  # type: ignore[attr-defined]
    worker.schedule(np.ones((8, 64), np.float32)).peek_output().download_to_array()
    trace(worker)
    for rows in range(9, 40):
        worker.schedule(np.ones((rows, 64), np.float32)).peek_output().download_to_array()
    assert isinstance(next(worker.parts.planned_parts()).latest_plan, FittedPlan)
    assert len(arena.workspaces) <= MAX_PLANS + 1
    worker.release()
    assert not arena.workspaces and not arena.block(0)[0].size


def test_a_run_that_was_overtaken_says_so(backend: str, backend_context: Any) -> None:
    """It would go on with another run's values."""
    x = np.ones((2, 64), np.float32)
    with pf.Worker(chain(), backend, backend_context) as worker:
        steps = worker.schedule_iterable(x)
        next(steps)
        worker.schedule(2 * x)
        with pytest.raises(pf.InputError, match="another run"):
            next(steps)
        np.testing.assert_allclose(worker.peek_output().download_to_array(), expected(2 * x))


def test_one_tensor_for_two_inputs(backend: str, backend_context: Any) -> None:
    """A later tensor for one input is not read as the other input."""
    model = load([node("Sub", "a b", "d"), node("Mul", "d a", "y")], {"a": [4], "b": [4]})
    with pf.Worker(model, backend, backend_context) as worker:
        three, five = worker.empty_input("a"), worker.empty_input("a")
        three.upload(np.full(4, 3, np.float32))
        five.upload(np.full(4, 5, np.float32))
        for a, b, y in ((three, three, 0), (three, five, -6), (five, three, 10), (five, five, 0), (three, five, -6)):
            assert (worker.schedule(a, b).peek_output().download_to_array() == y).all()


def test_the_report_on_memory() -> None:
    with pf.Worker(chain()) as worker:
        assert worker.memory_use[0].workspace == 0  # no plan yet
        worker.schedule(np.ones((8, 64), np.float32))
        (use,) = worker.memory_use
    bytes_of_one = 8 * 64 * 4
    assert use.workspace == 3 * bytes_of_one and use.constants == use.packed == 0
    assert [size // bytes_of_one for _, size in use.live] == [1, 2, 3, 2]
