"""A download of host memory that a job may still write."""

from __future__ import annotations

import threading
from contextlib import suppress

from perframe.tensor.dtypes import Array
from perframe.tensor.protocol import Fence
from perframe.tensor.snapshots import Snapshots


class HostPending:
    """A download that takes a snapshot of host memory once `write` is done. The next writer waits for it as a fence."""

    def __init__(self, view: Array, write: Fence | None, snapshots: Snapshots, lock: threading.RLock) -> None:
        """The caller holds `lock`, the storage's."""
        self._values: Array | None = view  # the snapshot replaces the view
        self._write, self._snapshots = write, snapshots
        self.is_taken = False
        self._failure: Exception | None = None
        self._lock = lock  # the next writer's thread may ask while the user polls
        self._take_if_written()

    def poll(self) -> bool:
        """Whether the writer has finished. If it has, take the snapshot."""
        if not self.is_taken:
            with self._lock:
                self._take_if_written()
        return self.is_taken

    def _take_if_written(self) -> None:
        write, values = self._write, self._values
        if self.is_taken or values is None or not (write is None or write.done):
            return
        try:
            if write is not None:
                write.wait()  # returns at once, or raises the writer's error
            self._values = self._snapshots.of(values)
        except Exception as error:
            self._failure = error
        self._write, self.is_taken = None, True

    @property
    def behind(self) -> tuple[Fence, ...]:
        """The writer, if the snapshot still waits for it."""
        write = self._write
        return () if write is None else (write,)

    @property
    def done(self) -> bool:
        """Whether the snapshot is taken. Never blocks."""
        return self.poll()

    def wait(self) -> None:
        """Block until the snapshot is taken."""
        write = self._write
        if write is not None:
            with suppress(Exception):  # values() raises the error
                write.wait()
        self.poll()

    def values(self) -> Array:
        """Return the snapshot, once: the download does not keep it. Raises the writer's error."""
        if self._failure is not None:
            raise self._failure
        values, self._values = self._values, None
        assert self.is_taken and values is not None, "values() before poll(), or twice"
        return values
