"""The script of the demo: sound in, chunk by chunk, and the device's own memory as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import perframe as pf
from perframe.host import Event, KeyEvent
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .hearing import BANDS, CHUNK, COLUMNS, Ear
from .sounds import read_sound
from .voices import RATE, evening

MOST = 6  # chunks a frame: what is later than that is left out


class ListenView(pf.Script):
    """Hears a sound at its own speed, again and again."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self._asked: pf.Readback | None = None
        self.voice = 0.0
        self._time = 0.0  # of the sound, without the pauses
        self._is_paused = False

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._options
        sound = evening()[0] if options.source is None else read_sound(options.source)
        begin = int(options.at * RATE) % len(sound)
        self.sound = np.pad(np.roll(sound, -begin), (0, -len(sound) % CHUNK))
        self.heard = 0  # chunks
        self.ear = Ear(options.model or resource("assets", "listen", "voice.onnx"), stage.backend, stage.worker_ctx)
        self.shown = ShownTensor(ctx, (1, 1, BANDS + 2, COLUMNS), stage)
        self._ribbon = FullScreen(ctx, Path(__file__).with_name("ribbon.glsl"))
        self._captions = Captions(ctx)

    def update(self, frame: pf.Frame) -> None:
        """Hear what has sounded since the last frame, unless its picture is still on its way."""
        if not self._is_paused:
            self._time += frame.delta_time
        if self._asked is not None and self._asked.done:
            self.voice, self._asked = float(self._asked.result()[0, 0]), None
        due = int(self._time * RATE / CHUNK)
        if self.shown.pending or due <= self.heard:
            return
        self.heard = max(self.heard, due - MOST)
        while self.heard < due:
            begin = self.heard * CHUNK % len(self.sound)
            self.ear.hear(self.sound[begin : begin + CHUNK])
            self.heard += 1
        self.shown.take(self.ear.history)
        if self._asked is None:
            self._asked = self._stage.asked(self.ear.voice)

    def render(self, frame: pf.Frame) -> None:
        """Draw the ribbon."""
        size = self.app.size
        self._ribbon.set(size=size, rows=BANDS + 2, late=self._time * RATE / CHUNK - self.heard)
        self._ribbon.draw(history=self.shown.texture)
        second = self.heard * CHUNK / RATE
        text = f"{self._stage.backend}  ·  {second:.1f} s  ·  voice {self.voice:.2f}"
        self._captions.draw(text + ("  ·  paused" if self._is_paused else ""), size, name="status")

    def on_event(self, event: Event) -> None:
        """Pause, or go on."""
        if isinstance(event, KeyEvent) and event.pressed and event.key == "space":
            self._is_paused = not self._is_paused

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        for thing in (self.ear, self.shown, self._ribbon, self._captions):
            thing.release()
