"""Files of a cache, which are run as they are read: no other user may have put them there.

Every folder from a file up to the system's root must belong to this user or to the system, and no other user may write
to it. It is checked each time, before anything is opened: some twenty microseconds.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

MOST_BYTES = 256 << 20  # of a file
_MOST_LINKS = 40  # in a path, as for the system itself


def problem_of(folder: Path) -> str:
    """Why other users may change what lies in a folder; empty if they may not. Missing parts are ignored.

    Links are followed as the system does, and count as files of their owner.
    """
    if os.name != "posix":
        return ""
    here = "/"  # text: this is run often, and Path is slow
    root = os.lstat(here).st_uid  # in a container the system's own files may seem to belong to nobody
    owners = (os.getuid(), 0, root)
    left, links = _parts(os.path.abspath(folder) if not folder.is_absolute() else str(folder)), 0
    while True:
        try:
            found = os.lstat(here)
        except OSError:
            return ""
        if found.st_uid not in owners:
            return f"{here} belongs to another user"
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                return f"{folder} has too many links"
            target = os.readlink(here)
            left += _parts(target)
            here = "/" if target.startswith("/") else os.path.dirname(here)
            continue
        is_sticky = left and found.st_mode & stat.S_ISVTX  # as /tmp: only a file's owner disposes of it
        if _others_write(found) and not is_sticky:
            return f"others may write to {here}"
        if not left:
            return ""
        part = left.pop()
        here = os.path.dirname(here) if part == ".." else os.path.join(here, part)


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _others_write(found: os.stat_result) -> bool:
    others, group = found.st_mode & stat.S_IWOTH, found.st_mode & stat.S_IWGRP
    return bool(others or (group and not _is_own_group(found.st_gid)))


@functools.cache
def _is_own_group(number: int) -> bool:
    """Whether a group has no other member: many systems give each user one, and let it write to the user's files."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return number == 0 == os.getuid() or (group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name})


def make_private(folder: Path) -> None:
    """Make a folder and those above it, for this user alone, whatever the umask. Raises OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a file that this user, or the system, has put there. Raises OSError, also for anything but a file.

    A pipe would wait for a writer, and a link to a device would never end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags | getattr(os, "O_CLOEXEC", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a file")
        if found.st_size > most:
            raise OSError(f"{path} has {found.st_size} bytes, which are too many")
        if os.name == "posix" and (found.st_uid not in (os.getuid(), 0) or _others_write(found)):
            raise OSError(f"{path} belongs to another user, or others may write to it")
        return file.read(most)
