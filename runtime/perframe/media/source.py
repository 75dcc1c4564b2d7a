"""Sources: pictures that a thread makes ready, so that the frame loop never waits for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from types import TracebackType
from typing import Any, Literal, overload
from weakref import finalize

from perframe.errors import ClosedError, InputError
from perframe.media.feeds import RATE, AnimationFeed, DrawnFeed, Feed, FolderFeed, Scene, StillFeed
from perframe.media.picture import PICTURES, Picture, Pixels, Size, expanded, is_name, is_size, open_picture
from perframe.media.sound_devices import BLOCK, Microphone, check_of_sound
from perframe.media.sound_source import SoundSource

SECONDS_FOR_A_PICTURE = 20.0
AHEAD = 4  # pictures of a file that are decoded before they are asked for
_KINDS = (
    "a picture, a folder of pictures, a video, camera, camera:1, screen, screen:X,Y,WIDTH,HEIGHT, ndi:NAME, scene, "
    "microphone"
)


class _PictureReader:
    """Reads pictures, in a thread. It knows nothing of its source, so that a source that nobody holds ends it.

    `ready` and what follows are guarded by `changed`.
    """

    def __init__(self, feed: Feed, loops: bool, first: int) -> None:
        self.feed, self._loops, self._first = feed, loops, first
        self.changed = Condition()
        self.ready: deque[Picture] = deque()
        self.end: Exception | None = None
        self.reading, self.released = True, False
        self.thread = Thread(target=self._read, name=f"perframe-media {feed.name}", daemon=True)
        self.thread.start()

    def release(self) -> None:
        """Let the thread end; it closes the file or the device."""
        with self.changed:
            self.released = True
            self.ready.clear()
            self.changed.notify_all()

    def _read(self) -> None:
        try:
            for picture in self._pictures():
                if not self._put(picture):
                    break
        except Exception as error:  # it is raised where the pictures are taken
            self.end = error
        finally:
            with self.changed:
                self.reading = False
                self.changed.notify_all()

    def _pictures(self) -> Iterator[Picture]:
        index, begin = 0, 0.0
        for _ in count():
            last: Picture | None = None
            for picture in self.feed.pictures(self._first):
                last = replace(picture, index=index + picture.index, time=begin + picture.time) if index else picture
                yield last
            if last is None and not self._first:
                raise InputError(f"{self.feed.name} has no pictures")
            if not self._loops or last is None:
                return
            index, begin = last.index + 1, last.time + float(1 / self.feed.rate)

    def _put(self, picture: Picture) -> bool:
        """Hand a picture over. Return False after the release. A live picture replaces the one before."""
        with self.changed:
            if self.feed.is_live:
                self.ready.clear()
            while len(self.ready) >= AHEAD and not self.released:
                self.changed.wait()
            if not self.released:
                self.ready.append(picture)
                self.changed.notify_all()
            return not self.released


class Source:
    """Pictures of a feed, which a thread reads.

    In a frame loop, ask `picture_at(frame.time)`: it never blocks. To get every picture in order, iterate; this blocks.
    A file gives every picture, and its thread waits where nobody takes them; something live gives its newest.
    With `loop` a file begins again at its end. Making a source waits for its first picture, so that one that cannot be
    read fails at once: raises InputError. `with` or `release` ends the thread; so does dropping the source.
    """

    def __init__(self, feed: Feed, loop: bool = False, first: int = 0) -> None:
        self.feed = feed
        self.ended = False
        """Whether the last picture was taken."""
        self._reader = _PictureReader(feed, loop and not feed.is_still and not feed.is_live, first)
        finalize(self, self._reader.release)
        try:
            self._wait(SECONDS_FOR_A_PICTURE)
        except BaseException:
            self.release()
            raise

    @property
    def name(self) -> str:
        """The name in error messages."""
        return self.feed.name

    @property
    def is_live(self) -> bool:
        """Whether only its newest picture counts, as for a camera."""
        return self.feed.is_live

    @property
    def is_still(self) -> bool:
        """Whether it is one picture that stays."""
        return self.feed.is_still

    @property
    def rate(self) -> Fraction:
        """Pictures a second; approximate for live sources."""
        return self.feed.rate

    def picture_at(self, time: float, wait: bool = False) -> Picture | None:
        """The last picture up to this time in seconds, of something live the newest; None while it is the one before.

        Never blocks, unless `wait` asks for the right one, however long it takes. Raises InputError if the source
        fails, and ClosedError after its release.
        """
        newest: Picture | None = None
        while True:
            if not self._reader.ready and wait and not (newest and self.is_live):
                self._wait(SECONDS_FOR_A_PICTURE)
            with self._reader.changed:
                if not self._is_there() or not (self.is_live or self._reader.ready[0].time <= time + 1e-9):
                    break
                newest = self._take()
        return newest

    def __iter__(self) -> Iterator[Picture]:
        """Every picture in order, of something live those that are there in time. Blocks for each.

        Raises as `picture_at` does.
        """
        while True:
            self._wait(SECONDS_FOR_A_PICTURE)
            with self._reader.changed:
                if not self._is_there():
                    return
                picture = self._take()
            yield picture

    def release(self) -> None:
        """End the thread, which closes the file or the device. May be called twice."""
        self._reader.release()
        self._reader.thread.join(2.0)  # a camera may be waiting for its next picture

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _is_there(self) -> bool:
        """Whether there is a picture. Raises the reader's error after the last one."""
        if self._reader.released:
            raise ClosedError(f"{self.name} was used after the source's release")
        if self._reader.ready:
            return True
        if not self._reader.reading:
            self.ended = True
            if self._reader.end is not None:
                raise self._reader.end
        return False

    def _take(self) -> Picture:
        picture = self._reader.ready.popleft()
        self._reader.changed.notify_all()
        self.ended = not self._reader.ready and not self._reader.reading and self._reader.end is None
        return picture

    def _wait(self, seconds: float) -> None:
        """Wait until there is a picture, or the end."""
        end = monotonic() + seconds
        with self._reader.changed:
            while not (self._is_there() or not self._reader.reading):
                if not self._reader.changed.wait(end - monotonic()) and monotonic() >= end:
                    raise InputError(f"{self.name} gave no picture within {seconds:g} s")


