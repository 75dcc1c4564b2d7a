"""The script of the demo: each frame goes texture → tensor → network → texture → screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import perframe as pf
from perframe.host import CloseEvent, Event, KeyEvent
from perframe.resources import resource

from .canvas import ArrayCanvas, Canvas, GLCanvas
from .motion import Size, Window, pan_and_zoom, sweep, whole
from .overlay import FrameTimer
from .sources import Source


@dataclass
class Recording:
    """What is to be kept: `frames` of them (None: until the user ends it), the last one as a picture.

    `in_step` waits for each painting, so that every run gives the same picture; a window never waits.
    """

    frames: int | None = None
    save: Path | None = None
    in_step: bool = False
    on_frame: Callable[[], object] = lambda: None


class PainterView(pf.Script):
    """Shows a source and its painting side by side. It takes over the source."""

    def __init__(self, source: Source, backend: pf.BackendType, size: Size, recording: Recording) -> None:
        self.timer = FrameTimer()
        self._source, self._backend, self._size, self._recording = source, backend, size, recording
        self._window: Window = (0.0, 0.0, 1.0, 1.0)
        self._painted: Window | None = None
        self._arrived: pf.Readback | None = None
        self._split: float | None = None

    def awake(self) -> None:
        """Make all that the frames need; a frame makes nothing."""
        ctx = self.app.ctx
        on_cpu = self._backend is pf.BackendType.CPU
        model = pf.load(resource("assets", "painter", "painter.onnx"))
        self._worker = pf.Worker(model, self._backend, None if on_cpu else ctx)
        self._canvas: Canvas = GLCanvas(ctx, self._size) if ctx else ArrayCanvas(self._size)
        # The CPU has the source at hand as an array: sampled there, nothing has to come back from the GPU.
        self._sampler = pf.TextureConverter(None) if on_cpu else self._canvas.converter
        self._tensor = self._worker.empty_input(0, (1, 3, self._size[1], self._size[0]))
        self._pixels = self._source.frame_at(0.0, wait=True)

    def update(self, frame: pf.Frame) -> None:
        """Begin the next painting, unless the last one is still under way: on the CPU it may take several frames."""
        if self._arrived is not None:
            if not self._arrived.done:
                return
            self._finish()
        self._begin(frame.time)
        if "left" in self.app.input.buttons:
            self._split = self.app.input.mouse_position[0]
"""
