"""The script of the demo: picture → tensor → nearness → texture, and a relief that a lamp lights."""

from __future__ import annotations

from math import sin, tau
from pathlib import Path
from typing import TYPE_CHECKING, Any

import perframe as pf
from perframe.host import Event, KeyEvent, MouseButtonEvent, MouseMoveEvent, ScrollEvent
from perframe.media import Picture, Source, open_source
from perframe.media.picture import read_picture
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen, texture_of
from ..common.models import sides
from ..common.seen import ENOUGH, SeenPicture, fitted
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .estimators import CARRY, estimator_of

if TYPE_CHECKING:
    import moderngl

UNLIMITED = 1e6  # milliseconds
SCENES = (339, 204, 334, 340, 316)  # seeds
SHOWN = 8.0  # seconds of a scene
RESTS, LEAVES = 2.5, 1.5  # seconds after which the lamp leaves a mouse that does not move, and how long it takes
FINE = 640  # the most texels of a side of the refined depth
SWAY = 0.011  # of the picture
NEAREST = 1.15  # the lamp may come before the relief


class Album:
    """The project's own scenes, one after the other."""

    is_still = True
    """Whether pictures stand for themselves, unlike those of a film."""

    def __init__(self) -> None:
        paths = [resource("assets", "depth", f"scene-{seed}.jpg") for seed in SCENES]
        self._pictures = [Picture(read_picture(path, ENOUGH), index, 0.0) for index, path in enumerate(paths)]
        self._index, self._until = -1, 0.0

    def skip(self) -> None:
        """Take the next scene with the next frame."""
        self._until = 0.0

    def picture_at(self, time: float, wait: bool = False) -> Picture | None:
        """The next scene when it is due, and None while it is the one before."""
        if time < self._until:
            return None
        self._index, self._until = (self._index + 1) % len(self._pictures), time + SHOWN
        return self._pictures[self._index]

    def release(self) -> None:
        """Let the pictures go."""
        self._pictures.clear()


class SeenRelief:
    """A picture and its nearness, refined to follow the picture's edges. Another picture may follow in it."""

    def __init__(self, ctx: moderngl.Context) -> None:
        self._ctx = ctx
        self.picture = SeenPicture(ctx)
        self._target: moderngl.Framebuffer | None = None

    def bring(self, picture: Picture) -> None:
        """Bring another picture, with mipmaps."""
        self.picture.bring(picture)
        self.picture.texture.build_mipmaps()
        width, height = picture.size
        scale = min(1.0, FINE / max(width, height))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        if self._target is None or self._target.size != size:
            self._free()
            texture = self._ctx.texture(size, 1, dtype="f4")
            texture.repeat_x = texture.repeat_y = False
            self._target = self._ctx.framebuffer([texture])

    @property
    def nearness(self) -> moderngl.Texture:
        """The refined nearness."""
        assert self._target is not None, "bring a picture first"
        return texture_of(self._target)

    def refine(self, shader: FullScreen, nearness: moderngl.Texture) -> None:
        """Refine what the network has said of this picture. Leaves another framebuffer bound."""
        assert self._target is not None, "bring a picture first"
        self._target.use()
        shader.set(size=self._target.size)
        shader.draw(picture=self.picture.texture, nearness=nearness)

    def release(self) -> None:
        """Free everything."""
        self._free()
        self.picture.release()

    def _free(self) -> None:
        if self._target is not None:
            texture_of(self._target).release()
            self._target.release()
            self._target = None


