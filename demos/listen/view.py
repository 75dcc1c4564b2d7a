"""The script of the demo: sound in, chunk by chunk, and the device's own memory as a picture."""

from __future__ import annotations

from pathlib import Path

import perframe as pf
from perframe.host import Event, KeyEvent
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .hearing import BANDS, COLUMNS, Ear
from .sounds import CHUNK, LONGEST, Listening, Recording, speaker_if_any
from .voices import RATE, evening


class ListenView(pf.Script):
    """Hears a recording at its own speed, again and again, or a microphone."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self._asked: pf.Readback | None = None
        self.voice = 0.0
        self._time = 0.0  # of the sound, without the pauses
        self._is_paused = False

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._options
        self.sound = self._opened()
        self.ear = Ear(options.model or resource("assets", "listen", "voice.onnx"), stage.backend, stage.worker_ctx)
        self.shown = ShownTensor(ctx, (1, 1, BANDS + 2, COLUMNS), stage)
        self._ribbon = FullScreen(ctx, Path(__file__).with_name("ribbon.glsl"))
        self._captions = Captions(ctx)

    def _opened(self) -> Recording | Listening:
        options = self._options
        if str(options.source).partition(":")[0] == "microphone":
            return Listening(pf.media.open_source("microphone", rate=RATE))
        own = options.source is None
        sound = evening()[0] if own else pf.media.read_sound(options.source, RATE, seconds=LONGEST).mono
        plays = not (options.mute or self._stage.in_step)
        return Recording(sound, options.at, speaker_if_any() if plays else None)

    def update(self, frame: pf.Frame) -> None:
        """Hear what has sounded since the last frame, unless its picture is still on its way."""
        if not self._is_paused:
            self._time += frame.delta_time
        if self._asked is not None and self._asked.done:
            self.voice, self._asked = float(self._asked.result()[0, 0]), None
        chunks = [] if self.shown.pending or self._is_paused else self.sound.chunks(self._time)
        if not chunks:
            return
        for chunk in chunks:
            self.ear.hear(chunk)
        self.shown.take(self.ear.history)
        if self._asked is None:
            self._asked = self._stage.asked(self.ear.voice)

    def render(self, frame: pf.Frame) -> None:
        """Draw the ribbon."""
        size = self.app.size
        self._ribbon.set(size=size, rows=BANDS + 2, late=self.sound.late(self._time))
        self._ribbon.draw(history=self.shown.texture)
        second = self.sound.heard * CHUNK / RATE
        text = f"{self._stage.backend}  ·  {second:.1f} s  ·  voice {self.voice:.2f}"
        self._captions.draw(text + ("  ·  paused" if self._is_paused else ""), size, name="status")

    def on_event(self, event: Event) -> None:
        """Pause, or go on."""
        if isinstance(event, KeyEvent) and event.pressed and event.key == "space":
            self._is_paused = not self._is_paused

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        for thing in (self.sound, self.ear, self.shown, self._ribbon, self._captions):
            thing.release()
