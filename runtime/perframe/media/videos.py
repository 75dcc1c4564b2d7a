"""Videos, cameras and screens."""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from io import SEEK_END
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from perframe.errors import InputError, MissingExtraError
from perframe.media.feeds import RATE, Feed
from perframe.media.frames import Colors, is_turned, pixel_aspect
from perframe.media.picture import Picture, Size, covering
from perframe.media.planes import FrameReader

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame

_CAMERAS = {"linux": ("v4l2", "/dev/video{}"), "darwin": ("avfoundation", "{}"), "win32": ("dshow", "video={}")}
_FAILURES = (OSError, ValueError, IndexError)  # PyAV's errors are among them
_TOLERANCE = 0.5  # seconds by which a file's length may be wrong
_ROUNDING = 0.00125  # seconds: containers round times to milliseconds
_FASTEST = 240  # pictures a second that a film may have
_PACKETS_FOR_A_RATE = 100
Region = tuple[int, int, int, int]
_SEGMENT = bytes.fromhex("18538067")  # of Matroska and WebM
_MOST_BOXES = 100_000


class VideoFeed(Feed):
    """A video file. Raises InputError if it is none, and MissingExtraError without PyAV.

    A film's size may change, as that of a stream which adapts to its network. With `one_size` all pictures are scaled
    to the first one's, and converted to pixels ahead.
    """

    def __init__(self, path: Path, enough: Size | None = None, one_size: bool = False) -> None:
        self.name, self.path, self._enough, self._one_size = f"the video {str(path)!r}", path, enough, one_size
        with self._open() as container:
            stream = container.streams.video[0]
            said = stream.average_rate or stream.guessed_rate
        self.rate = RATE if said is None else Fraction(said)
        if said is None or said > _FASTEST:  # a recorder's clock, and no rate of pictures
            self.rate = self._measured_rate() or self.rate

    @property
    def count(self) -> int:
        """The number of pictures. The file is read for it once, without decoding. Raises InputError if it is cut."""
        return len(self._times)

    @property
    def is_steady(self) -> bool:
        """Whether the pictures come at equal times. The file is read for it once."""
        if None in self._times:
            return True
        times = (np.array(self._times, np.float64) - (self._times[0] or 0)) * float(self._time_base)
        return bool((np.abs(times - np.arange(len(times)) / float(self.rate)) <= _ROUNDING).all())

    def time_of(self, index: int) -> Fraction:
        """The time of a picture, by the file."""
        time, first = self._times[index], self._times[0]
        return index / self.rate if time is None or first is None else (time - first) * self._time_base

    @cached_property
    def colors(self) -> Colors:
        """The first picture's color tags."""
        return Colors.of(self._first_frame)

    @cached_property
    def begin(self) -> Fraction:
        """The first picture's time on the file's own clock, on which its sound has times too."""
        return (self._times[0] or 0) * self._time_base

    @cached_property
    def _format(self) -> str:
        """The container's format. Times in the middle of "mpeg", a program stream, are guesses."""
        with self._open() as container:
            return str(container.format.name)

    @cached_property
    def _time_base(self) -> Fraction:
        with self._open() as container:
            return Fraction(container.streams.video[0].time_base or 1)

    @cached_property
    def _first_frame(self) -> VideoFrame:
        try:
            with self._open() as container:
                return next(container.decode(video=0))
        except (*_FAILURES, StopIteration) as error:
            raise InputError(f"{self.name} has no picture that can be decoded: {error}") from error

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
        self._check_end(len(times))
        if not times or end + _TOLERANCE < said:
            raise self._cut(len(times), ValueError(f"it says that it lasts {said:.2f} s, and ends after {end:.2f} s"))
        if None in times or len(set(times)) < len(times):
            return [None] * len(times)
        return sorted(times, key=lambda time: time or 0)

    def _measured_rate(self) -> Fraction | None:
        """The pictures a second at the beginning of the file."""
        with self._open() as container, suppress(*_FAILURES):
            stream = container.streams.video[0]
            packets = islice((packet for packet in container.demux(stream) if packet.size), _PACKETS_FOR_A_RATE)
            times = sorted(packet.pts for packet in packets if packet.pts is not None)
            if len(times) > 1 and times[-1] > times[0] and stream.time_base:
                return ((len(times) - 1) / ((times[-1] - times[0]) * stream.time_base)).limit_denominator(1001)
        return None

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """Decode them. A part in the middle is found without decoding what lies before, where the file has times."""
        if first and first >= self.count:
            return
        begins = [first, 0] if first and self._times[0] is not None and self._format != "mpeg" else [0]
        expected = first
        try:
            for begin in begins:
                for index, picture in self._decode(begin):
                    if begin and (index > expected or (index == expected and picture is None)):
                        break  # the file's index led too far, or to pictures that need others: from the beginning, then
                    if index < expected:
                        continue
                    if picture is None:
                        raise self._damaged(index)
                    yield picture
                    expected = index + 1
                else:
                    if not begin or expected == self.count:
                        return
        except InputError:
            raise
        except _FAILURES as error:
            raise InputError(f"{self.name} cannot be decoded: {error}") from error

    def _decode(self, begin: int) -> Iterator[tuple[int, Picture | None]]:
        """All pictures with their index, from the one before `begin` that needs no other; None for a damaged one."""
        times = self._times if begin or "_times" in self.__dict__ else []  # to play it, nobody needs to count
        first_pts, read = times[0] if times else None, 0
        exact = covering(self._film_size, self._enough) if self._one_size else None
        reader = FrameReader(self._enough, exact)
        with self._open() as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            decode = _decoder(stream)
            if begin:
                container.seek(times[begin] or 0, stream=stream)
            for packet in container.demux(stream):
                self._check(packet, read)
                for frame in decode(packet):
                    index, time = read, float(read / self.rate)
                    if frame.pts is not None and frame.time_base is not None:
                        if first_pts is None:
                            first_pts = frame.pts
                        if times and times[0] is not None:
                            index = bisect_left(times, frame.pts)  # type: ignore[type-var]
                        time = float((frame.pts - first_pts) * frame.time_base)
                    read += 1
                    picture = None
                    if not frame.is_corrupt:
                        aspect = pixel_aspect(stream, is_turned(frame))
                        picture = Picture(reader.read(frame), index, time, aspect)
                    yield index, picture
            self._check_end(read)

    @cached_property
    def _film_size(self) -> Size:
        """The first picture's size, upright."""
        frame = self._first_frame
        return (frame.height, frame.width) if is_turned(frame) else (frame.width, frame.height)

    def _check(self, packet: Any, read: int) -> None:
        is_broadcast = packet.stream.container.format.name == "mpegts"  # joined recordings look corrupt where they meet
        if packet.is_corrupt and not is_broadcast:
            raise self._cut(read, ValueError("the rest of a picture is missing"))

    def _check_end(self, read: int) -> None:
        if missing := missing_bytes(self.path):
            raise self._cut(read, ValueError(f"{missing} bytes or more are missing at its end"))

    def _damaged(self, index: int) -> InputError:
        return InputError(f"{self.name} is damaged: parts of picture {index} are missing; get a whole copy of the file")

    def _cut(self, read: int, error: Exception) -> InputError:
        return InputError(f"{self.name} is truncated or damaged after {read} pictures: {error}; get a complete copy")

    def _open(self) -> InputContainer:
        path = str(self.path)
        av = require_av(f"{path!r} is not a picture; reading a video")
        try:
            container: InputContainer = av.open(f"file:{path}")  # or a colon in a name would name a protocol
        except FileNotFoundError as error:
            raise InputError(f"{self.name} does not exist any more") from error
        except _FAILURES as error:
            said = getattr(error, "strerror", None) or error
            raise InputError(f"{path!r} is neither a picture nor a video, or it is cut: {said}") from error
        if not container.streams.video:
            container.close()
            raise InputError(f"{path!r} has no pictures, only sound: pf.media.open_sound reads it")
        return container


