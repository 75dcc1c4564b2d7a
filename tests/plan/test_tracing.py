"""Jobs that trace: one at a time, and beside the frames."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from perframe.plan import tracing
from perframe.plan.tracing import Tracing
from perframe.tensor import frames
from perframe.tensor.background import TURN

Jobs = list[Callable[[], None]]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """The jobs that were begun, which do not run by themselves."""
    monkeypatch.setattr(tracing, "_waiting", tracing._Waiting())
    return []


def test_one_job_runs_all_traces_in_turn(jobs: Jobs) -> None:
    ran = list[int]()

    def first() -> None:
        ran.append(1)
        tracing.trace_later(lambda: ran.append(3), jobs.append)  # while the job is under way

    tracing.trace_later(first, jobs.append)
    tracing.trace_later(lambda: ran.append(2), jobs.append)
    (job,) = jobs
    job()
    assert ran == [1, 2, 3] and len(jobs) == 1


def test_the_next_trace_begins_another_job(jobs: Jobs) -> None:
    for count in (1, 2):
        ran = list[int]()
        tracing.trace_later(lambda: ran.append(0), jobs.append)  # noqa: B023
        assert len(jobs) == count
        jobs[-1]()
        assert ran == [0]


def test_a_trace_that_is_interrupted_stops_no_later_one(jobs: Jobs) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    tracing.trace_later(interrupted, jobs.append)
    with pytest.raises(KeyboardInterrupt):
        jobs[0]()
    ran = list[int]()
    tracing.trace_later(lambda: ran.append(0), jobs.append)
    jobs[1]()
    assert ran == [0]


def test_it_pauses_while_a_frame_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = list[float]()
    gate = threading.Event()
    monkeypatch.setattr(gate, "wait", lambda seconds: waited.append(seconds))
    monkeypatch.setattr(frames, "between", gate)
    progress = Tracing()
    progress.at("a")
    assert progress.layer == "a" and len(waited) == 1
    progress.at("b")  # within the same turn, unless the machine is busy
    time.sleep(2 * TURN)
    before = len(waited)
    progress.at("c")
    assert len(waited) == before + 1


@pytest.mark.parametrize("ends", ["found", "failed", "late"])
def test_a_wait_ends_with_the_trace_or_its_time(ends: str, jobs: Jobs) -> None:
    own, found = Tracing(), list[int]()

    def trace() -> None:
        if ends == "failed":
            raise ValueError
        found.append(1)

    assert not list(own.wait(lambda: None, 10))  # none is under way
    own.begin(trace, jobs.append)
    steps = 0
    for _ in own.wait(lambda: found or None, 0.05 if ends == "late" else 10):
        steps += 1
        if steps == 3 and ends != "late":
            with suppress(ValueError):
                jobs.pop()()
    assert steps > 3 if ends == "late" else steps == 3
