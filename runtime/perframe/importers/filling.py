"""Arrays that are filled from files while the rest of a model is imported.

The system clears new memory and copies the file into it. For large models that takes as long as the import and needs no
Python, so a thread does it meanwhile. An import that reads the numbers of a large constant calls `settle` first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from io import BufferedReader
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from numpy.typing import NDArray

from perframe.errors import ModelError
from perframe.safety.records import dataclass
from perframe.tensor.background import is_beside_frames

LATE = 64 << 10  # bytes; smaller arrays are filled at once
BATCH = 16 << 20  # bytes of one call to the system: after each call, the thread waits for Python's lock (the GIL)
MOST_GAP = 64 << 10  # bytes between two arrays that one call reads
MOST_BUFFERS = 512  # of one call; systems allow 1,024


@dataclass
class _Batch:
    """Memory that one call fills, from a position of a file that is open."""

    file: int
    at: int
    end: int
    buffers: list[memoryview] = field(default_factory=list)

    def fill(self) -> bool:
        """Fill the memory; False if the file ends before, or cannot be read."""
        left, at = list(self.buffers), self.at
        try:
            while left:
                count = os.preadv(self.file, left, at)
                if not count:
                    return False
                at += count
                while left and count >= len(left[0]):
                    count -= len(left.pop(0))
                if count:
                    left[0] = left[0][count:]
        except OSError:
            return False
        return True


class Filling:
    """Fills arrays in a thread, and in the thread that waits for them."""

    def __init__(self, name: str) -> None:
        """`name` is the model's, for messages."""
        self._name = name
        self._batch: _Batch | None = None  # the last one, which may grow
        self._batches = SimpleQueue[_Batch | None]()
        self._files: dict[tuple[int, int], int] = {}  # open ones, by device and number
        self._thread: Thread | None = None
        self._is_whole = True

    def add(self, file: IO[bytes], at: int, target: memoryview) -> bool:
        """Fill memory from a position of a file, soon. False if the file ends before."""
        found = os.fstat(file.fileno())
        if at + len(target) > found.st_size:
            return False
        key = found.st_dev, found.st_ino
        if key not in self._files:
            self._files[key] = os.dup(file.fileno())  # the caller closes its own
        for begin in range(0, len(target), BATCH):
            self._add(self._files[key], at + begin, target[begin : begin + BATCH])
        return True

    def _add(self, file: int, at: int, target: memoryview) -> None:
        batch = self._batch
        gap = -1 if batch is None or batch.file != file else at - batch.end
        if batch is None or not 0 <= gap <= MOST_GAP or len(batch.buffers) + 2 > MOST_BUFFERS:
            self._begin()
            batch = self._batch = _Batch(file, at, at)
            gap = 0
        batch.buffers += [memoryview(bytearray(gap)), target] if gap else [target]
        batch.end = at + len(target)
        if batch.end - batch.at >= BATCH:
            self._begin()

    def _begin(self) -> None:
        """Hand the last batch to the thread."""
        if self._batch is None:
            return
        self._batches.put(self._batch)
        self._batch = None
        if self._thread is None:
            thread = Thread(target=self._run, name="perframe-reading", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system allows no more threads: who waits fills them
                return
            self._thread = thread

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            self._fill(batch)

    def _fill(self, batch: _Batch) -> None:
        if not batch.fill():
            self._is_whole = False

    def wait(self) -> None:
        """Help until all arrays are filled. Raises ModelError if a file has changed meanwhile."""
        if self._batch is not None:
            self._batches.put(self._batch)
            self._batch = None
        while (batch := self._next()) is not None:
            self._fill(batch)
        self._end()
        if not self._is_whole:
            raise ModelError(f"{self._name}: its file has changed while it was read: load it again")

    def close(self) -> None:
        """Fill nothing more, and close the files."""
        while self._next() is not None:
            pass
        self._end()
        while self._files:
            os.close(self._files.popitem()[1])

    def _next(self) -> _Batch | None:
        try:
            return self._batches.get_nowait()
        except Empty:
            return None

    def _end(self) -> None:
        if self._thread is not None:
            self._batches.put(None)
            self._thread.join()
            self._thread = None


_current: ContextVar[Filling | None] = ContextVar("filling", default=None)


@contextmanager
def filling(name: str) -> Iterator[None]:
    """Let a thread fill the large arrays of a model that are read in the block. They are filled when it ends. Beside
    frames there is no such thread. Raises ModelError if a file has changed meanwhile.
    """
    if not hasattr(os, "preadv") or sys.byteorder != "little" or is_beside_frames():
        yield
        return
    made = Filling(name)
    token = _current.set(made)
    try:
        yield
        made.wait()
    finally:
        _current.reset(token)
        made.close()


def settle(arrays: Iterable[NDArray[Any] | None] | None = None) -> None:
    """Wait until these arrays are filled, or all. Raises ModelError if a file has changed meanwhile."""
    current = _current.get()
    if current is None:
        return
    if arrays is None or any([array is not None and array.nbytes >= LATE for array in arrays]):
        current.wait()


def fill(file: IO[bytes], at: int, target: memoryview) -> bool:
    """Fill memory from a position of a file: large memory soon, within a block of `filling`. False if the file ends
    before.
    """
    current = _current.get()
    if current is not None and len(target) >= LATE and isinstance(file, BufferedReader):
        return current.add(file, at, target)
    file.seek(at)
    return bool(file.readinto(target) == len(target))  # type: ignore[attr-defined]