def _decoder(stream: Any) -> Callable[[Any], list[VideoFrame]]:
    """A function that decodes packets of a stream. FFmpeg's own decoders of VP8 and VP9 forget transparency."""
    name = {"vp8": "libvpx", "vp9": "libvpx-vp9"}.get(stream.codec_context.name)
    if stream.metadata.get("alpha_mode") == "1" and name is not None:
        av = require_av("reading a video")
        if name in av.codecs_available:
            decoder = av.CodecContext.create(name, "r")
            return lambda packet: decoder.decode(packet if packet.size else None)
    return lambda packet: packet.decode()


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
        reader, stream = FrameReader(self._enough), self._container.streams.video[0]
        try:
            with self._container:
                for index, frame in enumerate(self._container.decode(video=0)):
                    time = float(index / self.rate) if frame.time is None else frame.time
                    began = time if began is None else began
                    aspect = pixel_aspect(stream, is_turned(frame))
                    yield Picture(reader.read(frame), index, time - began, aspect)
        except _FAILURES as error:
            raise InputError(f"{self.name} failed: {error}; is it still plugged in?") from error
        raise InputError(f"{self.name} ended; is it still plugged in?")


def require_av(purpose: str) -> Any:
    """PyAV. Raises MissingExtraError."""
    try:
        import av
    except ImportError as error:
        raise MissingExtraError("PyAV", "video", purpose) from error
    return av


