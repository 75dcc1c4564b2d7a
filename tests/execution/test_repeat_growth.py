"""Runs of states that grow begin in the shorter way too: the plan of the run before takes the new sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import perframe as pf
from execution.recurrent import random
from execution.test_repeat import decided, until_repeated  # noqa: F401  # a fixture
from perframe.errors import ClosedError, InputError

F = pf.functional
WIDTH = 3
ROOM = 64


def attention() -> pf.Model:
    """Attention of x over all rows so far, with a weight for each of them."""
    graph = pf.FunctionalGraph("cache")
    x = graph.add_input("float32", (1, "new", WIDTH), "x")
    weights = graph.add_input("float32", (1, "all"), "weights")
    past = graph.add_input("float32", (1, "past", WIDTH), "past")
    rows = F.concat([past, F.tanh(x)], 1)
    scores = F.softmax(F.matmul(x, F.transpose(rows, 1, 2)) + F.unsqueeze(weights, 1), -1)
    return graph.compile(y=F.matmul(scores, rows), present=rows)


def expected(x: Any, weights: Any, past: Any) -> tuple[Any, Any]:
    rows = np.concatenate([past, np.tanh(x)], 1)
    scores = np.exp(x @ rows.swapaxes(1, 2) + weights[:, None])
    return scores / scores.sum(-1, keepdims=True) @ rows, rows


class Writing:
    """A worker, and what its state should be."""

    def __init__(self, worker: pf.Worker) -> None:
        self.worker = worker
        self.past = np.zeros((1, 0, WIDTH), np.float32)

    def begin(self, rows: int = 0) -> None:
        self.past = random(1, rows, WIDTH)
        self.worker.reset(self.past if rows else None)

    def inputs(self, new: int = 1) -> tuple[Any, Any]:
        return random(1, new, WIDTH), random(1, self.past.shape[1] + new)

    def add(self, new: int = 1) -> pf.Tensor:
        """Append rows, and compare."""
        x, weights = self.inputs(new)
        y, self.past = expected(x, weights, self.past)
        made = self.worker.schedule(x, weights).peek_output("y")
        np.testing.assert_allclose(made.numpy(), y, 1e-4, 1e-5)
        return made

    def check(self) -> None:
        np.testing.assert_allclose(self.worker.state("past").numpy(), self.past, 1e-5, 1e-6)
        np.testing.assert_allclose(self.worker.peek_output("present").numpy(), self.past, 1e-5, 1e-6)


@pytest.fixture
def writing(backend: str, backend_context: Any) -> Iterator[Writing]:
    """One that has run often enough to repeat its runs, with three rows."""
    carry = {"present": "past"}
    with pf.Worker(attention(), backend, backend_context, carry=carry, carry_capacity=ROOM) as worker:
        made = Writing(worker)

        def run() -> None:
            if made.past.shape[1] > 30:
                made.begin()
            made.add()

        until_repeated(worker, run)
        made.begin(3)
        made.add()
        yield made


def test_each_run_appends_without_deciding(writing: Writing, backend: str, decided: list[int]) -> None:  # noqa: F811
    writing.begin(40)
    for _ in range(3):
        writing.add()
    decided.clear()
    for _ in range(12):
        writing.add()
    writing.check()
    assert len(decided) <= (0 if backend == "cpu" else 6)  # on a GPU, each fourth number of rows has its own template


@pytest.mark.quick(cases=0)
def test_few_sizes_are_planned(writing: Writing) -> None:
    """Kernels that ask for multiples of four, and shares of small sizes, need a few templates, and no plan each."""
    part = writing.worker._own.parts.only_part
    assert part is not None
    for _ in range(2):
        writing.begin()
        while writing.past.shape[1] < ROOM:
            writing.add()
    writing.check()
    assert part._made_plans <= 10


def test_other_counts_of_rows_come_between(writing: Writing) -> None:
    for new in (1, 5, 1, 1, 0, 1, 2, 1, 1):
        writing.add(new)
    writing.check()


def test_it_begins_again(writing: Writing) -> None:
    for rows in (0, 7, 1, 0):
        writing.begin(rows)
        for _ in range(4):
            writing.add()
        writing.check()


@pytest.mark.quick(cases=0)
def test_more_rows_than_allowed_leave_the_state(writing: Writing) -> None:
    while writing.past.shape[1] < ROOM:
        writing.add()
    with pytest.raises(InputError, match="carry_capacity allows"):
        writing.worker.schedule(*writing.inputs())
    np.testing.assert_allclose(writing.worker.state("past").numpy(), writing.past, 1e-5, 1e-6)
    writing.begin(2)
    writing.add()
    writing.check()


@pytest.mark.parametrize("wrong", ["weights", "width", "dtype"])
def test_wrong_inputs_are_still_refused(writing: Writing, wrong: str) -> None:
    x, weights = writing.inputs()
    given = {
        "weights": (x, random(1, writing.past.shape[1] + 3)),
        "width": (random(1, 1, WIDTH + 1), weights),
        "dtype": (x.astype(np.float64), weights),
    }[wrong]
    with pytest.raises((InputError, pf.errors.InferenceError)):
        writing.worker.schedule(*given)
    for _ in range(3):
        writing.add()
    writing.check()


def test_an_output_of_another_size_does_not_pass_for_the_new_one(writing: Writing) -> None:
    before = writing.add(2)
    values = before.numpy().copy()
    for _ in range(4):
        writing.add()
    with suppress(ClosedError):  # the storage has other values, and says so
        np.testing.assert_array_equal(before.numpy(), values)


def test_runs_in_steps_come_between(writing: Writing) -> None:
    for _ in range(3):
        writing.add()
        x, weights = writing.inputs()
        y, writing.past = expected(x, weights, writing.past)
        for _layer in writing.worker.schedule_iterable(x, weights):
            pass
        np.testing.assert_allclose(writing.worker.peek_output("y").numpy(), y, 1e-4, 1e-5)
        writing.add()
    writing.check()


def test_runs_that_are_not_waited_for(writing: Writing) -> None:
    results, past = [], writing.past
    for _ in range(6):
        x, weights = random(1, 1, WIDTH), random(1, past.shape[1] + 1)
        y, past = expected(x, weights, past)
        results.append((writing.worker.schedule(x, weights).peek_output("y").readback_request(), y))
    for request, y in results:
        np.testing.assert_allclose(request.result(wait=True), y, 1e-4, 1e-5)
    writing.past = past
    writing.check()


def test_an_output_may_be_the_next_input(writing: Writing) -> None:
    writing.begin(40)
    made = writing.add()
    for _ in range(6):
        x, weights = made.numpy().copy(), random(1, writing.past.shape[1] + 1)
        y, writing.past = expected(x, weights, writing.past)
        made = writing.worker.schedule(made, pf.Tensor(weights)).peek_output("y")
        np.testing.assert_allclose(made.numpy(), y, 1e-4, 1e-5)
    writing.check()
