"""Jobs on worker threads, and kernels that are compiled once and kept."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from garbage import collect_garbage
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.threads import helpers, jobs
from perframe.errors import BackendError
from small import Gate


def poll(job: jobs.ThreadJob) -> None:
    """Until it has finished, without running it here."""
    for _ in range(20_000):
        if job.done:
            return
        time.sleep(0.001)
    raise AssertionError("the job never finished")


def test_schedule_returns_at_once() -> None:
    gate, done = Gate(), []
    job = jobs.schedule(lambda: (gate.wait(), done.append(threading.current_thread().name)))
    assert not job.done and not done
    gate.open()
    poll(job)
    assert done[0].startswith("perframe-job")


@pytest.fixture
def busy_threads() -> Iterator[Gate]:
    """All worker threads wait at a gate, so that none begins a job by itself."""
    gate, arrived = Gate(), threading.Semaphore(0)
    count = max(2, helpers.thread_count())
    waiting = [jobs.schedule(lambda: (arrived.release(), gate.wait())) for _ in range(count)]
    for _ in range(count):
        assert arrived.acquire(timeout=20)
    yield gate
    gate.open()
    for job in waiting:
        job.wait()


def test_the_waiting_thread_runs_a_job_that_has_not_begun(busy_threads: Gate) -> None:
    ran: list[str] = []
    job = jobs.schedule(lambda: ran.append(threading.current_thread().name))
    assert not job.done
    job.wait()
    assert ran == [threading.current_thread().name]
    job.wait()
    assert len(ran) == 1


def test_the_waiting_thread_also_runs_the_jobs_before_it(busy_threads: Gate) -> None:
    order: list[int] = []
    jobs.schedule(order.append, -1)  # no caller waits for this one
    last = jobs.schedule(order.append, 0)
    for index in range(1, 3000):
        last = jobs.schedule(order.append, index, depends_on=[last], after=[last])
    last.wait()
    assert order == list(range(3000))


def test_a_failure_reaches_the_thread_that_runs_a_later_job(busy_threads: Gate) -> None:
    ran: list[int] = []

    def fail() -> None:
        raise KeyError("lost")

    failed = jobs.schedule(fail)
    dependent = jobs.schedule(ran.append, 1, depends_on=[failed])
    later = jobs.schedule(ran.append, 2, after=[failed])
    with pytest.raises(KeyError, match="lost"):
        dependent.wait()
    later.wait()
    assert ran == [2]


def test_many_may_wait_for_one_job(busy_threads: Gate) -> None:
    ran: list[int] = []
    job = jobs.schedule(lambda: (time.sleep(0.01), ran.append(1)))
    threads = [threading.Thread(target=job.wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert ran == [1]


def test_a_job_that_waits_for_itself_is_told() -> None:
    own: list[jobs.ThreadJob] = []
    gate = Gate()
    own.append(jobs.schedule(lambda: (gate.wait(), own[0].wait())))
    gate.open()
    with pytest.raises(BackendError, match="itself"):
        own[0].wait()


def test_a_finished_job_keeps_nothing_alive() -> None:
    class Big:
        pass

    big = Big()
    seen = weakref.ref(big)
    job = jobs.schedule(lambda value: None, big)
    job.wait()
    del big
    collect_garbage()
    assert seen() is None


def test_jobs_wait_for_their_dependencies() -> None:
    gate, order = Gate(), []
    first = jobs.schedule(lambda: (gate.wait(), order.append(1)))
    second = jobs.schedule(order.append, 2, depends_on=[first])
    third = jobs.schedule(order.append, 3, depends_on=[first, second])
    gate.open()
    third.wait()
    assert order == [1, 2, 3]


def test_a_long_chain_does_not_use_up_the_threads() -> None:
    gate, order = Gate(), []
    last = jobs.schedule(gate.wait)
    for index in range(200):
        last = jobs.schedule(order.append, index, depends_on=[last])
    gate.open()
    last.wait()
    assert order == list(range(200))


def test_wait_raises_the_exception_of_the_job() -> None:
    def fail() -> None:
        raise KeyError("lost")

    job = jobs.schedule(fail)
    with pytest.raises(KeyError, match="lost"):
        job.wait()
    assert job.done
    jobs.schedule(lambda: None).wait()  # the thread goes on


def test_a_job_of_a_failed_one_fails_and_does_not_run() -> None:
    gate, ran = Gate(), []

    def fail() -> None:
        gate.wait()
        raise KeyError("lost")

    second = jobs.schedule(ran.append, 1, depends_on=[jobs.schedule(fail)])
    gate.open()
    with pytest.raises(KeyError):
        second.wait()
    assert not ran


def forget() -> None:
    """As a new process would."""
    jit.kernel.cache_clear()


def compiled(name: str) -> int:
    """How many kernels were compiled to get this one."""
    before = len(jit.compiled)
    assert int(jit.kernel(name)) != 0
    return len(jit.compiled) - before


@pytest.mark.quick(cases=0)
def test_a_kernel_is_compiled_once_and_kept(cache: Path) -> None:
    assert compiled("walk") == 1
    assert compiled("walk") == 0
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["walk"]
    forget()
    assert compiled("walk") == 0


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: b"", lambda data: data[:80] + b"\0" + data[81:]]
)
def test_a_damaged_object_file_is_compiled_again(cache: Path, damage: object) -> None:
    assert compiled("walk") == 1
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]
    forget()
    assert compiled("walk") == 1
    forget()
    assert compiled("walk") == 0


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "file"))
    forget()
    assert compiled("walk") == 1
    forget()
    assert compiled("walk") == 1


def test_no_half_written_files_are_left(cache: Path) -> None:
    compiled("walk")
    compiled("walk.build_help")
    assert sorted(path.suffix for path in cache.iterdir()) == [".o", ".o"]
