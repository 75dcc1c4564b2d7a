"""What the demo hears, chunk by chunk: a recording at its own speed, which is played, or a microphone."""

from __future__ import annotations

import logging

import numpy as np

from perframe.errors import PerframeError
from perframe.media import SoundSource, SpeakerSink, open_sink

from .voices import RATE, Array

CHUNK = 512  # samples that a step hears
LONGEST = 600.0  # seconds of a file that are read
MOST = 6  # chunks a frame: what is later than that is left out

log = logging.getLogger(__name__)


class Recording:
    """A recording, which begins again at its end."""

    def __init__(self, sound: Array, begin: float = 0.0, speaker: SpeakerSink | None = None) -> None:
        first = int(begin * RATE) % len(sound)
        self._sound = np.pad(np.roll(sound, -first), (0, -len(sound) % CHUNK))
        self._speaker = speaker
        self.heard = 0
        """Chunks since the beginning."""

    def chunks(self, seconds: float) -> list[Array]:
        """The chunks that have sounded by this time, and were not heard yet."""
        due = int(seconds * RATE / CHUNK)
        first, self.heard = max(self.heard, due - MOST), max(self.heard, due)
        begins = [at * CHUNK % len(self._sound) for at in range(first, self.heard)]
        found = [self._sound[begin : begin + CHUNK] for begin in begins]
        if self._speaker is not None and found:
            self._speaker.write(np.concatenate(found)[: self._speaker.room])
        return found

    def late(self, seconds: float) -> float:
        """The chunks, with a fraction, that have sounded since the last one that was heard."""
        return seconds * RATE / CHUNK - self.heard

    def release(self) -> None:
        """Stop playing."""
        if self._speaker is not None:
            self._speaker.abandon()


class Listening:
    """A microphone."""

    def __init__(self, source: SoundSource) -> None:
        self._source = source
        self.heard = 0
        """Chunks since the beginning."""

    def chunks(self, seconds: float) -> list[Array]:
        """The chunks that came since the last call."""
        found = []
        while (piece := self._source.read(CHUNK)) is not None:
            found.append(piece.mono)
        self.heard += len(found)
        return found[-MOST:]

    def late(self, seconds: float) -> float:
        """The part of a chunk that has come since the last one."""
        return self._source.waiting / CHUNK

    def release(self) -> None:
        """Close the microphone."""
        self._source.release()


def speaker_if_any() -> SpeakerSink | None:
    """A speaker; None, and a line that says why, where there is none."""
    try:
        return open_sink("speaker", rate=RATE, block=2 * CHUNK)  # a slow frame is shorter than two blocks
    except PerframeError as error:
        log.warning("nothing is played: %s", error)
        return None