class DepthView(pf.Script):
    """Lights a picture by its depth. The picture on show is always the one that the depth was made of."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._reach, self._moved, self._is_moved = 0.75, -1e9, False  # the lamp: nearness, when the user moved it
        self._shows_depth = self._is_there = False
        self.runs = 0
        """How often the network has run."""

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._stage.options
        self.estimator = estimator_of(options.model or resource("assets", "depth", "depth.onnx"), options)
        self._source: Album | Source = (
            Album() if options.source is None else open_source(options.source, ENOUGH, loop=True)
        )
        self.worker = pf.Worker(self.estimator.model, stage.backend, stage.worker_ctx, carry=CARRY)
        self._converter = pf.TextureConverter(stage.worker_ctx, None if stage.on_cpu else stage.backend)
        self._input: pf.Tensor | None = None
        self._shown: ShownTensor | None = None
        self._seen = [SeenRelief(ctx) for _ in range(2)]  # the one on show, and the next one
        folder = Path(__file__).parent
        self._refine = FullScreen(ctx, folder / "refine.glsl")
        self._relief = FullScreen(ctx, folder / "relief.glsl")
        self._captions = Captions(ctx)

    @property
    def shown_nearness(self) -> moderngl.Texture:
        """The refined nearness of the picture on show."""
        return self._seen[0].nearness

    async def update(self, frame: pf.Frame) -> None:
        """Estimate the depth of a new picture. On a GPU neither is ever copied to host memory.

        A still picture needs one run. The run takes as many frames as the budget makes it.
        """
        picture = self._source.picture_at(frame.time, self._stage.in_step)
        if picture is None:
            return
        seen = self._seen[1]
        seen.bring(picture)
        given = self._input_for(picture.size)
        # the CPU has the picture at hand as an array: sampled there, nothing must come back from the GPU
        pixels = picture.pixels if self._stage.on_cpu else seen.picture.texture
        self._converter.to_tensor(pixels, given, self.estimator.transform)
        if self._source.is_still:
            self.worker.reset()
        budget = UNLIMITED if self._stage.in_step else self._stage.options.budget
        await self.app.schedule(self.worker, given, budget, source=picture, owner=self)
        nearness = self.worker.peek_output("nearness")
        shown = self._texture_for(nearness)
        shown.take(nearness)
        while shown.pending:
            await pf.next_frame()
        seen.refine(self._refine, shown.texture)
        self.app.framebuffer.use()
        self._seen.reverse()
        self._is_there = True
        self.runs += 1

    def render(self, frame: pf.Frame) -> None:
        """Draw the relief by the light of the lamp, and in a corner its depth."""
        size = self.app.size
        if not self._is_there:
            self.app.framebuffer.clear(0.055, 0.06, 0.08)
            return
        seen = self._seen[0]
        box = fitted(seen.picture.size, size).box
        wide = min(size[0] * 0.2, box[2] * 0.4)
        high = wide * seen.picture.size[1] / seen.picture.size[0]
        gap = size[1] / 36
        card = (box[0] + gap, box[1] + box[3] - gap - high, wide, high)
        self._relief.set(
            size=size,
            box=box,
            lamp=self._lamp_at(frame.time, box),
            eye=(SWAY * sin(tau * frame.time / 5.3), 0.5 * SWAY * sin(tau * frame.time / 7.9)),
            shown=float(self._shows_depth),
            card_at=card,
        )
        self._relief.draw(picture=seen.picture.texture, nearness=self.shown_nearness)
        self._captions.draw(
            "seen" if self._shows_depth else "depth", size, (card[0] + wide / 2, card[1] - size[1] / 17)
        )
        assert self._shown is not None
        wide, high = self._shown.texture.size
        self._captions.draw(f"{self._stage.backend}  ·  {wide} x {high} depths", size, name="status")

    def on_event(self, event: Event) -> None:
        """Move the lamp, take the next scene, or show the depth."""
        if isinstance(event, MouseMoveEvent | MouseButtonEvent | ScrollEvent):
            self._is_moved = True
        if isinstance(event, ScrollEvent):
            self._reach = min(NEAREST, max(0.0, self._reach + 0.05 * event.offset[1]))
        if isinstance(event, KeyEvent) and event.pressed:
            if event.key == "space" and isinstance(self._source, Album):
                self._source.skip()
            elif event.key == "d":
                self._shows_depth = not self._shows_depth

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        made = [thing for thing in (self._input, self._shown) if thing is not None]
        held = (self._source, self.worker, self._converter, *made, *self._seen)
        things: tuple[Any, ...] = (*held, self._refine, self._relief, self._captions)
        for thing in things:
            thing.release()

    def _input_for(self, picture: tuple[int, int]) -> pf.Tensor:
        """The network's input for a picture of this size; a new one for another shape."""
        shape = self.estimator.shape_for(picture)
        if self._input is None or tuple(self._input.shape) != shape:
            if self._input is not None:
                self._input.release()
            self._input = pf.Tensor.empty(shape, "float32")
        return self._input

    def _texture_for(self, nearness: pf.Tensor) -> ShownTensor:
        """A texture for the network's output; a new one for another shape."""
        _, _, rows, columns = sides(nearness)
        if self._shown is None or self._shown.texture.size != (columns, rows):
            if self._shown is not None:
                self._shown.release()
            self._shown = ShownTensor(self.app.ctx, (1, 1, rows, columns), self._stage, "f4")
            self._shown.texture.filter = self.app.ctx.LINEAR, self.app.ctx.LINEAR
        return self._shown

    def _lamp_at(self, time: float, box: tuple[float, float, float, float]) -> tuple[float, ...]:
        """The lamp's place in the picture and its nearness: at the mouse, or where it wanders while the mouse rests."""
        if self._is_moved:
            self._moved, self._is_moved = time, False
        wanders = (
            0.5 + 0.36 * sin(tau * time / 9.1 - 0.56),
            0.5 + 0.26 * sin(tau * time / 6.7 - 1.03),
            0.74 + 0.3 * sin(tau * time / 5.9 - 0.86),
        )
        x, y = self.app.input.mouse_position
        held = ((x - box[0]) / box[2], (y - box[1]) / box[3], self._reach)
        share = min(1.0, max(0.0, (time - self._moved - RESTS) / LEAVES))
        share = share * share * (3 - 2 * share)
        return tuple(one + (other - one) * share for one, other in zip(held, wanders, strict=True))
