"""Kernels on disk: whose they are, which file is which, and how long they are kept."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from perframe.backends import kernel_files
from perframe.backends.cpu.compile import jit

KERNELS = ("pad", "walk")


@pytest.fixture
def folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for kernels, which are compiled in this process."""
    monkeypatch.setenv("PERFRAME_COMPILERS", "0")
    return cache


def compiled(name: str) -> int:
    """How many kernels a process compiles that needs this one."""
    jit.kernel.cache_clear()
    before = len(jit.compiled)
    assert int(jit.kernel(name))
    return len(jit.compiled) - before


@pytest.mark.slow
def test_a_file_in_anothers_place_is_none(folder: Path) -> None:
    assert [compiled(name) for name in KERNELS] == [1, 1]
    assert [compiled(name) for name in KERNELS] == [0, 0]
    first, second = sorted(folder.iterdir())
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    assert [compiled(name) for name in KERNELS] == [1, 1]
    assert [compiled(name) for name in KERNELS] == [0, 0]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX'")
@pytest.mark.parametrize("shared", ["kernels", "cache"])
def test_a_folder_that_others_may_write_to_is_refused(folder: Path, shared: str, caplog: Any) -> None:
    assert compiled("pad") == 1
    assert folder.stat().st_mode & 0o077 == 0
    where = folder if shared == "kernels" else folder.parent
    where.chmod(0o777)
    assert compiled("pad") == 1
    assert f"others may write to {where}" in caplog.text and "chmod go-w" in caplog.text
    folder.parent.chmod(0o1777)  # as /tmp is: only owners dispose of their files there
    folder.chmod(0o700)
    assert compiled("pad") == 0


@pytest.mark.slow
def test_variables_of_numba_make_no_kernels_for_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_OPT", "0")
    assert compiled("pad") == 1
    assert not folder.exists()
    monkeypatch.setenv("PERFRAME_COMPILERS", "1")  # whose process has none of them
    assert compiled("pad") == 1
    jit.settle()
    monkeypatch.delenv("NUMBA_OPT")
    assert compiled("pad") == 0


def refuse(*_: Any) -> None:
    raise PermissionError("another process has it open")


def test_a_file_that_is_open_elsewhere_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows does not replace a file that another process has open. Nothing lies beside it afterwards."""
    path = tmp_path / "kernels" / "pad.o"
    kernel_files.write(path, b"first", "symbol")
    monkeypatch.setattr(os, "replace", refuse)
    kernel_files.write(path, b"second", "symbol")
    assert kernel_files.read(path) == (b"first", "symbol")
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(OSError, match="open"), kernel_files.beside(path) as file:
        file.write(b"third")
    with pytest.raises(ValueError, match="half"), kernel_files.beside(path) as file:
        raise ValueError("half written")
    assert list(path.parent.iterdir()) == [path]


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    """Windows and macOS see one file there, whose content says whose it is."""
    first, second = tmp_path / "kernels" / "pad.o", tmp_path / "kernels" / "Pad.o"
    kernel_files.write(first, b"code", "symbol")
    second.unlink(missing_ok=True)
    second.write_bytes(first.read_bytes())  # what is found under the other name on such a system
    assert kernel_files.read(first) == (b"code", "symbol") and kernel_files.read(second) is None


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    now = time.time()
    for days, name in enumerate(("new", "used", "old", "ancient")):
        path = tmp_path / f"{name}.o"
        path.write_bytes(b"x" * 100)
        os.utime(path, (now - days * kernel_files.DAY * 20,) * 2)
    kernel_files.prune(tmp_path, max_age=50 * kernel_files.DAY)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["new", "old", "used"]
    kernel_files.prune(tmp_path, max_bytes=250)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["new", "used"]
    kernel_files.prune(tmp_path / "nowhere")


@pytest.mark.quick(cases=0)
def test_use_is_noted_once_a_day(folder: Path) -> None:
    assert compiled("pad") == 1
    (path,) = folder.iterdir()
    long_ago = time.time() - 10 * kernel_files.DAY
    os.utime(path, (long_ago, long_ago))
    assert compiled("pad") == 0
    assert time.time() - path.stat().st_mtime < kernel_files.DAY
