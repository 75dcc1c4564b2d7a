"""Sources of sound: samples of a file or a microphone, which a frame takes and never waits for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import finalize

import numpy as np

from perframe.errors import ClosedError, InputError
from perframe.media.picture import expanded
from perframe.media.samples import RateConverter, SampleRing, Samples, Sound, checked_channels, checked_rate
from perframe.media.videos import missing_bytes, require_av

if TYPE_CHECKING:
    from av.container import InputContainer

SECONDS = 2.0  # of sound that wait to be taken
SECONDS_TO_WAIT = 20.0
_GAP, _LONGEST_GAP = 0.1, 600.0  # seconds by which a frame is late, between which silence is put in
_FAILURES = (OSError, ValueError, IndexError)  # PyAV's errors are among them


class SoundFeed(ABC):
    """Where samples come from. It fills a ring until its release."""

    name: str
    """The name in error messages."""
    rate: int
    """Samples a second."""
    channels: int
    is_live = False
    """Whether it is a microphone. Its oldest samples are lost if they are not read in time."""

    def __init__(self, name: str, rate: int, channels: int) -> None:
        self.name, self.rate, self.channels = name, rate, channels
        self.ring = SampleRing(int(rate * SECONDS), channels)
        self.lost = 0
        """Samples of a microphone that were not read in time."""
        self.ended = self.released = False
        self.error: Exception | None = None

    @abstractmethod
    def start(self) -> None:
        """Begin to fill the ring."""

    def release(self) -> None:
        """Stop."""
        with self.ring.changed:
            self.released = True
            self.ring.changed.notify_all()

    def end(self, error: Exception | None = None) -> None:
        """Note that no more samples come, and why."""
        with self.ring.changed:
            self.ended, self.error = True, error
            self.ring.changed.notify_all()


class FileSounds(SoundFeed):
    """The sound of a file, of any kind that FFmpeg reads, which a thread decodes. Raises InputError if it has none."""

    def __init__(self, path: Path, rate: int | None, channels: int, loop: bool) -> None:
        self._path, self._loop = path, loop
        self._av = require_av("reading sound")
        with self._open() as container:
            said = container.streams.audio[0].rate
        super().__init__(f"the sound of {str(path)!r}", rate or checked_rate(int(said)), channels)

    def start(self) -> None:
        """Let a thread decode."""
        Thread(target=self._read, name=f"perframe-media {self.name}", daemon=True).start()

    def _read(self) -> None:
        try:
            while self._decode() and self._loop and self.ring.end:
                pass
        except _FAILURES as error:
            said = f"{self.name} cannot be decoded after {self.ring.end / self.rate:.1f} s: {error}"
            self.end(error if isinstance(error, InputError) else InputError(said))
        else:
            self.end(None if self.ring.end else InputError(f"{self.name} has no samples"))

    def _decode(self) -> bool:
        """Put the whole file into the ring. Return whether the source still lives."""
        begin = self.ring.end
        with self._open() as container:
            stream = container.streams.audio[0]
            zero = _first_time(container)
            converter = RateConverter(self.rate, self.channels)
            for frame in container.decode(stream):
                if frame.time is not None:
                    late = frame.time - zero - (self.ring.end - begin) / self.rate
                    if _GAP < late < _LONGEST_GAP:  # silence that the file leaves out
                        self._put(np.zeros((round(late * self.rate), self.channels), np.float32))
                    elif late + frame.samples / frame.sample_rate < -_GAP:  # from before the first picture
                        continue
                if not self._put(converter.of_frame(frame)):
                    return False
            if missing := missing_bytes(self._path):
                raise InputError(f"{self.name} is truncated: {missing} bytes or more are missing; get a complete copy")
            return self._put(converter.rest())

    def _put(self, samples: Samples) -> bool:
        """Wait for room, and put samples in. Return False after the release."""
        while len(samples):
            with self.ring.changed:
                while not self.ring.room and not self.released:
                    self.ring.changed.wait()
                if self.released:
                    return False
                samples = samples[self.ring.put(samples) :]
        return not self.released

    def _open(self) -> InputContainer:
        try:
            container: InputContainer = self._av.open(f"file:{self._path}")
        except _FAILURES as error:
            said = getattr(error, "strerror", None) or error
            raise InputError(f"{str(self._path)!r} has no sound that can be read: {said}") from error
        if not container.streams.audio:
            container.close()
            raise InputError(f"{str(self._path)!r} has no sound in it")
        return container


def _first_time(container: InputContainer) -> float:
    """The time of a film's first picture, on the file's own clock; without pictures, that of the first sample."""
    for stream in (*container.streams.video, *container.streams.audio):
        if stream.start_time is not None and stream.time_base is not None:
            return float(stream.start_time * stream.time_base)
    return 0.0


class SoundSource:
    """Sound that another thread makes ready, so that the frame loop never waits for it.

    In a frame loop, call `read(512, frame.time)` until it returns None. It never blocks. A file gives every sample: its
    thread decodes two seconds ahead. A microphone keeps two seconds, and counts older samples as `lost`. Opening a file
    waits for its first samples, and raises InputError if there are none. `with`, `release` and dropping the source end
    it.
    """

    def __init__(self, feed: SoundFeed) -> None:
        self._feed, self._ring = feed, feed.ring
        finalize(self, feed.release)
        feed.start()
        if not feed.is_live:
            try:
                self._wait(1)
            except BaseException:
                self.release()
                raise

    @property
    def name(self) -> str:
        """The name in error messages."""
        return self._feed.name

    @property
    def rate(self) -> int:
        """Samples a second."""
        return self._feed.rate

    @property
    def channels(self) -> int:
        """1 or 2."""
        return self._feed.channels

    @property
    def is_live(self) -> bool:
        """Whether it is a microphone."""
        return self._feed.is_live

    @property
    def waiting(self) -> int:
        """The samples that are ready."""
        return self._ring.waiting

    @property
    def lost(self) -> int:
        """The samples of a microphone that were not taken within two seconds."""
        return self._feed.lost

    @property
    def ended(self) -> bool:
        """Whether the last sample was taken."""
        return self._feed.ended and not self._ring.waiting and self._feed.error is None

    def read(self, count: int, until: float | None = None) -> Sound | None:
        """The next `count` samples; None until all of them are there. Never blocks.

        With `until`, a file gives only samples that have sounded by this time in seconds, as `frame.time`. Silence
        fills its last piece up. Raises InputError if the source fails or cannot hold as many samples, and ClosedError
        after its release.
        """
        self._check(count)
        with self._ring.changed:
            ready, begin = self._ring.waiting, self._ring.begin
            if ready < count and not (self._feed.ended and ready):
                self._raise()
                return None
            if until is not None and not self.is_live and begin + count > until * self.rate + 1e-6:
                return None
            samples = np.zeros((count, self.channels), np.float32)
            self._ring.take(samples[: min(ready, count)])
        return Sound(samples, self.rate, begin, begin / self.rate)

    def pieces(self, count: int) -> Iterator[Sound]:
        """All samples in pieces of `count`. Blocks for each. Raises as `read` does."""
        while True:
            self._wait(count)
            piece = self.read(count)
            if piece is None:
                return
            yield piece

    def release(self) -> None:
        """End the thread or close the microphone. May be called twice."""
        self._feed.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _check(self, count: int) -> None:
        if self._feed.released:
            raise ClosedError(f"{self.name} was used after the source's release")
        most = int(self.rate * SECONDS)
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 0 < count <= most:
            raise InputError(f"read takes a number of samples, 1 to {most:,} ({SECONDS:g} s), not {count!r}")

    def _raise(self) -> None:
        if self._feed.error is not None:
            raise self._feed.error

    def _wait(self, count: int) -> None:
        """Wait until there are as many samples, or the end."""
        self._check(count)
        end = monotonic() + SECONDS_TO_WAIT
        with self._ring.changed:
            while self._ring.waiting < count and not self._feed.ended:
                if self._feed.released:
                    raise ClosedError(f"{self.name} was used after the source's release")
                if not self._ring.changed.wait(end - monotonic()) and monotonic() >= end:
                    raise InputError(f"{self.name} gave no sound within {SECONDS_TO_WAIT:g} s")
            if not self._ring.waiting:
                self._raise()


def open_sound(path: str | Path, rate: int | None = None, channels: int = 1, loop: bool = False) -> SoundSource:
    """Open the sound of a file, or of a film, for a frame loop: `rate` samples a second, by default the file's own.

    With `loop` it begins again at its end. Waits for the first samples. Raises InputError, and MissingExtraError
    without PyAV.
    """
    return SoundSource(FileSounds(*_checked(path, rate, channels), loop))


def read_sound(path: str | Path, rate: int | None = None, channels: int = 1, seconds: float | None = None) -> Sound:
    """Read the sound of a file, or its first `seconds`, at once. Blocks. Raises as `open_sound` does."""
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InputError(f"seconds is a number above 0, not {seconds!r}")
    with open_sound(path, rate, channels) as source:
        most = None if seconds is None else round(seconds * source.rate)
        parts, count = list[Samples](), 0
        while most is None or count < most:
            source._wait(1)
            ready = min(source.waiting, int(source.rate * SECONDS), (most or source.waiting + count) - count)
            piece = source.read(ready) if ready else None
            if piece is None:
                break
            parts.append(piece.samples)
            count += len(piece.samples)
        return Sound(np.concatenate(parts), source.rate)


def _checked(path: str | Path, rate: int | None, channels: int) -> tuple[Path, int | None, int]:
    file = expanded(path)
    if not file.is_file():
        raise InputError(
            f"{str(file)!r} does not exist; open_sound takes a file with sound; open_source('microphone') records"
        )
    return file, None if rate is None else checked_rate(rate), checked_channels(channels)
