"""Runs like the one before begin in a shorter way, and nothing else about them differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import ClosedError, InputError
from perframe.execution.inputs import Inputs

F = pf.functional


def model(factor: float = 2) -> pf.Model:
    graph = pf.FunctionalGraph(f"times{factor}")
    x, z = graph.add_input("float32", ("n", 3), "x"), graph.add_input("float32", (3,), "z")
    return graph.compile(y=x * factor + z, w=F.exp(x))


def pair(seed: int, rows: int = 5) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, 3)).astype(np.float32), random.normal(size=3).astype(np.float32)


def check(worker: pf.Worker, x: Any, z: Any, factor: float = 2) -> None:
    np.testing.assert_allclose(worker.peek_output("y").numpy(), x * factor + z, 1e-5, 1e-6)
    np.testing.assert_allclose(worker.peek_output(1).numpy(), np.exp(x), 1e-5)


@pytest.fixture
def worker(backend: str, backend_context: Any) -> Iterator[pf.Worker]:
    """A worker that has run often enough to repeat the last run."""
    with pf.Worker(model(), backend=backend, ctx=backend_context) as made:
        until_repeated(made, lambda: check(made.schedule(*pair(2)), *pair(2)))
        yield made


def until_repeated(worker: pf.Worker, run: Callable[[], Any]) -> None:
    """Run until runs repeat: a job makes templates for other sizes first."""
    for _ in range(400):
        run()
        if worker._own._repeats.may_run:
            return
        time.sleep(0.005)
    raise AssertionError("no run repeats")


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each run that decides everything anew."""
    runs: list[int] = []
    gather = Inputs.gather

    def watched(self: Inputs, *given: Any) -> Any:
        runs.append(len(runs))
        return gather(self, *given)

    monkeypatch.setattr(Inputs, "gather", watched)
    return runs


def test_runs_like_the_last_one_decide_nothing(worker: pf.Worker, decided: list[int]) -> None:
    for seed in range(3, 6):
        x, z = pair(seed)
        check(worker.schedule(x, z), x, z)
        worker.schedule({"z": z, "x": -x})
        x[:] = 7  # the run has its own
        check(worker, -pair(seed)[0], z)
    assert not decided


def test_tensors_repeat_too(worker: pf.Worker, decided: list[int]) -> None:
    for seed in range(3):
        x, z = pair(seed)
        check(worker.schedule(pf.Tensor(x), pf.Tensor(z)), x, z)
    assert len(decided) == 1, "tensors instead of arrays"
    x, z = pair(9)
    check(worker.schedule(x, pf.Tensor(z)), x, z)
    assert len(decided) == 2, "an array instead of a tensor"


def test_an_output_may_be_the_next_input(worker: pf.Worker) -> None:
    x, z = pair(2)  # the last inputs
    y = x * 2 + z
    for _ in range(4):
        check(worker.schedule(worker.peek_output("y"), z), y, z)
        y = y * 2 + z


@pytest.mark.parametrize("rows", [1, 7, 0])
def test_other_sizes_come_between(worker: pf.Worker, rows: int) -> None:
    for seed in range(6):
        given = pair(seed, rows if seed % 3 == 2 else 5)
        check(worker.schedule(*given), *given)


