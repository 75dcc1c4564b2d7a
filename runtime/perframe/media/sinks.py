"""Sinks: where pictures go. A thread writes files, so that the frame loop does not wait for a disk or an encoder."""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from perframe.errors import ClosedError, InputError
from perframe.graphics.yuv import YuvFrame
from perframe.media.picture import PICTURES, Picture, Pixels, checked, expanded, is_name, save_picture

if TYPE_CHECKING:
    from perframe.host import Surface

log = logging.getLogger("perframe")
_BEHIND = 4  # pictures that may wait for the thread


class Output(ABC):
    """Where pictures or sound go. `with` finishes it, or abandons it after an error."""

    name: str
    """The name in error messages."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until everything is out, and close it. Raises InputError if that failed."""

    @abstractmethod
    def abandon(self) -> None:
        """Close it at once, without what waits. Does nothing after `finish`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.abandon()


class Sink(Output):
    """Takes pictures. `finish` puts a file in its place; `abandon` removes unfinished files."""

    @abstractmethod
    def write(self, picture: Picture | Pixels) -> None:
        """Take a picture: a Picture, or an array of H x W x 3 uint8. The array must not change any more.

        Waits only where the writing thread is several pictures behind. Raises InputError, also for a picture before.
        """


class ThreadedSink(Sink):
    """A sink whose thread calls `_store` for each picture, then `_close`, or `_undo` if that is not to be."""

    keeps_all = True
    """Whether `write` waits where the thread is behind. Otherwise the oldest picture is left out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._changed = Condition()
        self._waiting: deque[Picture] = deque()
        self._written = 0
        self._error: Exception | None = None
        self._last = self._abandons = False
        self._thread: Thread | None = None

    def write(self, picture: Picture | Pixels) -> None:
        """Hand a picture to the thread. An array is copied: the caller may refill it. A Picture is handed over."""
        if isinstance(picture, Picture):
            if not isinstance(picture.content, YuvFrame):  # the thread converts it
                checked(picture.content, f"{self.name}, picture {picture.index}")
        else:
            checked(picture, f"{self.name}, picture {self._written}")
            picture = Picture(picture.copy(), self._written, 0.0)
        self._written += 1
        with self._changed:
            if self._last:
                raise ClosedError(f"{self.name} was finished: open another sink")
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"perframe-media {self.name}", daemon=True)
                self._thread.start()
            while len(self._waiting) >= _BEHIND and self._error is None:
                if self.keeps_all:
                    self._changed.wait()
                else:
                    self._waiting.popleft()
            self._raise()
            self._waiting.append(picture)
            self._changed.notify_all()

    def finish(self) -> None:
        """Write what waits, and close the file."""
        self._end(abandons=False)
        self._raise()

    def abandon(self) -> None:
        """Leave no file, or the earlier one. A folder keeps the pictures that it has."""
        self._end(abandons=True)

    def _end(self, abandons: bool) -> None:
        with self._changed:
            if not self._last:
                self._last, self._abandons = True, abandons
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        """Write, in the thread."""
        try:
            while (picture := self._next()) is not None:
                self._store(picture)
            self._undo() if self._abandons else self._close()
        except Exception as error:  # it is raised where pictures are handed over
            try:
                with suppress(OSError):  # a disk that has become read-only: the first error is raised
                    self._undo()
            finally:
                with self._changed:
                    self._error = _as_input_error(error, self.name)
                    self._changed.notify_all()

    def _next(self) -> Picture | None:
        with self._changed:
            while not self._waiting and not self._last:
                self._changed.wait()
            if self._abandons or not self._waiting:
                return None
            picture = self._waiting.popleft()
            self._changed.notify_all()
            return picture

    @abstractmethod
    def _store(self, picture: Picture) -> None:
        """Write a picture."""

    def _close(self) -> None:
        """Put the file in its place."""

    def _undo(self) -> None:
        """Remove unfinished files."""


class FileSink(ThreadedSink):
    """A sink that writes a file or a folder. Raises InputError where there is no folder for it.

    `finish` warns if there was no picture, because there is no file then.
    """

    def __init__(self, path: str | Path) -> None:
        if not is_name(path):
            raise InputError(f"a sink of files takes a path, not {path!r}")
        self.path = expanded(path)
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"{str(self.path)!r} cannot be written: there is no folder {str(self.path.parent)!r}")
        super().__init__(repr(str(self.path)))

    def finish(self) -> None:
        """Write what waits, and close the file."""
        if not self._written and not self._last and sys.exception() is None:
            log.warning("%s was not written: the sink was closed without a picture", self.name)
        super().finish()


class PictureSink(FileSink):
    """A picture file: the last picture that it took."""

    _picture: Picture | None = None

    def _store(self, picture: Picture) -> None:
        self._picture = picture

    def _close(self) -> None:
        if self._picture is not None:
            save_picture(self._picture.pixels, self.path)


class FolderSink(FileSink):
    """A folder with a file for each picture, named by its index: 000000.png. It is made if it is not there."""

    def __init__(self, path: str | Path, suffix: str = ".png") -> None:
        super().__init__(path)
        if suffix not in PICTURES:
            raise InputError(f"{suffix!r} is not one of {', '.join(PICTURES)}")
        self._suffix = suffix

    def _store(self, picture: Picture) -> None:
        self.path.mkdir(exist_ok=True)
        save_picture(picture.pixels, self.path / f"{picture.index:06d}{self._suffix}")


class WindowSink(Sink):
    """A window that shows each picture on arrival. Use it on the main thread; an app is its own window."""

    def __init__(self, title: str = "perframe", size: tuple[int, int] = (1280, 720), vsync: bool = True) -> None:
        from perframe.host import open_surface

        self.name = f"the window {title!r}"
        self.surface: Surface = open_surface(size, title, headless=False, vsync=vsync)

    @property
    def should_close(self) -> bool:
        """Whether the user has closed it."""
        return self.surface.should_close

    def write(self, picture: Picture | Pixels) -> None:
        """Show a picture, stretched to the window."""
        pixels = checked(picture.pixels if isinstance(picture, Picture) else picture, self.name)
        self.surface.poll_events()
        self.surface.begin_frame()
        self.surface.present(pixels)
        self.surface.swap()

    def finish(self) -> None:
        """Close it."""
        self.surface.release()

    def abandon(self) -> None:
        """Close it."""
        self.surface.release()


def _as_input_error(error: Exception, name: str) -> Exception:
    if isinstance(error, OSError | ValueError) and not isinstance(error, InputError):
        made = InputError(f"{name} cannot be written: {error}")
        made.__cause__ = error
        return made
    return error