class ScreenFeed(Feed):
    """A region of the desktop: x, y, width, height in pixels from its top left corner; or all of the first screen.

    Raises InputError where there is no screen or the region has no pixels, and MissingExtraError without mss.
    """

    is_live = True

    def __init__(self, region: Region | None = None, rate: Fraction = Fraction(30)) -> None:
        self.name, self.rate, self._region = "the screen", rate, region
        if region is not None and min(region[2:]) < 1:
            raise InputError(f"a region of the screen is x, y, width, height; {region} has no pixels")
        try:
            import mss
        except ImportError as error:
            raise MissingExtraError("mss", "screen", "reading the screen") from error
        self._mss: Any = mss

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The screen, `rate` times a second."""
        began = time.perf_counter()
        index = 0
        try:
            with self._mss.MSS() as screens:
                area: Any = screens.monitors[1]
                if self._region is not None:
                    area = dict(zip(("left", "top", "width", "height"), self._region, strict=True))
                while True:
                    now = time.perf_counter() - began
                    shot = screens.grab(area)
                    bgra = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
                    yield Picture(np.ascontiguousarray(bgra[..., 2::-1]), index, now)
                    index += 1
                    time.sleep(max(0.0, float(index / self.rate) - (time.perf_counter() - began)))
        except (self._mss.ScreenShotError, OSError, IndexError) as error:
            raise InputError(f"the screen cannot be read: {error}") from error


def missing_bytes(path: Path) -> int:
    """The bytes that a Matroska, MP4, QuickTime, AVI or WAV file lacks at its end; 0 where that cannot be known."""
    with open(path, "rb") as file:
        length = file.seek(0, SEEK_END)
        file.seek(0)
        head = file.read(12)
        if head[:4] == b"\x1a\x45\xdf\xa3":
            end = _matroska_end(file)
        elif head[:4] == b"RIFF" and head[8:] in (b"AVI ", b"WAVE"):
            end = _riff_end(file)
        elif head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
            end = _boxes_end(file, length)
        else:
            return 0
    return max(0, end - length)


def _riff_end(file: BinaryIO) -> int:
    """The end of the last RIFF chunk. Long films have several; a program that was killed leaves a size of 0."""
    at = 0
    for _ in range(_MOST_BOXES):
        file.seek(at)
        head = file.read(8)
        size = int.from_bytes(head[4:], "little")
        if head[:4] != b"RIFF" or size in (0, 0xFFFFFFFF):
            break
        at += 8 + size + size % 2
    return at


def _matroska_end(file: BinaryIO) -> int:
    """The end of the segment; 0 for a streamed segment of unknown length."""
    file.seek(4)
    size, _ = _variable_number(file)
    file.seek(size, 1)
    if file.read(4) != _SEGMENT:
        return 0
    size, is_known = _variable_number(file)
    return file.tell() + size if is_known else 0


def _variable_number(file: BinaryIO) -> tuple[int, bool]:
    """An EBML number, and whether it is known: all ones mean unknown."""
    first = file.read(1)
    if not first or not first[0]:
        return 0, False
    extra = 8 - first[0].bit_length()
    rest = file.read(extra)
    bits = 7 * (extra + 1)
    number = int.from_bytes(first + rest, "big") & ((1 << bits) - 1)
    return number, len(rest) == extra and number != (1 << bits) - 1


def _boxes_end(file: BinaryIO, length: int) -> int:
    """The end of the last box of an MP4 file."""
    at = 0
    for _ in range(_MOST_BOXES):
        if at + 8 > length:
            break
        file.seek(at)
        head = file.read(16)
        size = int.from_bytes(head[:4], "big")
        if size == 1:
            size = int.from_bytes(head[8:16], "big")
        if size < 8 or not head[4:8].isalnum():  # to the end of the file, or no box: other bytes may follow the film
            break
        at += size
    return at
