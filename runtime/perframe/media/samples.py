"""Samples of sound, a ring that holds them between two threads, and the conversion of rates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from threading import Condition
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.media.videos import require_av

Samples = np.ndarray[Any, np.dtype[np.float32]]
_LAYOUTS = {1: "mono", 2: "stereo"}
_MOST_HERTZ = 384_000
_PRECISE = "s32"  # channels are mixed by their mean; FFmpeg adds them up in floats


@dataclass(frozen=True, slots=True)
class Sound:
    """A piece of sound, and its time."""

    samples: Samples
    """(count, channels) of float32, -1 to 1."""
    rate: int
    """Samples a second."""
    index: int = 0
    """The number of samples before the first one, from the beginning of the source."""
    time: float = 0.0
    """Seconds from the beginning of the source. A film's pictures have times on the same clock."""

    @property
    def mono(self) -> Samples:
        """One channel: (count,), the mean of all."""
        one: Samples = self.samples[:, 0] if self.samples.shape[1] == 1 else self.samples.mean(1, dtype=np.float32)
        return one

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.rate


def checked_rate(rate: Any) -> int:
    """Samples a second. Raises InputError."""
    if isinstance(rate, bool) or not isinstance(rate, (int, np.integer)) or not 1000 <= rate <= _MOST_HERTZ:
        raise InputError(f"rate is samples a second, 1,000 to {_MOST_HERTZ:,}, as rate=16000, not {rate!r}")
    return int(rate)


def checked_channels(channels: Any) -> int:
    """A number of channels. Raises InputError."""
    if channels not in _LAYOUTS or isinstance(channels, bool):
        raise InputError(f"channels is 1 (mono) or 2 (stereo), not {channels!r}")
    return int(channels)


def checked_samples(given: Any, channels: int) -> Samples:
    """Samples (count,) or (count, channels) as the latter. Mono goes to all channels. Raises InputError."""
    samples = np.asarray(given)
    if samples.dtype != np.float32 or samples.ndim not in (1, 2):
        raise InputError(
            f"sound is (count,) or (count, channels) of float32, -1 to 1, not {samples.dtype} {samples.shape}"
        )
    samples = samples[:, None] if samples.ndim == 1 else samples
    if samples.shape[1] not in (1, channels):
        raise InputError(f"this sound has {samples.shape[1]} channels, and the device takes {channels}")
    return np.broadcast_to(samples, (len(samples), channels))


class SampleRing:
    """Samples that one thread puts in, and another takes out. Neither waits unless it asks to. `changed` guards all."""

    def __init__(self, capacity: int, channels: int) -> None:
        self.changed = Condition()
        self.begin = 0
        """The index of the oldest sample, from the beginning of the source."""
        self.end = 0
        """The index after the newest sample."""
        self._samples = np.zeros((capacity, channels), np.float32)

    @property
    def waiting(self) -> int:
        """The samples that wait to be taken."""
        return self.end - self.begin

    @property
    def room(self) -> int:
        """The samples that fit."""
        return len(self._samples) - self.waiting

    def put(self, samples: Samples) -> int:
        """Put samples in, as many as fit. Return how many."""
        with self.changed:
            count = min(len(samples), self.room)
            self._write(samples[:count])
            return count

    def put_newest(self, samples: Samples) -> int:
        """Put samples in. The oldest go where there is no room. Return how many were lost."""
        with self.changed:
            capacity, count = len(self._samples), len(samples)
            lost = max(0, self.waiting + count - capacity)
            skipped = max(0, count - capacity)  # of these themselves
            self.begin += lost
            self.end += skipped
            self._write(samples[skipped:])
            return lost

    def take(self, out: Samples) -> None:
        """Take as many samples as `out` has. They must be there."""
        with self.changed:
            at = self.begin % len(self._samples)
            first = min(len(out), len(self._samples) - at)
            out[:first] = self._samples[at : at + first]
            out[first:] = self._samples[: len(out) - first]
            self.begin += len(out)
            self.changed.notify_all()

    def _write(self, samples: Samples) -> None:
        at = self.end % len(self._samples)
        first = min(len(samples), len(self._samples) - at)
        self._samples[at : at + first] = samples[:first]
        self._samples[: len(samples) - first] = samples[first:]
        self.end += len(samples)
        self.changed.notify_all()


class RateConverter:
    """Converts sound piece by piece to another rate, or another number of channels, by FFmpeg's resampler.

    It holds back some samples between two pieces: `rest` gives them. Raises MissingExtraError without PyAV.
    """

    def __init__(self, rate: int, channels: int) -> None:
        self._av = require_av("converting sound")
        self._rate, self._channels = rate, channels
        self._resampler: Any = None

    def convert(self, samples: Samples, rate: int) -> Samples:
        """Convert samples (count, channels) of a rate."""
        if not len(samples):
            return np.zeros((0, self._channels), np.float32)
        packed = np.ascontiguousarray(samples).reshape(1, -1)
        frame = self._av.AudioFrame.from_ndarray(packed, format="flt", layout=_LAYOUTS[samples.shape[1]])
        frame.sample_rate, frame.time_base = rate, Fraction(1, rate)
        return self.of_frame(frame)

    def of_frame(self, frame: Any) -> Samples:
        """Convert a frame of PyAV; None gives what was held back."""
        if self._resampler is None:  # FFmpeg makes mono quieter for two speakers: it stays mono here
            channels = self._channels if frame is None else min(self._channels, frame.layout.nb_channels)
            self._resampler = self._av.AudioResampler(format=_PRECISE, layout=_LAYOUTS[channels], rate=self._rate)
        made = [_floats(piece) for piece in self._resampler.resample(frame)]
        joined = np.concatenate(made) if made else np.zeros((0, self._channels), np.float32)
        return np.broadcast_to(joined, (len(joined), self._channels))

    def rest(self) -> Samples:
        """The samples that were held back."""
        return self.of_frame(None)


def _floats(frame: Any) -> Samples:
    """The samples of a frame of 32 bits, (count, channels)."""
    samples: Samples = frame.to_ndarray().reshape(frame.samples, -1).astype(np.float32) / np.float32(1 << 31)
    return samples
