"""Microphones and speakers, by the package sounddevice. The device's own thread calls us, and never waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any
from weakref import finalize

import numpy as np

from perframe.errors import ClosedError, InputError, MissingExtraError
from perframe.media.samples import (
    RateConverter,
    SampleRing,
    Samples,
    Sound,
    checked_channels,
    checked_rate,
    checked_samples,
)
from perframe.media.sinks import Output
from perframe.media.sound_source import SECONDS, SoundFeed

BLOCK = 512  # samples that a device gives or takes at a time
AHEAD = 2  # blocks that wait before a speaker begins
SPARE = 1024  # samples that a converter may hold back, and give later
_GRACE = 5.0  # seconds after which a speaker that plays nothing is given up


def require_sounddevice(purpose: str) -> Any:
    """The package sounddevice. Raises MissingExtraError without it, and InputError without the library PortAudio."""
    try:
        import sounddevice
    except ImportError as error:
        raise MissingExtraError("sounddevice", "sound", purpose) from error
    except OSError as error:
        raise InputError(f"{purpose} needs PortAudio: apt-get install libportaudio2 ({error})") from error
    return sounddevice


class SoundDevice:
    """A sound device, and a rate that it has: the wanted one, or else its own. Raises InputError, MissingExtraError."""

    def __init__(self, kind: str, device: str, rate: int | None, channels: int) -> None:
        self.name = f"the {kind} {device}".rstrip()
        self.channels = channels
        self._library = library = require_sounddevice(self.name)
        self._device: Any = int(device) if device.isdecimal() else device or None
        self._is_input = kind == "microphone"
        with self._naming():
            said = library.query_devices(self._device, "input" if self._is_input else "output")
            self.rate = int(said["default_samplerate"]) if rate is None else rate
            if rate is not None and not self._has(rate):
                self.rate = int(said["default_samplerate"])

    def open(self, block: int, callback: Any, ended: Any) -> Any:
        """Start a stream that calls back for each `block` of samples, and calls `ended` when it stops."""
        library = self._library
        make = library.InputStream if self._is_input else library.OutputStream
        with self._naming():
            given = {"blocksize": block, "callback": callback, "finished_callback": ended}
            stream = make(**given, **self._settings(self.rate))
            stream.start()
            return stream

    def _has(self, rate: int) -> bool:
        library = self._library
        check = library.check_input_settings if self._is_input else library.check_output_settings
        try:
            check(**self._settings(rate))
        except library.PortAudioError:
            return False
        return True

    def _settings(self, rate: int) -> dict[str, Any]:
        return {"device": self._device, "samplerate": rate, "channels": self.channels, "dtype": "float32"}

    @contextmanager
    def _naming(self) -> Iterator[None]:
        library = self._library
        try:
            yield
        except (library.PortAudioError, ValueError) as error:  # ValueError: there is no such device
            names = ", ".join(sorted({str(one["name"]) for one in library.query_devices()})) or "none"
            raise InputError(f"{self.name} cannot be opened: {error}; the sound devices: {names}") from error


class Microphone(SoundFeed):
    """A microphone, by its number or a part of its name. Raises as `open_source` does."""

    is_live = True

    def __init__(self, device: str = "", rate: int | None = None, channels: int = 1, block: int = BLOCK) -> None:
        wanted = None if rate is None else checked_rate(rate)
        self._device = SoundDevice("microphone", device, wanted, checked_channels(channels))
        super().__init__(self._device.name, wanted or self._device.rate, channels)
        own = self._device.rate
        self._block = max(1, round(checked_block(block) * own / self.rate))
        self._converter = None if own == self.rate else RateConverter(self.rate, channels)
        self._stream: Any = None

    def start(self) -> None:
        """Listen from now on."""
        self._stream = self._device.open(self._block, self._hear, self._stopped)

    def release(self) -> None:
        """Close the device."""
        super().release()
        if self._stream is not None:
            self._stream.close()

    def _stopped(self) -> None:
        if not self.released:
            self.end(InputError(f"{self.name} stopped; is it still plugged in?"))

    def _hear(self, data: Samples, count: int, time: Any, status: Any) -> None:
        """Take a block, in the device's thread."""
        samples = data if self._converter is None else self._converter.convert(data, self._device.rate)
        self.lost += self.ring.put_newest(samples)


