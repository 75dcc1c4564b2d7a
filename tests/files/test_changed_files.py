"""Files that change while a model lives, and what a process that was killed leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.files import reading, writing

SIZE = 512
X = np.ones((1, SIZE), np.float32)


def save(path: Path, seed: int, size: int = SIZE) -> Any:
    """A product with a matrix of this seed, in a file. Returns what it computes."""
    weights = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", (1, size), "x")
    pf.save(graph.compile(y=x @ weights), path)
    return np.ones((1, size), np.float32) @ weights


def write_over(path: Path, seed: int, size: int = SIZE) -> None:
    """Write another model into the file, in place, as `cp` does."""
    other = path.with_name("other.perframe")
    save(other, seed, size)
    with open(path, "r+b") as file:
        file.write(other.read_bytes())
        file.truncate()


@pytest.mark.parametrize("size", [SIZE, 16], ids=["as long", "shorter"])
@pytest.mark.parametrize("is_used", [False, True])
def test_a_file_that_is_written_anew_changes_no_model(size: int, is_used: bool, tmp_path: Path) -> None:
    wanted = save(tmp_path / "m.perframe", 0)
    model = pf.load(tmp_path / "m.perframe")
    if is_used:
        pf.run(model, {"x": X})
    write_over(tmp_path / "m.perframe", 1, size)
    np.testing.assert_allclose(pf.run(model, {"x": X})["y"], wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(os.name != "posix", reason="Windows refuses to write into a mapped file")
@pytest.mark.parametrize("size", [SIZE, 16], ids=["as long", "shorter"])
def test_a_mapped_file_that_is_written_anew_is_told(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_COPIED", 0)
    save(tmp_path / "m.perframe", 0)
    model = pf.load(tmp_path / "m.perframe")
    write_over(tmp_path / "m.perframe", 1, size)
    for use in (lambda: pf.Worker(model), lambda: pf.save(model, tmp_path / "again.perframe")):
        with pytest.raises(pf.ModelError, match=r"m\.perframe was overwritten in place.*load it again"):
            use()


@pytest.mark.parametrize("most", [0, 1 << 30], ids=["mapped", "copied"])
def test_a_file_that_is_replaced_or_deleted_changes_no_model(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name != "posix" and not most:
        pytest.skip("Windows refuses to replace a mapped file")
    monkeypatch.setattr(reading, "MOST_COPIED", most)
    wanted = save(tmp_path / "m.perframe", 0)
    model = pf.load(tmp_path / "m.perframe")
    save(tmp_path / "m.perframe", 1)
    np.testing.assert_allclose(pf.run(model, {"x": X})["y"], wanted, rtol=1e-3, atol=1e-3)
    (tmp_path / "m.perframe").unlink()
    np.testing.assert_allclose(pf.run(model, {"x": X})["y"], wanted, rtol=1e-3, atol=1e-3)


def test_files_are_those_of_the_umask(tmp_path: Path) -> None:
    save(tmp_path / "m.perframe", 0)
    (tmp_path / "usual").touch()
    assert (tmp_path / "m.perframe").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_copies_are_aligned_and_cannot_be_written(tmp_path: Path) -> None:
    save(tmp_path / "m.perframe", 0)
    (weights,) = (one for one in pf.load(tmp_path / "m.perframe").constants.values() if one.size > 1)
    assert weights.ctypes.data % 64 == 0 and not weights.flags.writeable


@pytest.mark.skipif(os.name != "posix", reason="Windows knows no SIGKILL")
@pytest.mark.parametrize("nameless", [True, False])
def test_what_a_killed_process_has_left_goes_with_the_next_save(nameless: bool, tmp_path: Path) -> None:
    code = (
        "import os, signal, perframe as pf\nfrom pathlib import Path\nfrom perframe.files import writing\n"
        "def pieces():\n    yield b'half'\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"writing._NAMELESS = writing._NAMELESS * {nameless}\n"
        f"writing.write({{Path({str(tmp_path / 'm.perframe')!r}): pieces()}})"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    if nameless and not [*tmp_path.iterdir()]:
        return  # Linux, on a usual file system
    (left,) = tmp_path.iterdir()
    others = [tmp_path / name for name in (".m.perframe.note", ".n.perframe.0123abcd", "m.perframe.0123abcd")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    save(tmp_path / "m.perframe", 0)
    assert left.exists(), "another process may be writing it"
    old = time.time() - 2 * writing.STALE
    os.utime(left, (old, old))
    save(tmp_path / "m.perframe", 0)
    assert not left.exists() and all(other.exists() for other in others)
