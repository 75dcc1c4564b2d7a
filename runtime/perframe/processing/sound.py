"""Re-encodes sound whose codec the container does not hold, and starts it with the pictures."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

_ENCODERS = {".webm": ("libopus",), ".avi": ("libmp3lame", "ac3", "mp2")}  # the first that PyAV has; AAC elsewhere
_USUAL_RATE = 48_000
_GAPS_A_SECOND = 50  # a hole in the sound that is shorter than 1/50 s is a clock's inaccuracy


def add_encoder(av: Any, target: Any, suffix: str, heard: Any) -> Any:
    """A stream of a container for this sound. More than two channels become two."""
    names = [name for name in _ENCODERS.get(suffix, ("aac",)) if name in av.codecs_available]
    codec = av.Codec(names[0] if names else "pcm_s16le", "w")
    rates = codec.audio_rates or [heard.rate]
    stream = target.add_stream(codec.name, rate=heard.rate if heard.rate in rates else _USUAL_RATE)
    stream.layout = "mono" if heard.layout.nb_channels == 1 else "stereo"
    return stream


def encoded(av: Any, source: Any, heard: Any, stream: Any, begin: Fraction, end: Fraction | None) -> Iterator[Any]:
    """Packets of the sound from `begin` to `end`, in seconds of the source's clock. Silence fills what is missing."""
    rate, layout = stream.rate, stream.layout.name
    last = None if end is None else round((end - begin) * rate)
    done = 0

    def packets(samples: np.ndarray[Any, Any]) -> Iterator[Any]:
        nonlocal done
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, done, Fraction(1, rate)
        done += samples.shape[1]
        yield from stream.encode(frame)

    for frame in _resampled(source, heard, av.AudioResampler("fltp", layout, rate)):
        samples = frame.to_ndarray()
        at = round((frame.pts * frame.time_base - begin) * rate)
        if at > done + rate // _GAPS_A_SECOND:
            yield from packets(np.zeros((len(samples), at - done), np.float32))
        samples = samples[:, max(0, -at) if not done else 0 :]
        if last is not None:
            samples = samples[:, : max(0, last - done)]
        if samples.shape[1]:
            yield from packets(samples)
    yield from stream.encode(None)


def _resampled(source: Any, heard: Any, resampler: Any) -> Iterator[Any]:
    for frame in source.decode(heard):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)
