"""Parts of a video, one after another, with the sound of the source. No picture is encoded again."""

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

from perframe.errors import InputError
from perframe.media.picture import write_whole
from perframe.media.videos import require_av
from perframe.processing.sound import add_encoder, encoded

log = logging.getLogger("perframe")

Stamped = tuple[float, int, Any]
"""Seconds, the stream's number, and a packet: in this order they are written."""
_LEAD_IN = Fraction(1, 10)  # seconds: encoders of sound begin up to so much before their first sample
_IN_STEP = Fraction(3, 100)  # seconds by which sound may begin early or late in a container that has no times


@dataclass(frozen=True)
class Sound:
    """The sound that comes along, by the clock of its file."""

    path: Path
    begin: Fraction
    """The first picture's time in seconds."""
    end: Fraction | None = None
    """Where the pictures end, if it is before the film's end."""


def join(parts: Sequence[tuple[Fraction, Path]], out: Path, sound: Sound | None) -> None:
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


def _join(parts: Sequence[tuple[Fraction, Path]], suffix: str, sound: Sound | None, copies: bool, beside: Path) -> None:
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
    av: Any, stack: ExitStack, target: Any, suffix: str, sound: Sound, copies: bool
) -> tuple[Fraction, list[Iterator[Stamped]]]:
    """By how much all pictures come later, and the packets of each track of sound."""
    with _opened(av, sound.path) as file:
        found = [(each.index, _start(each)) for each in file.streams.audio]
    if not found:
        return Fraction(0), []
    lead = sound.begin - min(start for _, start in found)  # sound that is heard before the first picture
    has_times = suffix != ".avi"
    shift = lead if has_times and lead > _LEAD_IN else Fraction(0)
    tracks: list[Iterator[Stamped]] = []
    for number, (index, start) in enumerate(found, 1):
        source = stack.enter_context(_opened(av, sound.path))  # each track is read at its own speed
        heard = source.streams[index]
        name = heard.codec_context.name
        is_known = copies and name in target.supported_codecs
        if is_known and (has_times or abs(sound.begin - start) <= _IN_STEP):
            stream = target.add_stream_from_template(heard)
            tracks.append(_copied(source, heard, stream, shift - sound.begin, sound.end, number))
        else:
            stream = add_encoder(av, target, suffix, heard)
            why = (
                f"it cannot hold {name}"
                if name not in target.supported_codecs
                else "its sound begins with its pictures"
            )
            log.warning("the sound is encoded again for %s, as %s: %s", suffix, stream.codec_context.name, why)
            begin = start if has_times else sound.begin
            packets = encoded(av, source, heard, stream, begin, sound.end)
            tracks.append(_moved(packets, stream, begin - sound.begin + shift, number))
        stream.metadata.update(heard.metadata)  # its language
    return shift, tracks


def _start(stream: Any) -> Fraction:
    return Fraction((stream.start_time or 0) * stream.time_base)


def _copied(
    source: Any, heard: Any, stream: Any, shift: Fraction, end: Fraction | None, number: int
) -> Iterator[Stamped]:
    for packet in source.demux(heard):
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
