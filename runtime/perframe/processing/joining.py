"""Joins parts of a video, and adds the sound of the source. No picture is encoded again; sound is, if the container
cannot hold its codec.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from errno import EINVAL
from fractions import Fraction
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.media.picture import write_whole
from perframe.media.videos import require_av

log = logging.getLogger("perframe")
Stamped = tuple[float, int, Any]
"""Seconds, the stream's number, and a packet: in this order they are written."""
_LEAD_IN = Fraction(1, 10)  # seconds: encoders of sound begin at most this much before their first sample
_IN_STEP = Fraction(3, 100)  # seconds by which sound may begin early or late in a container that has no times
_ENCODERS = {".webm": ("libopus",), ".avi": ("libmp3lame", "ac3", "mp2")}  # the first that PyAV has; AAC elsewhere
_USUAL_RATE = 48_000
_GAPS_A_SECOND = 50  # a hole in the sound that is shorter than 1/50 s is a clock's inaccuracy


@dataclass(frozen=True)
class Soundtrack:
    """The sound that comes along, by the clock of its file."""

    path: Path
    begin: Fraction
    """The first picture's time in seconds."""
    end: Fraction | None = None
    """Where the pictures end, if it is before the film's end."""


def join(parts: Sequence[tuple[Fraction, Path]], out: Path, sound: Soundtrack | None) -> None:
    """Write a video of parts, each with the time in seconds at which it begins. Raises InputError."""
    for copies in (True, False) if sound is not None else (True,):
        try:
            write_whole(out, partial(_join, parts, out.suffix.lower(), sound, copies))
            return
        except ValueError as error:  # PyAV's, or an InputError of write_whole
            cause = error.__cause__ or error
            if copies and sound is not None and getattr(cause, "errno", None) == EINVAL:
                continue  # a muxer that lists a codec may refuse it in the end, as MP4 some PCM
            if isinstance(error, InputError):
                raise
            raise InputError(f"{str(out)!r} cannot be written: {error}") from error


def _join(
    parts: Sequence[tuple[Fraction, Path]], suffix: str, sound: Soundtrack | None, copies: bool, beside: Path
) -> None:
    av = require_av("writing a video")
    with ExitStack() as stack:
        target = stack.enter_context(av.open(f"file:{beside}", "w"))
        with _opened(av, parts[0][1]) as first:
            pictures = target.add_stream_from_template(first.streams.video[0])
        no_tracks: list[Iterator[Stamped]] = []
        shift, tracks = (Fraction(0), no_tracks) if sound is None else _tracks(av, stack, target, suffix, sound, copies)
        for _, _, packet in merge(_pictures(av, parts, pictures, shift), *tracks, key=lambda stamped: stamped[:2]):
            target.mux(packet)


def _opened(av: Any, path: Path) -> Any:
    return av.open(f"file:{path}")


def _pictures(av: Any, parts: Sequence[tuple[Fraction, Path]], stream: Any, shift: Fraction) -> Iterator[Stamped]:
    for begin, path in parts:
        with _opened(av, path) as part:
            for packet in part.demux(video=0):
                if packet.pts is not None:
                    packet.dts = packet.pts  # parts have no pictures out of order; FFmpeg doubts it in Matroska
                    yield _stamped(packet, stream, begin + shift, 0)


def _tracks(
    av: Any, stack: ExitStack, target: Any, suffix: str, sound: Soundtrack, copies: bool
) -> tuple[Fraction, list[Iterator[Stamped]]]:
    """Return the delay of all pictures in seconds, and the packets of each track of sound."""
    with _opened(av, sound.path) as file:
        found = [(each.index, _start(each)) for each in file.streams.audio]
    if not found:
        return Fraction(0), []
    lead = sound.begin - min(start for _, start in found)  # sound before the first picture
    has_times = suffix != ".avi"
    shift = lead if has_times and lead > _LEAD_IN else Fraction(0)
    tracks: list[Iterator[Stamped]] = []
    for number, (index, start) in enumerate(found, 1):
        source = stack.enter_context(_opened(av, sound.path))  # each track is read at its own speed
        track = source.streams[index]
        name = track.codec_context.name
        is_known = copies and name in target.supported_codecs
        if is_known and (has_times or abs(sound.begin - start) <= _IN_STEP):
            stream = target.add_stream_from_template(track)
            tracks.append(_copied(source, track, stream, shift - sound.begin, sound.end, number))
        else:
            stream = add_encoder(av, target, suffix, track)
            why = (
                f"it cannot hold {name}"
                if name not in target.supported_codecs
                else "its sound begins with its pictures"
            )
            log.warning("the sound is encoded again for %s, as %s: %s", suffix, stream.codec_context.name, why)
            begin = start if has_times else sound.begin
            packets = encoded(av, source, track, stream, begin, sound.end)
            tracks.append(_moved(packets, stream, begin - sound.begin + shift, number))
        stream.metadata.update(track.metadata)  # its language
    return shift, tracks


def _start(stream: Any) -> Fraction:
    return Fraction((stream.start_time or 0) * stream.time_base)


def _copied(
    source: Any, track: Any, stream: Any, shift: Fraction, end: Fraction | None, number: int
) -> Iterator[Stamped]:
    for packet in source.demux(track):
        if packet.dts is None or (end is not None and packet.pts * packet.time_base >= end):
            continue
        yield _stamped(packet, stream, shift, number)


def _moved(packets: Iterator[Any], stream: Any, shift: Fraction, number: int) -> Iterator[Stamped]:
    for packet in packets:
        yield _stamped(packet, stream, shift, number)


def _stamped(packet: Any, stream: Any, shift: Fraction, number: int) -> Stamped:
    """A packet that comes later, for a stream of the result."""
    ticks = round(shift / packet.time_base)
    packet.pts, packet.dts, packet.stream = packet.pts + ticks, packet.dts + ticks, stream
    return float(packet.dts * packet.time_base), number, packet


def add_encoder(av: Any, target: Any, suffix: str, track: Any) -> Any:
    """A stream of a container for this sound. More than two channels become two."""
    names = [name for name in _ENCODERS.get(suffix, ("aac",)) if name in av.codecs_available]
    codec = av.Codec(names[0] if names else "pcm_s16le", "w")
    rates = codec.audio_rates or [track.rate]
    stream = target.add_stream(codec.name, rate=track.rate if track.rate in rates else _USUAL_RATE)
    stream.layout = "mono" if track.layout.nb_channels == 1 else "stereo"
    return stream


def encoded(av: Any, source: Any, track: Any, stream: Any, begin: Fraction, end: Fraction | None) -> Iterator[Any]:
    """Packets of the sound from `begin` to `end`, in seconds of the source's clock. Silence fills gaps."""
    rate, layout = stream.rate, stream.layout.name
    last = None if end is None else round((end - begin) * rate)
    done = 0

    def packets(samples: np.ndarray[Any, Any]) -> Iterator[Any]:
        nonlocal done
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", layout)
        frame.sample_rate, frame.pts, frame.time_base = rate, done, Fraction(1, rate)
        done += samples.shape[1]
        yield from stream.encode(frame)

    for frame in _resampled(source, track, av.AudioResampler("fltp", layout, rate)):
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


def _resampled(source: Any, track: Any, resampler: Any) -> Iterator[Any]:
    for frame in source.decode(track):
        yield from resampler.resample(frame)
    yield from resampler.resample(None)
