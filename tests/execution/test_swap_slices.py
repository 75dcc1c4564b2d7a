"""The slices of a swap, beside the budget of a run."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import perframe as pf
from execution.swaps import X
from perframe.execution import swapping
from perframe.execution.parts import Parts
from perframe.execution.swapping import Swaps
from perframe.plan.budget import Budget


def test_slices_are_part_of_a_budget(worker: pf.Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The milliseconds of a slice are not there for the layers of that frame."""
    given = list[float]()
    monkeypatch.setattr(Swaps, "is_idle", property(lambda self: False))
    monkeypatch.setattr(Swaps, "advance", lambda self, most=0.0: 0.25 * most)
    spend = Parts.spend

    def noted(self: Parts, values: Any, budget: Any) -> Any:
        for step in spend(self, values, budget):
            given.append(budget.seconds)
            yield step

    monkeypatch.setattr(Parts, "spend", noted)
    for _ in worker.schedule_iterable(X, budget_ms=0.001):
        pass
    assert given and all(seconds == pytest.approx(0.875e-6) for seconds in given)


@pytest.mark.parametrize(("seconds", "taken"), [(0.0, 1), (10.0, 1), (12.5, 2), (100.0, 7)])
def test_a_slice_ends_before_a_step_that_may_exceed_it(
    seconds: float, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(swapping.time, "perf_counter", lambda: clock[0])

    def steps() -> Iterator[bool]:
        for duration in (6, 1, 1, 1, 1, 1, 1):
            clock[0] += duration
            yield False

    swaps, begun = Swaps(threading.RLock()), steps()
    swaps._steps, swaps._seconds = [begun], seconds
    swaps.advance()
    assert 7 - len(list(begun)) == taken


def test_a_run_rests_for_one_frame_after_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large texture takes longer than its slice: it and a piece of the run would make the frame late."""
    clock = [0.0]
    monkeypatch.setattr(swapping.time, "perf_counter", lambda: clock[0])

    def steps() -> Iterator[bool]:
        for duration in (0.4, 3.0, 3.0, 0.4):
            clock[0] += duration
            yield False

    def goes_on(seconds: float) -> list[bool]:
        swaps, budget = Swaps(threading.RLock()), Budget(seconds)
        swaps._steps, swaps._seconds, swaps._rested_at = [steps()], 0.5, -math.inf
        found = list[bool]()
        while not swaps.is_idle:
            clock[0] += 100  # the slice is no longer at rest
            found.append(swaps.advance_within(budget, seconds))
        return found

    assert goes_on(4.0) == [True, False, True, True, True]
    assert all(goes_on(math.inf))  # a run without a limit ends in its frame
