"""Parts of a video, one after another, with the sound of the source. Nothing is encoded again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any

from perframe.errors import InputError
from perframe.media.picture import write_whole
from perframe.media.videos import require_av

log = logging.getLogger("perframe")

Stamped = tuple[float, int, Any]
"""Seconds, the stream's number, and a packet: in this order they are written."""


def join(parts: Sequence[tuple[int, Path]], out: Path, rate: Fraction, sound_of: Path | None) -> None:
    """Write a video of parts, each with the index of its first picture. Raises InputError.

    The sound of `sound_of` comes along if there is some, and `out` can hold it.
    """
    try:
        write_whole(out, lambda beside: _join(parts, beside, out.suffix, rate, sound_of))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(out)!r} cannot be written: {error}") from error


def _join(parts: Sequence[tuple[int, Path]], beside: Path, suffix: str, rate: Fraction, sound_of: Path | None) -> None:
    av = require_av("writing a video")
    with ExitStack() as stack:
        target = stack.enter_context(av.open(str(beside), "w"))
        with av.open(str(parts[0][1])) as first:
            pictures = target.add_stream_from_template(first.streams.video[0])
        packets: list[Iterator[Stamped]] = [_pictures(av, parts, pictures, rate)]
        if sound_of is not None:
            source = stack.enter_context(av.open(str(sound_of)))
            heard = next(iter(source.streams.audio), None)
            if heard is not None and heard.codec_context.name in target.supported_codecs:
                packets.append(_sound(source, heard, target.add_stream_from_template(heard)))
            elif heard is not None:
                log.warning("%s cannot hold the source's sound (%s): it is left out", suffix, heard.codec_context.name)
        for _, _, packet in merge(*packets, key=lambda stamped: stamped[:2]):
            target.mux(packet)


def _pictures(av: Any, parts: Sequence[tuple[int, Path]], stream: Any, rate: Fraction) -> Iterator[Stamped]:
    for first, path in parts:
        begin = first / rate
        with av.open(str(path)) as part:
            for packet in part.demux(video=0):
                if packet.dts is None:
                    continue
                shift = round(begin / packet.time_base)
                packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                packet.stream = stream
                yield float(packet.dts * packet.time_base), 0, packet


def _sound(source: Any, heard: Any, stream: Any) -> Iterator[Stamped]:
    begin = source.streams.video[0].start_time or 0
    offset = float(begin * source.streams.video[0].time_base)
    for packet in source.demux(heard):
        if packet.dts is None:
            continue
        shift = round(Fraction(offset).limit_denominator(90000) / packet.time_base)
        packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
        if packet.pts + (packet.duration or 0) >= 0:  # an encoder's first packet lies before the beginning
            packet.stream = stream
            yield float(packet.dts * packet.time_base), 1, packet
