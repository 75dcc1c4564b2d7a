"""Programs with helper threads give the values of a single thread, even if helpers come late or never."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpu.kernels import mix, step, tally
from perframe.backends.cpu.program import program
from perframe.backends.cpu.program.program import CpuProgram, PythonStep
from perframe.backends.cpu.threads import helpers

COUNT = 96


@pytest.fixture(params=["futex", "event"])
def team(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[helpers.Team]:
    """More helpers than this machine may have cores, which sleep in the system or in Python; they always help."""
    if request.param == "event":
        monkeypatch.setenv("PERFRAME_HELPERS", "event")
    team = helpers.Team(3)
    monkeypatch.setattr(helpers, "_team", team)
    monkeypatch.setattr(helpers, "thread_count", lambda: 4)
    monkeypatch.setattr(program, "thread_count", lambda: 4)
    monkeypatch.setattr(program, "LONG", 0)
    yield team


class Chain:
    """Steps that read the output of the step before."""

    def __init__(self, seed: int, steps: int, grain: int | None) -> None:
        self.start = np.random.default_rng(seed).integers(-(2**40), 2**40, COUNT)
        self.buffers = [self.start.copy(), np.zeros(COUNT, np.int64)]
        addresses = [buffer.ctypes.data for buffer in self.buffers]
        self.program = CpuProgram.of(
            [
                step(mix, [addresses[i % 2], addresses[1 - i % 2], COUNT], COUNT, grain if i % 3 else None)
                for i in range(steps)
            ]
        )
        self.steps = steps

    def run(self) -> Any:
        self.buffers[0][:] = self.start
        self.program.run(0, self.steps)
        return self.buffers[self.steps % 2].copy()

    def expected(self) -> Any:
        values = self.start
        at = np.arange(COUNT)
        for _ in range(self.steps):
            values = values * 3 + values[(at * 7 + 1) % COUNT] - values[(at + COUNT // 2) % COUNT]
        return values


@pytest.mark.parametrize("grain", [1, 5, 64, COUNT, None])
def test_the_same_values_as_alone(team: helpers.Team, grain: int | None) -> None:
    chain = Chain(3, 20, grain)
    np.testing.assert_array_equal(chain.run(), chain.expected())


def test_thousands_of_runs_with_tiny_grains(team: helpers.Team) -> None:
    chain = Chain(5, 12, 1)
    expected = chain.expected()
    for _ in range(3000):
        assert (chain.run() == expected).all()


def test_helpers_that_sleep_in_between(team: helpers.Team) -> None:
    chain = Chain(6, 8, 1)
    expected = chain.expected()
    for _ in range(40):
        assert (chain.run() == expected).all()
        time.sleep(0.002)


@pytest.mark.parametrize(("items", "grain"), [(1, 1), (7, 1), (1000, 1), (1000, 13), (1000, 999), (1001, 500)])
def test_each_item_is_run_once(team: helpers.Team, items: int, grain: int) -> None:
    counts = np.zeros(items, np.int64)
    counting = CpuProgram.of([step(tally, [counts.ctypes.data, 20], items, grain) for _ in range(50)])
    for _ in range(20):
        counting.run(0, 50)
    assert (counts == 1000).all()


def test_no_items() -> None:
    empty = CpuProgram.of([step(tally, [0, 1], 0), step(tally, [0, 1], 0, grain=4)])
    empty.run(0, 2)


def test_programs_in_many_threads_at_once(team: helpers.Team) -> None:
    """The team helps one of them; the others run alone."""
    failures: list[str] = []

    def work(seed: int) -> None:
        chain = Chain(seed, 10, 1 + seed)
        expected = chain.expected()
        for turn in range(500):
            if not (chain.run() == expected).all():
                failures.append(f"thread {seed}, turn {turn}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_steps_in_python_between_native_ones(team: helpers.Team) -> None:
    counts, seen = np.zeros(64, np.int64), list[int]()
    steps = [step(tally, [counts.ctypes.data, 5], 64, 1) for _ in range(4)]
    look = PythonStep("look", [], lambda _: seen.append(int(counts.sum())))
    whole = CpuProgram.of([steps[0], look, steps[1], steps[2], look, look, steps[3]])
    whole.run(0, 7)
    assert seen == [64, 192, 192] and (counts == 4).all()
    for begin in range(7):
        whole.run(begin, begin + 1)
    assert (counts == 8).all()


def test_a_step_that_fails_gives_the_team_back(team: helpers.Team) -> None:
    def fail(_: Any) -> None:
        raise KeyError("lost")

    counts = np.zeros(64, np.int64)
    failing = CpuProgram.of([step(tally, [counts.ctypes.data, 5], 64, 1), PythonStep("bad", [], fail)])
    for _ in range(3):
        with pytest.raises(KeyError):
            failing.run(0, 2)
    assert (counts == 3).all() and team.join()
    team.leave()


def test_brief_programs_call_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(helpers, "team", lambda: called.append(1))
    monkeypatch.setattr(program, "thread_count", lambda: 2)
    counts = np.zeros(8, np.int64)
    brief = CpuProgram.of([step(tally, [counts.ctypes.data, 1], 8, 1)])
    assert not brief.is_brief  # not measured yet
    brief._note(1000)
    brief.run(0, 1)
    assert brief.is_brief and not called
    for _ in range(100):
        brief._note(10_000_000)
    assert not brief.is_brief
    brief.run(0, 1)
    assert called


def test_a_shorter_run_counts_at_once_and_a_longer_one_slowly() -> None:
    counts = np.zeros(8, np.int64)
    measured = CpuProgram.of([step(tally, [counts.ctypes.data, 1], 8, 1)])
    measured._note(1_000_000)
    measured._note(40_000)
    assert measured.nanoseconds == 40_000
    measured._note(60_000)
    assert measured.nanoseconds == 45_000
    measured._note(10_000_000)
    assert measured.nanoseconds == 45_000 + 45_000 // 4


def test_one_thread_has_no_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "_team", None)
    monkeypatch.setattr(helpers, "thread_count", lambda: 1)
    assert helpers.team() is None
    monkeypatch.setattr(program, "thread_count", lambda: 1)
    chain = Chain(1, 5, 1)
    np.testing.assert_array_equal(chain.run(), chain.expected())
    assert not chain.program._splits


def test_threads_are_capped_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    count = helpers.thread_count.__wrapped__
    monkeypatch.delenv("PERFRAME_THREADS", raising=False)
    cores = count()
    for text, want in (("1", 1), ("9999", cores), ("", cores)):
        monkeypatch.setenv("PERFRAME_THREADS", text)
        assert count() == want
    for text in ("0", "two", "-1"):
        monkeypatch.setenv("PERFRAME_THREADS", text)
        with pytest.raises(ValueError, match="PERFRAME_THREADS"):
            count()


@pytest.mark.quick(cases=0)
def test_idle_helpers_sleep(team: helpers.Team) -> None:
    chain = Chain(2, 10, 1)
    for _ in range(50):
        chain.run()
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(2)
    assert time.process_time() - before < 0.02  # 1 %


PRELUDE = """
import os, threading, time
import numpy as np
from cpu.test_program import Chain, program
from perframe.backends.cpu.threads import helpers, jobs
helpers.thread_count = lambda: 2
program.thread_count, program.LONG = (lambda: 2), 0
chain = Chain(1, 30, 1)
"""


def run_script(text: str) -> subprocess.CompletedProcess[str]:
    folder = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{PRELUDE}{text}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="the system cannot fork")
def test_a_forked_child_has_helpers_of_its_own() -> None:
    done = run_script(
        """
jobs.schedule(chain.run).wait()
busy = threading.Thread(target=lambda: [chain.run() for _ in range(2000)])
busy.start()
children = []
for _ in range(10):
    child = os.fork()
    if not child:
        mine = Chain(2, 30, 1)
        good = all((mine.run() == mine.expected()).all() for _ in range(50))
        job = jobs.schedule(mine.run)
        while not job.done:
            time.sleep(0.001)
        os._exit(0 if good and helpers._team is not None else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
busy.join()
assert codes == [0] * 10, codes
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_process_may_end_while_a_program_runs() -> None:
    done = run_script(
        """
for seed in range(4):
    jobs.schedule(lambda chain: [chain.run() for _ in range(3000)], Chain(seed, 30, 1))
time.sleep(0.01)
"""
    )
    assert (done.returncode, done.stderr) == (0, "")
