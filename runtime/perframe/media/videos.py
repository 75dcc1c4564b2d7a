"""Videos and cameras, which PyAV reads."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.errors import InputError, MissingExtraError
from perframe.media.feeds import RATE, Feed
from perframe.media.picture import Picture, Pixels, Size, covering

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame

_CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}"), "win32": ("dshow", "video={}")}
_FAILURES = (OSError, ValueError, IndexError)  # PyAV's errors are among them
_TOLERANCE = 0.5  # seconds by which a file's length may be wrong


class VideoFeed(Feed):
    """A video file. Raises InputError if it is none, and MissingExtraError without PyAV."""

    def __init__(self, path: Path, enough: Size | None = None) -> None:
        self.name, self.path, self._enough = f"the video {str(path)!r}", path, enough
        with self._open() as container:
            stream = container.streams.video[0]
            self.rate = Fraction(stream.average_rate or stream.guessed_rate or RATE)

    @property
    def count(self) -> int:
        """The number of pictures. The file is read for it once, without decoding. Raises InputError if it is cut."""
        return len(self._times)

    @cached_property
    def _times(self) -> list[int | None]:
        """The times of all pictures in the order in which they are shown; Nones where the file has no times."""
        times: list[int | None] = []
        end = 0.0  # of the longest stream, in seconds
        try:
            with self._open() as container:
                shown = container.streams.video[0]
                for packet in container.demux():
                    self._check(packet, len(times))
                    if packet.stream == shown and packet.size and not packet.is_discard:
                        times.append(packet.pts)
                    if packet.pts is not None and packet.time_base is not None:
                        end = max(end, float((packet.pts + (packet.duration or 0)) * packet.time_base))
                said = (container.duration or 0) / 1e6 if "matroska" in container.format.name else 0.0
        except InputError:
            raise
        except _FAILURES as error:
            raise self._cut(len(times), error) from error
        if not times or end + _TOLERANCE < said:
            raise self._cut(len(times), ValueError(f"it says that it lasts {said:.2f} s, and ends after {end:.2f} s"))
        if None in times or len(set(times)) < len(times):
            return [None] * len(times)
        return sorted(times, key=lambda time: time or 0)

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """Decode them. A part in the middle is found without decoding what lies before, where the file has times."""
        if first and first >= self.count:
            return
        begins = [first, 0] if first and self._times[0] is not None else [0]
        try:
            for begin in begins:
                for picture in self._decode(begin):
                    if begin and picture.index > first:
                        break  # the file's index led too far: from the beginning, then
                    if picture.index >= first:
                        yield picture
                        begin = 0
                else:
                    return
        except InputError:
            raise
        except _FAILURES as error:
            raise InputError(f"{self.name} cannot be decoded: {error}") from error

    def _decode(self, begin: int) -> Iterator[Picture]:
        """All pictures from the one before `begin` that needs no other."""
        times = self._times if begin or "_times" in self.__dict__ else []  # to play it, nobody needs to count
        origin, read = times[0] if times else None, 0
        with self._open() as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            if begin:
                container.seek(times[begin] or 0, stream=stream)
            for packet in container.demux(stream):
                self._check(packet, read)
                for frame in packet.decode():
                    index, time = read, float(read / self.rate)
                    if frame.pts is not None and frame.time_base is not None:
                        if origin is None:
                            origin = frame.pts
                        if times and times[0] is not None:
                            index = bisect_left(times, frame.pts)  # type: ignore[type-var]
                        time = float((frame.pts - origin) * frame.time_base)
                    read += 1
                    yield Picture(_array(frame, self._enough), index, time)

    def _check(self, packet: Any, read: int) -> None:
        if packet.is_corrupt:
            raise self._cut(read, ValueError("the rest of a picture is missing"))

    def _cut(self, read: int, error: Exception) -> InputError:
        return InputError(f"{self.name} is cut or damaged after {read} pictures: {error}; get a whole copy of the file")

    def _open(self) -> InputContainer:
        av = require_av("reading a video")
        path = str(self.path)
        try:
            container: InputContainer = av.open(path)
        except FileNotFoundError as error:
            raise InputError(f"{self.name} does not exist any more") from error
        except _FAILURES as error:
            raise InputError(f"{path!r} is neither a picture nor a video, or it is cut: {error}") from error
        if not container.streams.video:
            container.close()
            raise InputError(f"{path!r} has no pictures, only sound")
        return container


class CameraFeed(Feed):
    """A camera, by its number or its name. Raises InputError if it cannot be opened, and where it is unplugged."""

    is_live = True

    def __init__(self, name: str = "0", enough: Size | None = None) -> None:
        av = require_av("a camera")
        system, device = _CAMERAS.get(sys.platform, _CAMERAS["linux"])
        options = {"framerate": "30"} if system == "avfoundation" else {}  # it has no default that all cameras know
        self.name, self._enough = f"camera {name}", enough
        try:
            self._container: InputContainer = av.open(device.format(name), format=system, options=options)
        except _FAILURES as error:
            hint = "; on Windows give its name: camera:NAME" if system == "dshow" else ""
            raise InputError(f"camera {name} ({device.format(name)}) cannot be opened: {error}{hint}") from error
        self.rate = Fraction(self._container.streams.video[0].average_rate or RATE)

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The pictures from now on. They can be read once."""
        began: float | None = None
        try:
            with self._container:
                for index, frame in enumerate(self._container.decode(video=0)):
                    time = float(index / self.rate) if frame.time is None else frame.time
                    began = time if began is None else began
                    yield Picture(_array(frame, self._enough), index, time - began)
        except _FAILURES as error:
            raise InputError(f"{self.name} failed: {error}; is it still plugged in?") from error
        raise InputError(f"{self.name} ended; is it still plugged in?")


def _array(frame: VideoFrame, enough: Size | None) -> Pixels:
    size = covering((frame.width, frame.height), enough)
    scaled = frame.reformat(width=size[0], height=size[1], format="rgb24", interpolation="AREA")
    turns = round(getattr(frame, "rotation", 0) / 90) % 4  # a telephone that was held upright
    return np.ascontiguousarray(np.rot90(scaled.to_ndarray(), turns))


def require_av(purpose: str) -> Any:
    """PyAV. Raises MissingExtraError."""
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("PyAV", "video", purpose) from error
    return av