@pytest.mark.parametrize(
    ("given", "named", "text"),
    [
        ((np.zeros((5, 4), np.float32), np.zeros(3, np.float32)), {}, "has the shape"),
        ((np.zeros((5, 3), np.float32), np.zeros(3)), {}, "float64"),
        ((np.zeros((5, 3), np.float32),), {}, "still needs its input"),
        ((np.zeros((5, 3), np.float32),) * 3, {}, "takes 2 inputs, and got 3"),
        (({"x": np.zeros((5, 3), np.float32), "v": np.zeros(3, np.float32)},), {}, "no input 'v'"),
        (({"x": np.zeros((5, 3), np.float32)},), {}, "still needs its input"),
        (pair(1), {"z": np.zeros(3, np.float32)}, "given twice"),
    ],
)
def test_wrong_inputs_are_still_refused(worker: pf.Worker, given: Any, named: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        worker.schedule(*given, **named)
    check(worker, *pair(2))
    check(worker.schedule(*pair(4)), *pair(4))


def test_kept_inputs_count(worker: pf.Worker) -> None:
    x, z = pair(5)
    worker.set_input("z", z)
    check(worker.schedule(x), x, z)
    check(worker.schedule(x=x), x, z)
    check(worker.schedule(*pair(6)), *pair(6))


def test_outputs_may_be_bound(worker: pf.Worker) -> None:
    kept = pf.Tensor.empty((5, 3))
    worker.bind_output("y", kept)
    for seed in range(3, 6):
        x, z = pair(seed)
        worker.schedule(x, z)
        np.testing.assert_allclose(kept.numpy(), x * 2 + z, 1e-5, 1e-6)
    worker.bind_output("y", None)
    check(worker.schedule(*pair(7)), *pair(7))
    np.testing.assert_allclose(kept.numpy(), pair(5)[0] * 2 + pair(5)[1], 1e-5, 1e-6)


def test_a_profile_sees_each_run(worker: pf.Worker) -> None:
    with pf.profile() as profile:
        for seed in range(4):
            profile.frame()
            worker.schedule(*pair(seed))
            check(worker, *pair(seed))
    assert profile.layers and {layer.runs for layer in profile.layers} == {4}
    check(worker.schedule(*pair(5)), *pair(5))


def test_another_model_takes_over(worker: pf.Worker) -> None:
    worker.swap(model(3)).result(wait=True)
    for seed in range(4):
        check(worker.schedule(*pair(seed)), *pair(seed), factor=3)


def test_runs_in_steps_come_between(worker: pf.Worker) -> None:
    for _ in worker.schedule_iterable(*pair(8)):
        pass
    check(worker, *pair(8))
    steps = worker.schedule_iterable(*pair(9))
    next(steps)
    check(worker.schedule(*pair(4)), *pair(4))
    with pytest.raises(InputError, match="another run began"):
        list(steps)


def test_a_released_worker_says_so(worker: pf.Worker) -> None:
    worker.release()
    with pytest.raises(ClosedError):
        worker.schedule(*pair(1))


def test_evicted_plans_are_made_again(worker: pf.Worker) -> None:
    (part,) = worker.parts.planned_parts()
    part.evict_all()
    for seed in range(3):
        check(worker.schedule(*pair(seed)), *pair(seed))


def test_a_run_that_only_began_changes_the_sizes(worker: pf.Worker) -> None:
    steps = worker.schedule_iterable(*pair(8, 11))  # no plan is made for it yet
    check(worker.schedule(*pair(9, 11)), *pair(9, 11))
    check(worker.schedule(*pair(9, 5)), *pair(9, 5))
    list(steps)
    check(worker, *pair(8, 11))


def test_a_run_that_could_not_be_planned_changes_the_sizes(worker: pf.Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = worker.parts.planned_parts()
    with monkeypatch.context() as patched:
        patched.setattr(type(part), "_made", lambda *_: 1 / 0)
        patched.setattr(type(part), "_fitted", lambda *_: None)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                worker.schedule(*pair(1, 12))
    check(worker.schedule(*pair(1, 12)), *pair(1, 12))
    check(worker.schedule(*pair(2)), *pair(2))


@pytest.fixture
def remembering(backend: str, backend_context: Any) -> Iterator[pf.Worker]:
    """A worker with a state that has run often enough to repeat the last run: h = h / 2 + x, y = h + 1."""
    graph = pf.FunctionalGraph("memory")
    x, h = graph.add_input("float32", ("n", 3), "x"), graph.add_input("float32", ("n", 3), "h")
    sums = h * 0.5 + x
    made = graph.compile(y=sums + 1, sums=sums)
    with pf.Worker(made, backend=backend, ctx=backend_context, carry={"sums": "h"}) as worker:
        until_repeated(worker, lambda: worker.schedule(pair(1)[0]).peek_output().numpy())
        worker.reset(np.zeros((5, 3), np.float32))
        yield worker


def summed(worker: pf.Worker, begin: Any, seeds: range, rows: int = 5) -> Any:
    """Run, compare each result, and return the state."""
    h = begin
    for seed in seeds:
        x, _ = pair(seed, rows)
        worker.schedule(x)
        h = h * 0.5 + x
        np.testing.assert_allclose(worker.peek_output("y").numpy(), h + 1, 1e-5, 1e-5)
    return h


def test_states_repeat(remembering: pf.Worker, decided: list[int]) -> None:
    h = summed(remembering, np.zeros((5, 3)), range(6))
    np.testing.assert_allclose(remembering.state("h").numpy(), h, 1e-5, 1e-5)
    given = pair(7)[0]
    remembering.reset(given)
    summed(remembering, given, range(3))
    assert not decided


def test_a_state_may_begin_again_in_another_size(remembering: pf.Worker) -> None:
    h = summed(remembering, np.zeros((5, 3)), range(3))
    remembering.reset(pair(7, 4)[0])
    with pytest.raises(InputError, match=r"reset\(\)"):
        remembering.schedule(pair(1)[0])
    summed(remembering, pair(7, 4)[0], range(4), rows=4)
    remembering.reset()
    summed(remembering, 0 * h, range(4))


def test_a_state_may_decide_the_size_alone(backend: str, backend_context: Any) -> None:
    graph = pf.FunctionalGraph("memory")
    x, h = graph.add_input("float32", (3,), "x"), graph.add_input("float32", ("m", 3), "h")
    made = graph.compile(sums=h * 0.5 + x)
    with pf.Worker(made, backend=backend, ctx=backend_context, carry={"sums": "h"}) as worker:
        for rows in (2, 6, 1, 2):
            h = pair(rows, rows)[0]
            worker.reset(h)
            for seed in range(5):
                x = pair(seed)[1]
                h = h * 0.5 + x
                np.testing.assert_allclose(worker.schedule(x).peek_output().numpy(), h, 1e-5, 1e-5)
            until_repeated(worker, lambda: worker.schedule(pair(1)[1]).peek_output().numpy())


def test_states_and_bound_outputs(remembering: pf.Worker, decided: list[int]) -> None:
    kept = pf.Tensor.empty((5, 3))
    remembering.bind_output("y", kept)
    h = np.zeros((5, 3))
    for seed in range(5):
        x, _ = pair(seed)
        remembering.schedule(x)
        h = h * 0.5 + x
        np.testing.assert_allclose(kept.numpy(), h + 1, 1e-5, 1e-5)
    assert not decided
    with pytest.raises(InputError, match="bound to the tensor"):
        remembering.schedule(kept)
