"""What is run from a cache was put there by its user: folders, links, owners, modes, and things that are no files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perframe.backends import kernel_files
from perframe.conversion.environments import made_environment
from perframe.errors import ConversionError
from perframe.safety.private_files import make_private, problem_of, read_regular

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX'")
OTHER = 65_534
root_only = pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives files to others")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can reach, as those of pytest cannot be."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


def give(path: Path) -> None:
    os.lchown(path, OTHER, OTHER)


CHANGES: dict[str, Callable[[Path, Path], object]] = {  # of the cache's parent, and of the cache
    "the folder itself": lambda _above, cache: (cache / "kernels").chmod(0o777),
    "the cache": lambda _above, cache: cache.chmod(0o777),
    "a folder above": lambda above, _cache: above.chmod(0o777),
    "a group": lambda _above, cache: (os.chown(cache, -1, OTHER), cache.chmod(0o770)),
    "another's folder": lambda _above, cache: give(cache / "kernels"),
    "another's folder above": lambda above, _cache: give(above),
    "another's link": lambda above, cache: (cache.rename(above / "real"), cache.symlink_to("real"), give(cache)),
    "a link into another's folder": lambda above, cache: (
        (above / "theirs").mkdir(),
        cache.rename(above / "theirs" / "cache"),
        cache.symlink_to(above / "theirs" / "cache"),
        give(above / "theirs"),
    ),
    "a loop of links": lambda above, cache: (cache.rename(above / "real"), cache.symlink_to("cache")),
}


@root_only
@pytest.mark.parametrize("what", CHANGES)
def test_a_folder_that_others_can_exchange_is_refused_each_time(what: str, place: Path, caplog: Any) -> None:
    kernel = place / "above" / "cache" / "kernels" / "pad-1.o"
    kernel_files.write(kernel, b"code", "symbol")
    assert kernel_files.read(kernel) == (b"code", "symbol")
    CHANGES[what](place / "above", place / "above" / "cache")
    assert problem_of(kernel.parent)
    assert kernel_files.read(kernel) is None, "it was private once"
    assert "PERFRAME_CACHE" in caplog.text
    before = sorted(place.rglob("*"))
    kernel_files.write(kernel.with_name("pad-2.o"), b"code", "symbol")
    kernel_files.prune(kernel.parent, max_bytes=0)
    assert sorted(place.rglob("*")) == before


@root_only
def test_what_is_ours_or_the_systems_is_used(place: Path) -> None:
    (place / "shared").mkdir()
    (place / "shared").chmod(0o1777)  # as /tmp: only owners dispose of their files
    (place / "linked").symlink_to(place / "shared")
    kernel = place / "linked" / ".." / "linked" / "cache" / "kernels" / "pad-1.o"
    kernel_files.write(kernel, b"code", "symbol")
    assert problem_of(kernel.parent) == "" and kernel_files.read(kernel) == (b"code", "symbol")
    assert problem_of(place / "nowhere" / "at" / "all") == ""


@root_only
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_every_umask_makes_a_cache_that_is_used(mask: int, place: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from perframe.backends import kernel_files as k\n"
        f"os.umask({mask}); path = Path({str(place)!r}, '.cache', 'perframe', 'kernels', 'pad-1.o')\n"
        "k.write(path, b'code', 'symbol'); sys.exit(k.read(path) != (b'code', 'symbol'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert all(path.stat().st_mode & 0o022 == 0 for path in place.rglob("*"))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link", "long"])
def test_only_files_are_read(kind: str, place: Path) -> None:
    path = place / "pad-1.o"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        (place / "file").write_bytes(b"x")
        path.symlink_to(place / "file")
    else:
        path.write_bytes(b"x" * 9)
    code = (
        f"from pathlib import Path; from perframe.backends import kernel_files as k; print(k.read(Path({str(path)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "None\n"
    with pytest.raises(OSError):
        read_regular(path, 8)


@root_only
def test_another_users_environment_is_not_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CACHE", str(place / "cache"))
    make_private(place / "cache" / "conversion")
    give(place / "cache" / "conversion")
    with pytest.raises(ConversionError, match="belongs to another user"):
        made_environment("tiny", [])


def test_the_check_is_cheap(place: Path) -> None:
    from timeit import timeit

    make_private(place / "a" / "b" / "kernels")
    assert timeit(lambda: problem_of(place / "a" / "b" / "kernels"), number=1000) < 1  # seconds: 1 ms each


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("no folder can be made below a file, as none can on a disk that is read-only")
    for name in ("a", "b"):
        kernel_files.write(tmp_path / "cache" / "kernels" / name, b"code", "symbol")
    assert caplog.text.count("cannot be written to") == 1 and "PERFRAME_CACHE names another folder" in caplog.text
