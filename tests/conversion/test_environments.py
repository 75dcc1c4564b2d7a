"""Environments are made once and whole; children end in time, and with the program that waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from conversion.handmade import zipped
from perframe.conversion import environments
from perframe.conversion.environments import environments_folder, made_environment, python_for
from perframe.conversion.processes import ChildError, run_child
from perframe.errors import ConversionError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A wheel of a tiny package, which needs no network, and a cache folder that is empty."""
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    about = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    kind = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    folder = "tiny-1.0.dist-info"
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    entries = {"tiny.py": b"size = 3\n", f"{folder}/METADATA": about, f"{folder}/WHEEL": kind, f"{folder}/RECORD": b""}
    wheel.write_bytes(zipped(entries))
    return str(wheel)


@pytest.mark.slow
def test_an_environment_is_made_once(package: str, caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[str, float]] = []
    python = made_environment("tiny", [package], lambda what, done: told.append((what, done)))
    found = subprocess.run([python, "-c", "import tiny; print(tiny.size)"], capture_output=True, text=True, check=True)
    assert found.stdout == "3\n"
    assert told[0] == ("making an environment for tiny, once", 0.0) and all(0 <= done < 1 for _, done in told)
    said = [record.getMessage() for record in caplog.records if "installing" in record.getMessage()]
    assert len(said) == 1 and package in said[0] and str(environments_folder()) in said[0] and "--python" in said[0]
    before = python.stat()
    assert made_environment("tiny", [package], lambda *_: pytest.fail("it is made again")) == python
    assert python.stat() == before
    assert [path.name for path in environments_folder().iterdir()] == [python.parents[1].name]
    assert made_environment("tiny", [package, package]) != python  # other packages, another environment


def test_one_tensorflow_is_installed() -> None:
    """A message that lists what will be installed lists nothing that belongs to other systems."""
    packages = environments.PACKAGES[environments.TENSORFLOW]
    assert sum(package.startswith("tensorflow") for package in packages) == 1
    assert not any(";" in package for package in packages)


@pytest.mark.slow
def test_an_interrupted_environment_is_made_anew(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(environments, "run_child", interrupt)
        made_environment("tiny", [package])
    assert not [*environments_folder().iterdir()]
    stale, fresh = (environments_folder() / f".tiny-3.11-0-{name}" for name in ("old", "new"))
    for left in (stale, fresh):  # what a process that was killed leaves
        left.mkdir()
    os.utime(stale, (0, 0))
    assert made_environment("tiny", [package]).exists()
    assert not stale.exists() and fresh.exists()


@pytest.mark.slow
def test_a_package_that_cannot_be_had(package: str) -> None:
    with pytest.raises(ConversionError) as error:
        made_environment("tiny", ["no-such-package==1.0"])
    text = str(error.value)
    assert "an environment for tiny cannot be made" in text and "No matching distribution" in text
    assert "python -m pip install 'no-such-package==1.0'" in text
    assert not [*environments_folder().iterdir()]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConversionError, match="PERFRAME_CACHE names another folder"):
        made_environment("tiny", [])


def test_the_running_python_is_taken_if_it_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environments.MODULES, "tiny", ("numpy", "onnx"))  # type: ignore[index]
    assert python_for("tiny") == Path(sys.executable)
    assert python_for("tiny", python=sys.executable) == Path(sys.executable)
    with pytest.raises(ConversionError, match="there is no such program"):
        python_for("tiny", python="/no/python")


# --- children ---


def child(code: str, seconds: float = 30, **options: Any) -> list[str]:
    return run_child([sys.executable, "-u", "-c", code], seconds, os.environ, **options)


def test_lines_are_told_or_kept() -> None:
    told: list[str] = []

    def on_line(line: str) -> bool:
        told.append(line)
        return line.startswith("a")

    assert child("import sys; print('a1\\nb2'); print('c3', file=sys.stderr)", on_line=on_line) == ["b2", "c3"]
    assert told == ["a1", "b2", "c3"]


def test_a_failure_shows_the_last_lines() -> None:
    with pytest.raises(ChildError) as error:
        child("for at in range(50): print('line', at)\nraise SystemExit(3)")
    text = str(error.value)
    assert "exit status 3" in text and "| line 49" in text and "line 29\n" not in text and "line 30" in text
    with pytest.raises(ChildError, match="signal SIGKILL"):
        child("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(ChildError, match="cannot be run"):
        run_child(["/no/such/program"], 5, {})


@pytest.mark.quick(cases=0)
def test_a_child_without_end() -> None:
    begin = time.monotonic()
    with pytest.raises(ChildError, match=r"longer than 0\.5 s(.|\n)*here"):
        child("import time; print('here'); time.sleep(60)", seconds=0.5)
    assert time.monotonic() - begin < 10


@pytest.mark.quick(cases=0)
def test_endless_output_is_not_kept() -> None:
    with pytest.raises(ChildError, match="longer than 1 s") as error:
        child("while True: print('x' * 100_000)", seconds=1)
    assert len(str(error.value)) < 100_000


@pytest.mark.skipif(os.name != "posix", reason="processes of Windows have no groups")
def test_an_interrupt_ends_the_child_and_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "number"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid)); print('ready'); time.sleep(60)"
    )
    begin = time.monotonic()

    def on_line(line: str) -> bool:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return True

    with pytest.raises(KeyboardInterrupt):
        child(code, on_line=on_line)
    assert time.monotonic() - begin < 20
    number = int(mark.read_text())
    for _ in range(100):
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text(encoding="utf-8").split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child's child still runs")
