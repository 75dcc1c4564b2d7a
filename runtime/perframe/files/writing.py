"""Writing of files: whole, or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from perframe.errors import ModelError
from perframe.files.tensors import Buffer

_FILES = "/proc/self/fd"
_NAMELESS = getattr(os, "O_TMPFILE", 0) if os.path.isdir(_FILES) else 0
STALE = 3600.0  # seconds after which an unfinished file belongs to nobody


def write(files: Mapping[Path, Iterable[Buffer]]) -> None:
    """Write files beside their places, and put them there when all are whole and on the disk. Raises ModelError.

    A model that was loaded from one of these paths keeps the old file's bytes. Windows does not replace a file that is
    mapped, and so raises.
    """
    for path in files:
        if not path.parent.is_dir():
            raise ModelError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
        if path.is_dir():
            raise ModelError(f"{str(path)!r} cannot be written: it is a folder; give the name of a file in it")
        _remove_stale(path)
    mark = secrets.token_hex(4)
    beside = {path: path.with_name(f".{path.name}.{mark}") for path in files}
    path = Path()
    try:
        for path, buffers in files.items():
            with _begun(path.parent, beside[path]) as file:
                for buffer in buffers:
                    file.write(buffer)
                file.flush()
                os.fsync(file.fileno())
                if not beside[path].exists():
                    _name(file, beside[path])
        for path in files:
            os.replace(beside[path], path)
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be written: {error}") from error
    finally:
        for other in beside.values():
            with suppress(OSError):  # it has its place, or was never made
                other.unlink()


def _begun(folder: Path, beside: Path) -> BinaryIO:
    """A new file: without a name where Linux can, so that a process that is killed leaves none; else `beside`."""
    if _NAMELESS:
        with suppress(OSError):  # not every file system can
            return os.fdopen(os.open(folder, _NAMELESS | os.O_RDWR, 0o666), "w+b")
    return open(beside, "xb")


def _name(file: BinaryIO, path: Path) -> None:
    """Give a file without a name one. Raises OSError."""
    files = os.open(_FILES, os.O_RDONLY)
    try:
        os.link(str(file.fileno()), path, src_dir_fd=files, follow_symlinks=True)
    except OSError:  # layers of containers have nameless files, and may name none
        file.seek(0)
        with open(path, "xb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())
    finally:
        os.close(files)


def _remove_stale(path: Path) -> None:
    """Remove what processes that were killed have left beside a file. Those that write now are younger."""
    left = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    for other in path.parent.glob(".*"):
        with suppress(OSError):
            if left.fullmatch(other.name) and time.time() - other.stat().st_mtime > STALE:
                other.unlink()
