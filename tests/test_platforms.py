"""What other systems do with folders, processes, pipes and files, as far as stand-ins show it (docs/platforms.md)."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from media.films import film
from perframe import resources
from perframe.backends.gl.compile.variants import VARIANTS, Choices
from perframe.command_line.commands import doctor
from perframe.command_line.contest import Limits, Process
from perframe.command_line.sources import input_arrays
from perframe.conversion import processes
from perframe.media import open_sink
from perframe.media.source import open_feed
from perframe.processing import processing
from perframe.resources import cache_folder
from perframe.tensor import guarded
from processing.scripts import save_inverter

ACCESS_VIOLATION = 0xC0000005  # what Windows gives as the exit status of a process that crashed


# --- folders ---


@pytest.mark.parametrize("given", ["", "relative/cache"])
def test_a_cache_folder_that_is_none_counts_as_not_given(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFRAME_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == Path("/home/somebody/.cache/perframe")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert cache_folder() == Path("/var/cache/perframe")


def test_the_cache_folder_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFRAME_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr(sys, "platform", "win32")
    for given, folder in (("", "/home/somebody"), ("/local", "/local")):
        monkeypatch.setenv("LOCALAPPDATA", given)
        assert cache_folder() == Path(folder) / "perframe" / "cache"


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_a_user_without_a_folder_has_a_cache(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PERFRAME_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    resources._folder_of_this_process.cache_clear()
    (made,) = (cache_folder(), *tmp_path.iterdir())[1:]  # a name that nobody can guess, and make before
    assert cache_folder().is_relative_to(made) and made.stat().st_mode & 0o777 == 0o700
    resources._folder_of_this_process.cache_clear()


def test_a_folder_of_an_unknown_user_is_an_error_with_its_name() -> None:
    with pytest.raises(pf.InputError, match=r"~no-such-user/a\.png' does not exist"):
        open_feed("~no-such-user/a.png")
    with pytest.raises(pf.InputError, match="there is no folder '~no-such-user'"):
        open_sink("~no-such-user/a.png")


def test_a_tuned_variant_that_cannot_be_kept_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("no folder can be made below a file, as none can on a disk that is read-only")
    monkeypatch.setenv("PERFRAME_CACHE", str(tmp_path / "cache"))
    choices = Choices(("vendor", "renderer", "1.0"))
    kernel, variants = next((kernel, given) for kernel, given in VARIANTS.items() if len(given) > 1)
    with pytest.raises(pf.BackendError, match=r"cannot be written: .* PERFRAME_CACHE names another folder"):
        choices.keep({kernel: variants[1]})
    assert choices[kernel] == variants[1]


def test_names_that_are_one_file_elsewhere_become_numbers(tmp_path: Path) -> None:
    source = film(tmp_path / "in", 2)
    os.rename(source / "000000.png", source / "a.png")
    os.rename(source / "000001.png", source / "A.png")
    pf.process(source, tmp_path / "out", save_inverter(tmp_path / "m.onnx"))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["000000.png", "000001.png"]


def test_a_suffix_in_capitals_names_the_same_kind(tmp_path: Path) -> None:
    model = pf.load(save_inverter(tmp_path / "m.onnx"))
    (wanted,) = model.inputs
    array = np.ones((1, 3, 4, 4), np.float32)
    with open(tmp_path / "X.NPY", "wb") as file:
        np.save(file, array)
    given = input_arrays(model.inputs, [f"{wanted.name}={tmp_path / 'X.NPY'}"], {}, 0)
    assert (given[wanted.name] == array).all()


# --- processes and pipes ---


def test_a_crash_on_windows_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.status_text(ACCESS_VIOLATION) == "exit status 0xC0000005"
    assert processes.status_text(3) == "exit status 3" and processes.status_text(-9) == "signal SIGKILL"
    crashed = SimpleNamespace(returncode=ACCESS_VIOLATION, stdout="", stderr="a line that says nothing")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: crashed)
    assert doctor._probe("describe_headless") == "crashed with exit status 0xC0000005"


def test_windows_ends_the_children_of_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """os.name itself stays: paths are made by it."""
    commands: list[tuple[str, ...]] = []
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    def taskkill(command: tuple[str, ...], **_: Any) -> None:
        commands.append(command)
        child.kill()

    monkeypatch.setattr(processes, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(processes.subprocess, "run", taskkill)
    processes._end(child)  # type: ignore[arg-type]
    assert commands == [("taskkill", "/pid", str(child.pid), "/t", "/f")] and child.poll() is not None


def test_a_side_that_ended_is_told_by_windows_broken_pipe() -> None:
    process = Process("cpu", Limits(), command=(sys.executable, "-c", "raise SystemExit('it never began')"))
    process._child.wait()
    pipe = process._child.stdin

    class InvalidArgument:
        """Windows' pipe without a reader."""

        def write(self, text: str) -> int:
            raise OSError(22, "Invalid argument")

        flush = write

    process._child.stdin = InvalidArgument()  # type: ignore[assignment]
    with pytest.raises(pf.BackendError, match="cpu ended with exit status 1 when asked to memory: it never began"):
        process.ask("memory")
    process._child.stdin = pipe
    process.close()


# --- files that Windows keeps ---


def test_a_lock_that_another_run_asks_for_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows deletes no file that another process has open."""
    unlink = Path.unlink

    def keeps_locks(path: Path, missing_ok: bool = False) -> None:
        if path.name == processing.LOCK:
            raise PermissionError(13, "The process cannot access the file", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", keeps_locks)
    source, out = film(tmp_path / "in", 2), tmp_path / "out"
    assert pf.process(source, out, save_inverter(tmp_path / "m.onnx")).pictures == 2
    assert len(list(out.iterdir())) == 2


def test_guarded_memory_says_what_windows_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_GUARD", "behind")
    monkeypatch.setattr(guarded, "mmap", SimpleNamespace(PAGESIZE=mmap.PAGESIZE))
    guarded.guard.cache_clear()
    try:
        with pytest.raises(pf.InputError, match="which Windows does not have"):
            guarded.guard()
    finally:
        guarded.guard.cache_clear()
