"""Runs like the one before begin in a shorter way, and nothing else about them differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import ClosedError, InputError
from perframe.execution.inputs import Inputs

F = pf.functional
Ran = Callable[..., int]


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
        for seed in range(3):
            check(made.schedule(*pair(seed)), *pair(seed))
        yield made


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
