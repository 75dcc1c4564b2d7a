"""The files that a load reads, and the places in them of the arrays that it reads whole."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from pathlib import Path
from typing import IO, Any, NamedTuple
from weakref import ref

from numpy.typing import NDArray

from perframe.safety.records import dataclass
from perframe.tensor.storage import address_of

Stamp = tuple[int, ...]
Array = NDArray[Any]


def stamp_of(file: int | str | Path) -> Stamp:
    """The facts of a file that change when anything changes in it. Raises OSError."""
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _FilledArray(NamedTuple):
    address: int
    size: int  # bytes
    array: ref[Array]
    file: int
    at: int


@dataclass
class Reads:
    """`files` has the path and the stamp of each file, as it was when it was opened."""

    files: dict[str, Stamp] = field(default_factory=dict)
    is_whole: bool = True  # whether each file was the same each time
    _arrays: list[_FilledArray] = field(default_factory=list)
    _open: dict[IO[bytes], int] = field(default_factory=dict)  # the index of the file

    def opened(self, file: IO[bytes], path: Path) -> None:
        """Note a file that was opened."""
        name, stamp = os.path.abspath(path), stamp_of(file.fileno())
        self.is_whole &= self.files.setdefault(name, stamp) == stamp
        self._open[file] = list(self.files).index(name)

    def filled(self, file: IO[bytes], array: Array, at: int) -> None:
        """Note an array whose memory is a range of an opened file. It is never written again."""
        index = self._open.get(file)
        if index is not None:
            self._arrays.append(_FilledArray(address_of(array), array.nbytes, ref(array), index, at))

    def places(self) -> FilePlaces:
        """The places of the arrays that still live."""
        living = [(read, array) for read in self._arrays if (array := read.array()) is not None]
        return FilePlaces(sorted(living, key=lambda pair: pair[0].address))


class FilePlaces:
    """Finds the range of a file that an array's memory holds."""

    def __init__(self, reads: list[tuple[_FilledArray, Array]]) -> None:
        """The arrays are kept alive, so that no other gets their memory meanwhile."""
        self._reads, self._arrays = [read for read, _ in reads], [array for _, array in reads]
        self._begins = [read.address for read in self._reads]

    def of(self, array: Array) -> tuple[int, int] | None:
        """The index of the file, and the first byte in it; None if no file has the array's bytes."""
        if not array.nbytes or not array.flags.c_contiguous or array.flags.writeable:
            return None
        address = address_of(array)
        index = bisect_right(self._begins, address) - 1
        if index < 0 or address + array.nbytes > self._reads[index].address + self._reads[index].size:
            return None
        read = self._reads[index]
        return read.file, read.at + address - read.address


_current: ContextVar[Reads | None] = ContextVar("reads", default=None)


def current() -> Reads | None:
    """The reads that are noted now, if any."""
    return _current.get()


@contextmanager
def noted() -> Iterator[Reads]:
    """Note what is read in a block."""
    reads = Reads()
    token = _current.set(reads)
    try:
        yield reads
    finally:
        _current.reset(token)
