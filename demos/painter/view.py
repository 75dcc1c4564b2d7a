"""The script of the demo: each frame goes texture → tensor → network → texture → screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import perframe as pf
from perframe.host import CloseEvent, Event, KeyEvent
from perframe.media import Source
from perframe.resources import resource

from ..common.backend import is_emulated
from ..common.overlay import FrameTimer
from .canvas import ArrayCanvas, Canvas, GLCanvas, middle
from .motion import Size, Window, pan_and_zoom, sweep, whole


@dataclass
class Recording:
    """What to record: `frames` frames with a new painting (None: until the user ends it), and the last as a picture.

    `in_step` waits for each painting, so that every run gives the same picture. A window never waits.
    """

    frames: int | None = None
    save: Path | None = None
    in_step: bool = False
    on_frame: Callable[[], object] = lambda: None


class PainterView(pf.Script):
    """Shows a source and its painting side by side, at the network's resolution `size`."""

    def __init__(self, source: Source, backend: pf.BackendType, size: Size, recording: Recording) -> None:
        self.timer = FrameTimer()
        self._source, self._backend, self._size, self._recording = source, backend, size, recording
        self._on_cpu = backend is pf.BackendType.CPU
        self._is_new = False  # whether the canvas does not have the source's picture yet
        self._window: Window | None = None  # the window that is being painted
        self._painted: Window | None = None
        self._paintings = 0
        self._arrived: pf.Readback | None = None
        self._split: float | None = None  # where the user put it

    def awake(self) -> None:
        """Make all that the frames need: a frame itself makes nothing."""
        ctx = self.app.surface.ctx  # None where there is no GL
        model = pf.load(resource("assets", "painter", "painter.onnx"))
        self._worker = pf.Worker(model, self._backend, None if self._on_cpu else ctx)
        # Without a GPU, a frame that shows nothing new would only take time from the painting.
        self._waits = self._recording.in_step or ctx is None or is_emulated(ctx)
        self._canvas: Canvas = GLCanvas(ctx, self._size) if ctx else ArrayCanvas(self._size)
        # The CPU has the picture at hand as an array: sampled there, nothing must come back from the GPU first.
        self._sampler = pf.TextureConverter(None) if self._on_cpu else self._canvas.converter
        self._tensor = self._worker.empty_input(0, (1, 3, self._size[1], self._size[0]))

    def update(self, frame: pf.Frame) -> None:
        """Paint; on the CPU a painting may take several frames, and the loop does not wait for it."""
        if self._arrived is None:
            self._begin(frame.time)
        if self._arrived is None or self._arrived.done:
            self._finish()

    def render(self, frame: pf.Frame) -> None:
        """Draw the split view."""
        if "left" in self.app.input.buttons:
            self._split = self._dragged()
        if self._painted is not None:
            split = sweep(frame.time) if self._split is None else self._split
            self._canvas.draw(self.app.surface, self._painted, split, self._text() if self.timer.is_due() else None)
        if self._recording.in_step and self.app.has_gl:
            self.app.ctx.finish()  # so that the time that is told is the time that it takes
        if self._paintings == self._recording.frames:
            self._end()

    def on_event(self, event: Event) -> None:
        """The user ends it."""
        escaped = isinstance(event, KeyEvent) and event.pressed and event.key in ("escape", "q")
        if escaped or isinstance(event, CloseEvent):
            self._end()

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        self._canvas.release()
        self._tensor.release()
        self._worker.release()

    def _begin(self, time: float) -> None:
        """Schedule a painting of the source's present picture."""
        picture = self._source.picture_at(time, self._recording.in_step)
        if picture is not None:
            self._pixels, self._is_new = picture.pixels, True
        height, width, _ = self._pixels.shape
        aspect = self._size[0] / self._size[1]
        if self._source.is_still:
            self._window = pan_and_zoom((width, height), aspect, time)
        else:
            self._window = whole((width, height), aspect)
        if not self._on_cpu:
            self._publish()
        sampled = self._pixels if self._on_cpu else self._canvas.source
        self._sampler.to_tensor(sampled, self._tensor, pf.TextureTransform(region=self._window))
        painting = self._worker.schedule(self._tensor).peek_output()
        if self._on_cpu:  # on a GPU, later draws come after it anyway
            self._arrived = painting.readback_request()
            while self._waits and not self._arrived.done:
                sleep(0.0005)

    def _finish(self) -> None:
        """Show the painting beside that which was painted."""
        self._publish()
        self._canvas.converter.to_texture(self._worker.peek_output(), self._canvas.painting)
        self._painted, self._arrived = self._window, None
        self._paintings += 1
        self._recording.on_frame()
        self.timer.tick()

    def _publish(self) -> None:
        if self._is_new:
            self._canvas.set_source(self._pixels)
            self._is_new = False

    def _dragged(self) -> float:
        left, _, width, _ = middle(self.app.size, self._size)
        split: float = (self.app.input.mouse_position[0] - left) / width
        return min(0.99, max(0.01, split))

    def _text(self) -> str:
        parts = [str(self._backend), f"{self._size[0]} x {self._size[1]}"]
        if self.timer.milliseconds is not None and not self._recording.in_step:
            parts.append(f"{self.timer.milliseconds:.1f} ms")
        return "  ·  ".join(parts)

    def _end(self) -> None:
        """This frame is the last one."""
        self.app.quit()
        if self._recording.save:
            self.app.screenshot(self._recording.save)
