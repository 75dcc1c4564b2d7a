"""The script of the demo: pictures, the finder, and its faces over the picture in which it found them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import perframe as pf
from perframe.host import Event, KeyEvent
from perframe.resources import resource

from ..common.drawing import Captions
from ..common.seen import SeenPicture, fitted, source_of
from ..common.stage import Stage
from .finders import MOST, Found, faces_of, finder_of, with_faces
from .party import Party

UNLIMITED = 1e6  # milliseconds
POINTS = 6  # the most that a face has


@dataclass
class Result:
    """A picture, its faces in its own pixels, and the run that found them."""

    picture: SeenPicture
    faces: list[Found] = field(default_factory=list)
    run: pf.Run | None = None


class FacesView(pf.Script):
    """Looks at a source as often as its budget lets it. The picture on show is the last one whose faces are known."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self._scores = bool(stage.options.scores)  # whether they are drawn

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._options
        file = options.model or resource("assets", "faces", "faces.onnx")
        model = pf.load(file)
        self.finder = finder_of(model, str(file))
        self._source = source_of(options, Party)
        self.worker = pf.Worker(with_faces(model, self.finder), stage.backend, stage.worker_ctx)
        self._converter = pf.TextureConverter(stage.worker_ctx, None if stage.on_cpu else stage.backend)
        self._input = pf.Tensor.empty(self.finder.shape, "float32")
        self._results = [Result(SeenPicture(ctx)) for _ in range(2)]  # the one on show, and the next one
        self._marks = ctx.texture((1 + POINTS, MOST), 4, dtype="f4")
        folder = Path(__file__).parent
        self._program = ctx.program(
            vertex_shader=(folder / "marks.vert").read_text(encoding="utf-8"),
            fragment_shader=(folder / "marks.frag").read_text(encoding="utf-8"),
        )
        self._square = ctx.vertex_array(self._program, [])
        self._captions = Captions(ctx)

    @property
    def shown(self) -> Result:
        """What is on show."""
        return self._results[0]

    async def update(self, frame: pf.Frame) -> None:
        """Find the faces of the source's present picture. This takes as many frames as the budget makes it."""
        picture = self._source.picture_at(frame.time, self._stage.in_step)
        if picture is None:
            return
        result = self._results[1]
        result.picture.bring(picture)
        # the CPU has the picture at hand as an array: sampled there, nothing must come back from the GPU
        seen = picture.pixels if self._stage.on_cpu else result.picture.texture
        self._converter.to_tensor(seen, self._input, self.finder.transform)
        budget = UNLIMITED if self._stage.in_step else self._options.budget
        result.run = self.app.schedule(self.worker, self._input, budget, source=picture, owner=self)
        await result.run
        asked = {name: self._stage.asked(self.worker.peek_output(name)) for name in self.worker.model.output_names}
        values = {name: request.result() if request.done else await request for name, request in asked.items()}
        mapping = self.finder.transform.mapping(result.picture.size, self.finder.shape)
        result.faces = [
            Found(face.sure, mapping.boxes_to_picture(face.box), mapping.to_picture(face.points))
            for face in faces_of(values)
        ]
        self._results.reverse()

    def render(self, frame: pf.Frame) -> None:
        """Draw the picture, its faces, and what they cost."""
        size, result = self.app.size, self.shown
        if result.run is None:
            self.app.framebuffer.clear(0.055, 0.06, 0.08)
            self._captions.draw(f"{self._stage.backend}  ·  {self.finder.name}", size, name="status")
            return
        result.picture.draw(size)
        place = fitted(result.picture.size, size)
        marks = np.zeros((MOST, 1 + POINTS, 4), np.float32)
        for mark, face in zip(marks, result.faces, strict=False):
            points = place.to_tensor(face.points)
            mark[0], mark[1 : 1 + len(points), :2] = place.boxes_to_tensor(face.box), points
            mark[1 : 1 + len(points), 2] = 1
        self._draw(marks, len(result.faces), size)
        for index, (mark, face) in enumerate(zip(marks, result.faces, strict=False) if self._scores else ()):
            at = (float(mark[0, 0] + mark[0, 2]) / 2, float(mark[0, 3]) + size[1] / 120)
            self._captions.draw(f"{face.sure:.2f}", size, at, name=f"face {index}")
        self._captions.draw(self._text(result.run, len(result.faces), frame), size, name="status")

    def on_event(self, event: Event) -> None:
        """Show or hide the scores."""
        if isinstance(event, KeyEvent) and event.pressed and event.key == "s":
            self._scores = not self._scores

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        pictures = [result.picture for result in self._results]
        held = (self._source, self.worker, self._converter, self._input, *pictures, self._marks, self._square)
        things: tuple[Any, ...] = (*held, self._program, self._captions)
        for thing in things:
            thing.release()

    def _text(self, run: pf.Run, faces: int, frame: pf.Frame) -> str:
        found = f"{self._stage.backend}  ·  {self.finder.name}  ·  {_counted(faces, 'face')}"
        if self._stage.in_step:
            return found
        spent = f"{run.spent_ms / max(1, run.frames):.1f} ms of {self._options.budget:g}"
        age = frame.index - run.frame
        return f"{found}  ·  {spent} in {_counted(run.frames, 'frame')}  ·  {_counted(age, 'frame')} old"

    def _draw(self, marks: np.ndarray, count: int, size: tuple[int, int]) -> None:
        ctx = self.app.ctx
        self._marks.write(marks.tobytes())
        self._marks.use(0)
        for name, value in (("marks", 0), ("size", size), ("thick", size[1] / 300)):
            self._program[name] = value
        ctx.enable(ctx.BLEND)
        ctx.blend_func = ctx.SRC_ALPHA, ctx.ONE_MINUS_SRC_ALPHA
        self._square.render(ctx.TRIANGLE_STRIP, vertices=4, instances=count)
        ctx.disable(ctx.BLEND)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
