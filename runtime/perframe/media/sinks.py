"""Sinks: where pictures go. A thread writes files, so that the frame loop does not wait for an encoder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

from perframe.errors import ClosedError, InputError
from perframe.media.feeds import RATE
from perframe.media.picture import (
    PICTURES,
    VIDEOS,
    Picture,
    Pixels,
    checked,
    expanded,
    path_beside,
    save_picture,
    settle,
)
from perframe.media.source import as_rate
from perframe.media.videos import require_av

if TYPE_CHECKING:
    from perframe.host import Surface

_BEHIND = 4  # pictures that may wait for the thread


class Sink(ABC):
    """Takes pictures. `with` finishes it, or abandons it after an error: what was begun then leaves nothing behind."""

    name: str
    """What errors call it."""

    @abstractmethod
    def write(self, picture: Picture | Pixels) -> None:
        """Take a picture: a Picture, or an array of H x W x 3 uint8. The array must not change any more.

        Waits only where the writing thread is several pictures behind. Raises InputError, also for a picture before.
        """

    @abstractmethod
    def finish(self) -> None:
        """Wait until all is written, and put it in its place. Raises InputError if that failed."""

    @abstractmethod
    def abandon(self) -> None:
        """End without putting a file in its place. Does nothing after `finish`."""

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.abandon()


class _FileSink(Sink):
    """A sink whose thread calls `_store` for each picture, then `_close`, or `_undo` if that is not to be."""

    def __init__(self, path: str | Path) -> None:
        self.path = expanded(path)
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"{str(self.path)!r} cannot be written: there is no folder {str(self.path.parent)!r}")
        self.name = repr(str(self.path))
        self._changed = Condition()
        self._waiting: deque[Picture] = deque()
        self._written = 0
        self._error: Exception | None = None
        self._last = self._abandons = False
        self._thread: Thread | None = None

    def write(self, picture: Picture | Pixels) -> None:
        """Hand a picture to the thread."""
        if not isinstance(picture, Picture):
            picture = Picture(picture, self._written, 0.0)
        checked(picture.pixels, f"{self.name}, picture {picture.index}")
        self._written += 1
        with self._changed:
            if self._last:
                raise ClosedError(f"{self.name} was finished: open another sink")
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"perframe-media {self.name}", daemon=True)
                self._thread.start()
            while len(self._waiting) >= _BEHIND and self._error is None:
                self._changed.wait()
            self._raise()
            self._waiting.append(picture)
            self._changed.notify_all()

    def finish(self) -> None:
        """Write what waits, and close the file."""
        self._end(abandons=False)
        self._raise()

    def abandon(self) -> None:
        """Leave no file, or what was there before. A folder keeps the pictures that it has."""
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
            self._undo()
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
        """Remove what was begun."""


class PictureSink(_FileSink):
    """A picture file: the last picture that it took."""

    _picture: Picture | None = None

    def _store(self, picture: Picture) -> None:
        self._picture = picture

    def _close(self) -> None:
        if self._picture is not None:
            save_picture(self._picture.pixels, self.path)


class FolderSink(_FileSink):
    """A folder with a file for each picture, named by its index: 000000.png. It is made if it is not there."""

    def __init__(self, path: str | Path, suffix: str = ".png") -> None:
        super().__init__(path)
        if suffix not in PICTURES:
            raise InputError(f"{suffix!r} is none of {', '.join(PICTURES)}")
        self._suffix = suffix

    def _store(self, picture: Picture) -> None:
        self.path.mkdir(exist_ok=True)
        save_picture(picture.pixels, self.path / f"{picture.index:06d}{self._suffix}")


_CODECS = {".webm": "libvpx-vp9", ".avi": "mpeg4"}  # H.264 elsewhere
_OPTIONS = {  # pictures leave in the order in which they come, so that pieces of a video can be joined
    "libx264": {"bf": "0"},
    "libvpx-vp9": {"b": "0", "auto-alt-ref": "0", "lag-in-frames": "0", "row-mt": "1", "cpu-used": "5"},
    "mpeg4": {"qscale": "3", "flags": "+qscale", "global_quality": "354"},
}


class VideoSink(_FileSink):
    """A video, `rate` pictures a second, all of one size. It is H.264, in .webm VP9, in .avi MPEG-4.

    `quality` is the encoder's constant rate factor: lower is better and larger. A side of an odd length loses a row or
    a column, because the colours of these formats are halved. Raises MissingExtraError without PyAV.
    """

    def __init__(self, path: str | Path, rate: float | Fraction = RATE, quality: int = 18) -> None:
        super().__init__(path)
        self._av = require_av("writing a video")
        if self.path.suffix.lower() not in VIDEOS:
            raise InputError(f"{self.name} is no name of a video: {', '.join(VIDEOS)}")
        self._rate, self._quality = as_rate(rate), quality
        self._beside = path_beside(self.path)
        self._container: Any = None
        self._stream: Any = None
        self._size = (0, 0)
        self._count = 0

    def _store(self, picture: Picture) -> None:
        height, width = picture.pixels.shape[:2]
        if self._container is None:
            self._open((width, height))
        if (width, height) != self._size:
            was = "{}×{}".format(*self._size)
            raise InputError(f"{self.name}: picture {picture.index} is {width}×{height}, and those before were {was}")
        even = picture.pixels[: height // 2 * 2, : width // 2 * 2]
        frame = self._av.VideoFrame.from_ndarray(even, format="rgb24")
        frame.pts, frame.time_base = self._count, 1 / self._rate
        self._count += 1
        self._container.mux(self._stream.encode(frame))

    def _open(self, size: tuple[int, int]) -> None:
        if min(size) < 2:
            raise InputError(f"{self.name}: a video is at least 2 pixels wide and high, and not {size[0]}×{size[1]}")
        self._container = self._av.open(str(self._beside), "w")
        codec = _CODECS.get(self.path.suffix.lower(), "libx264")
        self._stream = stream = self._container.add_stream(
            codec if codec in self._av.codecs_available else "mpeg4", rate=self._rate
        )
        stream.width, stream.height, stream.pix_fmt = size[0] // 2 * 2, size[1] // 2 * 2, "yuv420p"
        stream.options = _OPTIONS[stream.codec_context.name] | {"crf": str(self._quality)}
        self._size = size

    def _close(self) -> None:
        if self._container is not None:
            self._container.mux(self._stream.encode())
            self._container.close()
            settle(self._beside, self.path)

    def _undo(self) -> None:
        if self._container is not None:
            with suppress(OSError, ValueError):
                self._container.close()
            self._beside.unlink(missing_ok=True)


class WindowSink(Sink):
    """A window that shows each picture as it comes. Use it on the main thread; an app is its own window."""

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


def open_sink(name: str | Path, rate: float | Fraction = RATE) -> Sink:
    """Open a place for pictures by name: a picture file (the last one stays), a video, "window", or else a folder.

    `rate` is the pictures a second of a video. Raises InputError.
    """
    if str(name) == "window":
        return WindowSink()
    suffix = Path(name).suffix.lower()
    if suffix in PICTURES:
        return PictureSink(name)
    if suffix in VIDEOS:
        return VideoSink(name, rate)
    if suffix and not Path(name).is_dir():
        known = ", ".join((*PICTURES, *VIDEOS))
        raise InputError(f"{str(name)!r} is neither a folder nor of a known kind: {known}")
    return FolderSink(name)


def _as_input_error(error: Exception, name: str) -> Exception:
    if isinstance(error, OSError | ValueError) and not isinstance(error, InputError):
        made = InputError(f"{name} cannot be written: {error}")
        made.__cause__ = error
        return made
    return error
