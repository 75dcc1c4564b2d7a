"""The times of a program's steps, which one thread notes while another takes them."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np

from perframe.backends.cpu.program.step_clock import StepClock
from perframe.backends.protocol import KEPT, TimedRun

RUNS = 20_000


def note_run(clock: StepClock) -> None:
    """A run of two steps in Python."""
    clock.begin(0, 2)
    clock.note(0, 1, native=False)
    clock.note(1, 2, native=False)
    clock.end()


def test_no_run_is_lost_while_another_thread_takes_them() -> None:
    clock, taken, interval = StepClock(2), list[TimedRun](), sys.getswitchinterval()
    until = time.monotonic() + 60

    def run() -> None:
        for index in range(RUNS):
            while index - len(taken) > KEPT // 2 and time.monotonic() < until:
                time.sleep(0)  # a clock keeps so many runs and forgets older ones
            note_run(clock)

    thread = threading.Thread(target=run)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        while thread.is_alive():
            taken += clock.take_runs()
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    taken += clock.take_runs()
    assert len(taken) == RUNS
    ends = np.array([run.stamps for run in taken])
    assert (np.diff(ends, axis=1) >= 0).all() and (np.diff(ends[:, 0]) >= 0).all(), "they are in order"


def test_the_last_runs_are_kept() -> None:
    clock = StepClock(2)
    for _ in range(3 * KEPT):
        note_run(clock)
    assert len(clock.take_runs()) == KEPT and clock.take_runs() == []
    assert all(0 <= seconds < 1 for seconds in clock.shortest())
