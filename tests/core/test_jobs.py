"""Jobs on worker threads, and kernels that are compiled once and kept."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.small import Gate
from perframe.backends.cpu import jit, jobs


def test_schedule_returns_at_once() -> None:
    gate, done = Gate(), []
    job = jobs.schedule(lambda: (gate.wait(), done.append(threading.current_thread().name)))
    assert not job.done and not done
    gate.open()
    job.wait()
    assert job.done and done[0].startswith("perframe-job")


def test_jobs_wait_for_what_they_depend_on() -> None:
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


def test_wait_raises_what_the_job_raised() -> None:
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that has linked nothing."""
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path))
    jit.kernel.cache_clear()
    return tmp_path / "kernels"


def forget() -> None:
    """As a new process would."""
    jit.kernel.cache_clear()


def compiled(name: str) -> int:
    """How many kernels were compiled to get this one."""
    before = len(jit.compiled)
    assert jit.kernel(name) != 0
    return len(jit.compiled) - before


def test_a_kernel_is_compiled_once_and_kept(cache: Path) -> None:
    assert compiled("join") == 1
    assert compiled("join") == 0
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["join"]
    forget()
    assert compiled("join") == 0


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: b"", lambda data: data[:80] + b"\0" + data[81:]]
)
def test_a_damaged_object_file_is_compiled_again(cache: Path, damage: object) -> None:
    assert compiled("join") == 1
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]
    forget()
    assert compiled("join") == 1
    forget()
    assert compiled("join") == 0


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "file"))
    forget()
    assert compiled("join") == 1
    forget()
    assert compiled("join") == 1


def test_no_half_written_files_are_left(cache: Path) -> None:
    compiled("join")
    compiled("move")
    assert sorted(path.suffix for path in cache.iterdir()) == [".o", ".o"]