class _Playback:
    """What the thread of a speaker uses. It does not refer to the sink, so a dropped sink closes the device."""

    def __init__(self, rate: int, channels: int, ahead: int) -> None:
        self.ring = SampleRing(int(rate * SECONDS) + SPARE, channels)
        self.ahead = ahead
        self.is_playing = self.is_last = self.has_ended = False
        self.dropouts = 0

    @property
    def room(self) -> int:
        """The samples that fit, at the device's rate. Those that a converter held back fit, too."""
        return max(0, self.ring.room - SPARE)

    def end(self) -> None:
        """Note that the device takes no more samples."""
        with self.ring.changed:
            self.has_ended = True
            self.ring.changed.notify_all()

    def play(self, out: Samples, count: int, time: Any, status: Any) -> None:
        """Give the device a block, in its thread: silence where there is no sound."""
        ring = self.ring
        with ring.changed:
            if not self.is_playing:
                self.is_playing = ring.waiting >= (1 if self.is_last else self.ahead)
            ready = min(count, ring.waiting) if self.is_playing else 0
            ring.take(out[:ready])
            out[ready:] = 0
            if self.is_playing and ready < count:
                self.is_playing = False
                self.dropouts += not self.is_last


class SpeakerSink(Output):
    """Plays sound, which a thread of the device takes. `write` never waits.

    It begins when two blocks wait, and again after it ran out of samples (`dropouts`). `with` and `finish` wait until
    all is played; `abandon`, and dropping the sink, end it at once. Raises as `open_sink` does.
    """

    def __init__(self, device: str = "", rate: int = 48_000, channels: int = 1, block: int = BLOCK) -> None:
        self.rate = checked_rate(rate)
        """Samples a second of arrays that are written."""
        self.channels = checked_channels(channels)
        self._device = SoundDevice("speaker", device, self.rate, channels)
        self.name = self._device.name
        own = self._device.rate
        size = max(1, round(checked_block(block) * own / self.rate))
        self._playback = _Playback(own, channels, AHEAD * size)
        self._converters: dict[int, RateConverter] = {}  # by the rate of what is written
        self._stream = self._device.open(size, self._playback.play, self._playback.end)
        self._close = finalize(self, self._stream.close)

    @property
    def waiting(self) -> float:
        """Seconds of sound that are not played yet."""
        return self._playback.ring.waiting / self._device.rate

    @property
    def room(self) -> int:
        """The samples, at `rate`, that can be written now."""
        return int(self._playback.room * self.rate / self._device.rate)

    @property
    def dropouts(self) -> int:
        """How often the speaker ran out of samples."""
        return self._playback.dropouts

    def write(self, sound: Sound | Samples) -> None:
        """Play a sound after those before: a Sound, or an array (count,) or (count, channels) of float32, -1 to 1.

        Never blocks. Raises InputError, and plays nothing of it, where there is no `room` for it; ClosedError after
        `finish` or `abandon`.
        """
        given, rate = (sound.samples, sound.rate) if isinstance(sound, Sound) else (sound, self.rate)
        samples, own = checked_samples(given, self.channels), self._device.rate
        with self._playback.ring.changed:
            if not self._close.alive or self._playback.is_last:
                raise ClosedError(f"{self.name} was finished: open another sink")
            if self._playback.has_ended:
                raise InputError(f"{self.name} stopped; is it still plugged in?")
            room = int(self._playback.room * rate / own)
            if len(samples) > room:
                raise InputError(
                    f"{self.name} has room for {room:,} samples, and got {len(samples):,}: it holds {SECONDS:g} s; "
                    "write what the next frames need, and see `room`"
                )
            if rate != own:
                if rate not in self._converters:
                    self._converters[rate] = RateConverter(own, self.channels)
                samples = self._converters[rate].convert(samples, rate)
            self._playback.ring.put(samples)

    def finish(self) -> None:
        """Wait until all is played, and close the device. May be called twice."""
        playback, ring = self._playback, self._playback.ring
        with ring.changed:
            for converter in () if playback.is_last else self._converters.values():
                ring.put(converter.rest())
            playback.is_last = True
            end = monotonic() + self.waiting + _GRACE
            while self._close.alive and not playback.has_ended and ring.waiting and monotonic() < end:
                ring.changed.wait(end - monotonic())
        if self._close.alive:
            self._stream.stop()  # plays what the device has taken; closing would drop it
        self.abandon()

    def abandon(self) -> None:
        """Stop at once, and close the device. May be called twice."""
        self._playback.is_last = True
        self._close()


def checked_block(block: Any) -> int:
    """The samples of a device's block. Raises InputError."""
    if isinstance(block, bool) or not isinstance(block, (int, np.integer)) or not 16 <= block <= 1 << 15:
        raise InputError(f"block is a number of samples, 16 to {1 << 15:,}, not {block!r}")
    return int(block)


def check_of_sound(channels: int, block: int, device: str) -> None:
    """Raise InputError if settings of sound were given for pictures."""
    if (channels, block) != (1, BLOCK):
        raise InputError(f'channels and block are for sound, of the "{device}", and this is for pictures')