@overload
def open_source(  # type: ignore[overload-overlap]
    name: Literal["microphone"],
    enough: None = None,
    loop: bool = False,
    rate: int | None = None,
    *,
    channels: int = 1,
    block: int = BLOCK,
) -> SoundSource: ...


@overload
def open_source(
    name: str | Path, enough: Size | None = None, loop: bool = False, rate: float | Fraction | None = None
) -> Source: ...


def open_source(
    name: str | Path,
    enough: Size | None = None,
    loop: bool = False,
    rate: Any = None,
    *,
    channels: int = 1,
    block: int = BLOCK,
) -> Source | SoundSource:
    """Open pictures by name: a picture file, a folder of pictures, a video, "camera" or "camera:1", "screen" or
    "screen:X,Y,WIDTH,HEIGHT" (of the desktop), "ndi:NAME" (video over the network), "scene" or "scene:640x360" (our
    own). A file or folder of such a name comes first.

    Pictures that are larger are scaled down to cover `enough`, a width and height. `rate` is the pictures a second of a
    folder, a screen or a scene. Waits for the first picture. Raises InputError, and MissingExtraError where a package
    is missing.

    "microphone" gives a SoundSource, and so does "microphone:1" or "microphone:NAME", by a part of its name: `rate`
    samples a second (by default the device's own) on 1 or 2 `channels`. The device brings `block` samples at a time.
    """
    kind, _, rest = str(name).partition(":")
    if kind == "microphone" and not expanded(name).exists():
        if enough is not None or loop:
            raise InputError("enough is for pictures, and loop for files: a microphone has neither")
        return SoundSource(Microphone(rest, rate, channels, block))
    check_of_sound(channels, block, "microphone")
    return Source(open_feed(name, enough, rate), loop)


def draw_source(draw: Callable[[float], Pixels], rate: float | Fraction = RATE, count: int | None = None) -> Source:
    """A source of pictures that a function draws, `rate` a second: `draw(seconds)` returns H x W x 3 of uint8.

    A thread calls it. `count` pictures, or without end.
    """
    return Source(DrawnFeed(draw, as_rate(rate), count))


def open_feed(
    name: str | Path, enough: Size | None = None, rate: float | Fraction | None = None, one_size: bool = False
) -> Feed:
    """Open the feed of a name that `open_source` takes; raises as it does. With `one_size` all pictures of a film have
    the size of the first.
    """
    if not is_name(name):
        raise InputError(f"a source is {_KINDS}, by its name or path, not {name!r}")
    if enough is not None and not is_size(enough):
        raise InputError(f"enough is width and height in whole pixels, as enough=(640, 360), not {enough!r}")
    kind, _, rest = str(name).partition(":")
    if expanded(name).exists():
        kind = ""  # a file or a folder of ours by chance
    given: dict[str, Any] = {} if rate is None else {"rate": as_rate(rate)}
    if kind == "camera":
        from perframe.media.videos import CameraFeed

        return CameraFeed(rest or "0", enough)
    if kind == "screen":
        from perframe.media.videos import ScreenFeed

        return ScreenFeed(_region(rest) if rest else None, **given)
    if kind == "ndi":
        from perframe.media.ndi import NdiFeed

        return NdiFeed(rest, enough)
    if kind in ("spout", "syphon"):
        raise InputError(f"{kind} brings textures: pf.TextureConverter(ctx).open_source({str(name)!r})")
    if kind == "scene":
        return DrawnFeed(Scene(_size(rest)) if rest else Scene(), **given)
    path = expanded(name)
    if path.is_dir():
        return FolderFeed(path, enough, **given)
    if not path.is_file():
        raise InputError(f"{str(path)!r} does not exist; a source is {_KINDS}")
    from PIL import UnidentifiedImageError

    try:
        with open_picture(path) as image:
            moves = getattr(image, "is_animated", False) and image.format in ("GIF", "PNG", "WEBP")
        return AnimationFeed(path, enough) if moves else StillFeed(path, enough)
    except UnidentifiedImageError as error:
        if path.suffix.lower() in PICTURES:
            raise InputError(f"{str(path)!r} is not a picture, despite its name") from error
    from perframe.media.videos import VideoFeed

    return VideoFeed(path, enough, one_size)


def as_rate(rate: float | Fraction) -> Fraction:
    """Pictures a second as a fraction. Raises InputError."""
    try:
        made = Fraction(rate).limit_denominator(1001)
    except (TypeError, ValueError, OverflowError):
        made = Fraction(0)
    if not 0 < made <= 1000:
        raise InputError(f"a rate is a number of pictures a second, above 0 and up to 1000, not {rate!r}")
    return made


def _region(text: str) -> tuple[int, int, int, int]:
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"a region of the screen is screen:X,Y,WIDTH,HEIGHT, not {text!r}") from None
    return x, y, width, height


def _size(text: str) -> Size:
    try:
        width, height = (int(part) for part in text.split("x"))
    except ValueError:
        width = height = 0
    if not (0 < width <= 8192 and 0 < height <= 8192):
        raise InputError(f"a scene is scene:WIDTHxHEIGHT, up to 8192 pixels a side, not {text!r}")
    return width, height
