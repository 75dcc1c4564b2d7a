"""Where pictures come from: a file, a video, a camera. All are H×W×4 arrays of uint8, the picture's top first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from perframe.errors import InputError, MissingExtraError

from .motion import Size

if TYPE_CHECKING:
    from av.container import InputContainer

Array = np.ndarray[Any, np.dtype[np.uint8]]

_CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}"), "win32": ("dshow", "video={}")}
_FAILURES = (OSError, ValueError, IndexError)  # PyAV's errors are among them
_LONGEST_SIDE = 8192  # the largest texture side that every GPU supports
_SECONDS_FOR_A_FRAME = 20


class Source(Protocol):
    """Something that has a picture at any time."""

    is_still: bool

    def frame_at(self, time: float, wait: bool) -> Array | None:
        """The picture of this time, in seconds; None while it is the same as before.

        Without `wait` it is the newest that is there, and nothing blocks. Raises InputError if the source fails.
        """
        ...

    def release(self) -> None:
        """Close it."""
        ...


def open_source(name: str, enough: Size) -> Source:
    """A picture, a video, or "camera", "camera:1". Larger pictures are scaled down to cover `enough`.

    Raises InputError, or MissingExtraError where PyAV is needed and missing.
    """
    if name == "camera" or name.startswith("camera:"):
        return _open_camera(name.partition(":")[2] or "0", enough)
    path = Path(name).expanduser()
    if not path.is_file():
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {fault}; a source is a picture, a video, or camera")
    try:
        return Still(path, enough)
    except UnidentifiedImageError:
        return Stream(_open_video(path), repr(str(path)), enough)


def covering(size: Size, enough: Size) -> Size:
    """The size to which a picture is scaled down so that it still covers `enough`."""
    scale = max(enough[0] / size[0], enough[1] / size[1])
    scale = min(1.0, scale, _LONGEST_SIDE / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


class Still:
    """A picture. Raises InputError if it cannot be read, UnidentifiedImageError if it is none."""

    is_still = True

    def __init__(self, path: Path, enough: Size) -> None:
        try:
            with Image.open(path) as image:
                upright = ImageOps.exif_transpose(image).convert("RGBA")
        except UnidentifiedImageError:
            raise
        except (*_FAILURES, SyntaxError, Image.DecompressionBombError) as error:  # Pillow's, for a broken PNG
            raise InputError(f"the picture {str(path)!r} cannot be read: {error}") from error
        paper = Image.new("RGBA", upright.size, "white")
        flat = Image.alpha_composite(paper, upright)
        self._pixels: Array | None = np.array(flat.resize(covering(flat.size, enough), Image.Resampling.LANCZOS))

    def frame_at(self, time: float, wait: bool) -> Array | None:
        """The picture, once."""
        pixels, self._pixels = self._pixels, None
        return pixels

    def release(self) -> None:
        """The file is closed already."""


class Stream:
    """A video, which begins again at its end, or a camera. A thread decodes, so that the frame loop never does."""

    is_still = False

    def __init__(self, container: InputContainer, name: str, enough: Size, is_live: bool = False) -> None:
        self._container, self._name, self._enough, self._is_live = container, name, enough, is_live
        self._queue: Queue[tuple[float, Array] | Exception] = Queue(1 if is_live else 4)
        self._next: tuple[float, Array] | None = None
        self._stop = Event()
        self._thread = Thread(target=self._decode, name=f"decode {name}", daemon=True)
        self._thread.start()
        try:
            self._take(_SECONDS_FOR_A_FRAME)  # so that a broken source fails here
        except Exception as error:
            self.release()
            if isinstance(error, Empty):
                raise InputError(f"{name} gave no picture within {_SECONDS_FOR_A_FRAME} s") from None
            raise

    def frame_at(self, time: float, wait: bool) -> Array | None:
        """The last picture up to this time; of a camera the newest."""
        newest = None
        try:
            while True:
                if self._next is None:
                    self._take(_SECONDS_FOR_A_FRAME if wait and (newest is None or not self._is_live) else 0)
                assert self._next is not None
                moment, pixels = self._next
                if not self._is_live and moment > time:
                    return newest
                newest, self._next = pixels, None
        except Empty:
            return newest

    def release(self) -> None:
        """Stop decoding and close the file or the camera."""
        self._stop.set()
        self._thread.join(2.0)  # a camera may be waiting for its next picture

    def _take(self, seconds: float) -> None:
        taken = self._queue.get(timeout=seconds) if seconds else self._queue.get_nowait()
        if isinstance(taken, Exception):
            raise taken
        self._next = taken

    def _decode(self) -> None:
        """Read pictures, in the thread."""
        try:
            with self._container:
                for item in self._pictures():
                    if not self._put(item):
                        return
                self._put(InputError(f"{self._name} ended"))
        except _FAILURES as error:
            self._put(InputError(f"{self._name} cannot be decoded: {error}"))

    def _pictures(self) -> Iterator[tuple[float, Array]]:
        """All pictures and their times, over and over again; a camera's times do not matter."""
        stream = self._container.streams.video[0]
        stream.thread_type = "AUTO"
        step = float(1 / (stream.average_rate or 25))
        begin = 0.0
        for _ in count():
            first, moment = None, begin - step
            for frame in self._container.decode(stream):
                time = moment + step - begin if frame.time is None else frame.time
                first = time if first is None else first
                moment = begin + time - first
                yield moment, self._array(frame)
            if self._is_live:
                return
            if first is None:
                raise ValueError("it has no pictures")
            begin = moment + step
            self._container.seek(0)

    def _array(self, frame: Any) -> Array:
        width, height = covering((frame.width, frame.height), self._enough)
        scaled = frame.reformat(width=width, height=height, format="rgba", interpolation="AREA")
        turns = round(getattr(frame, "rotation", 0) / 90) % 4  # a telephone that was held upright
        return np.ascontiguousarray(np.rot90(scaled.to_ndarray(), turns))

    def _put(self, item: tuple[float, Array] | Exception) -> bool:
        """Hand a picture over. Return False after the end. A camera's new picture replaces its old one."""
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=0 if self._is_live else 0.1)
                return True
            except Full:
                if self._is_live and not isinstance(item, Exception):
                    with suppress(Empty):
                        self._queue.get_nowait()
        return False


def _open_video(path: Path) -> InputContainer:
    av = _av("reading a video")
    try:
        container: InputContainer = av.open(str(path))
    except _FAILURES as error:
        raise InputError(f"{str(path)!r} is neither a picture nor a video: {error}") from error
    if not container.streams.video:
        container.close()
        raise InputError(f"{str(path)!r} has no pictures, only sound")
    return container


def _open_camera(name: str, enough: Size) -> Stream:
    av = _av("a camera")
    system, device = _CAMERAS.get(sys.platform, _CAMERAS["linux"])
    options = {"framerate": "30"} if system == "avfoundation" else {}  # it has no default that all cameras know
    try:
        container = av.open(device.format(name), format=system, options=options)
    except _FAILURES as error:
        hint = "; on Windows give its name: camera:NAME" if system == "dshow" else ""
        raise InputError(f"camera {name} ({device.format(name)}) cannot be opened: {error}{hint}") from error
    return Stream(container, f"camera {name}", enough, is_live=True)


def _av(purpose: str) -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("PyAV", "demos", purpose) from error
    return av
