"""Compiled kernels on disk: object code, and binaries of GL programs.

No other user may write to the folder: a kernel is run as it is read.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from perframe.resources import cache_folder, digest_of
from perframe.safety.private_files import make_private, problem_of, read_regular

log = logging.getLogger("perframe")
Entry = tuple[bytes, str]  # object code and the symbol of the function in it, or a binary and its format

DAY = 86_400.0  # seconds
MAX_AGE = 90 * DAY  # a kernel that was unused for longer is deleted
MAX_BYTES = 512 << 20  # of all kernels; beyond it, the kernels that were unused for longest are deleted first


def kernel_folder() -> Path:
    """Return the folder of kernels within the cache folder."""
    return cache_folder() / "kernels"


def _is_private(folder: Path) -> bool:
    """Whether no other user may put files into a folder, or replace one above it. Logs the problem, once."""
    problem = problem_of(folder)
    if problem:
        _warn(folder, problem)
    return not problem


@functools.cache
def _warn(folder: Path, problem: str) -> None:
    log.warning(
        "kernels are not kept in %s: %s, and cached code runs unchecked; run `chmod go-w` and empty it, or set "
        "PERFRAME_CACHE to a private folder",
        folder,
        problem,
    )


@functools.cache
def _warn_unwritten(folder: Path, reason: str) -> None:
    log.warning(
        "compiled kernels cannot be written to %s (%s): each start compiles them again. PERFRAME_CACHE names another "
        "folder",
        folder,
        reason,
    )


def read(path: Path) -> Entry | None:
    """Read object code and symbol from disk. Return None if the file is missing or damaged, or its folder is shared."""
    if not _is_private(path.parent):
        return None
    try:
        data = read_regular(path)
    except OSError:
        return None
    digest, _, rest = data.partition(b"\n")
    if _digest(path, rest) != digest:
        return None
    symbol, _, code = rest.partition(b"\n")
    _touch(path)
    return code, symbol.decode()


def write(path: Path, code: bytes, symbol: str) -> None:
    """Write object code to disk. If the folder cannot be written, the log says so once, and each process compiles the
    kernel again.
    """
    rest = symbol.encode() + b"\n" + code
    try:
        if not _is_private(path.parent):  # before a folder is made in another one that others may write to
            return
        make_private(path.parent)
        with beside(path) as file:
            file.write(_digest(path, rest) + b"\n" + rest)
    except OSError as error:
        _warn_unwritten(path.parent, error.strerror or str(error))


@contextlib.contextmanager
def beside(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its place when the block ends. It leaves nothing behind if it cannot be written, or if
    another process has the old file open on Windows; then it raises OSError.
    """
    import tempfile  # late: it takes long to import, and few starts write kernels

    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        made = Path(file.name)
        try:
            yield file
        except BaseException:
            file.close()
            made.unlink()
            raise
    try:
        os.replace(made, path)
    except OSError:
        made.unlink()
        raise


def _digest(path: Path, rest: bytes) -> bytes:
    """Return a hash of the content and the file's name, so that a file under another kernel's name is refused."""
    return digest_of(f"{path.name}\n", rest).encode()


def _touch(path: Path) -> None:
    """Note once a day that a kernel is used."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def prune(folder: Path, max_bytes: int = MAX_BYTES, max_age: float = MAX_AGE) -> None:
    """Delete kernels that were unused for longer than `max_age` seconds. If more than `max_bytes` remain, also delete
    the kernels that were unused for longest. A folder that others could replace is left alone.
    """
    if not _is_private(folder):
        return
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):  # another process deleted it
                known = path.lstat()
                found.append((known.st_mtime, known.st_size, path))
    total, now = 0, time.time()
    for used, size, path in sorted(found, reverse=True):
        total += size
        if total > max_bytes or now - used > max_age:
            with contextlib.suppress(OSError):
                path.unlink()
