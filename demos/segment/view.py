"""The script of the demo: picture → tensor → mask → texture, and something else behind people."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import moderngl

import perframe as pf
from perframe.host import Event, KeyEvent
from perframe.media import Picture
from perframe.media.picture import read_picture
from perframe.resources import resource

from ..common.drawing import Captions, FullScreen, texture_of
from ..common.models import sides
from ..common.overlay import FrameTimer
from ..common.seen import ENOUGH, SeenPicture, fitted, source_of
from ..common.shown import ShownTensor
from ..common.stage import Stage
from .masks import mask_model
from .room import Room

GROUNDS = ("picture", "blur", "colour")
COLOR = "1f7a78"
SOFT = (320, 180)  # texels of the blurred background


class SegmentView(pf.Script):
    """Puts people before another background. The picture on show is always the one that the mask was made of."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._timer = FrameTimer()
        self._text = ""
        self._is_there = False  # whether a mask is

    def awake(self) -> None:
        """Make all that the frames need."""
        stage, ctx, options = self._stage, self.app.ctx, self._stage.options
        model, self._transform = mask_model(options.model or resource("assets", "segment", "segment.onnx"))
        self.ground, path, self._color = background(options.background)
        behind = Picture(read_picture(path, ENOUGH), 0, 0.0)
        self._source = source_of(options, Room)
        self.worker = pf.Worker(model, stage.backend, stage.worker_ctx)
        self._converter = pf.TextureConverter(stage.worker_ctx, None if stage.on_cpu else stage.backend)
        self._input = self.worker.empty_input("image")
        self.shown = ShownTensor(ctx, tuple(sides(model.outputs[0])), stage)
        self.shown.texture.filter = ctx.LINEAR, ctx.LINEAR
        self._pictures = [SeenPicture(ctx) for _ in range(2)]  # the one on show, and the next one
        self._behind = SeenPicture(ctx)
        self._behind.bring(behind)
        self._soft = ctx.framebuffer([ctx.texture(SOFT, 4, dtype="f2")])
        folder = Path(__file__).parent
        self._soften = FullScreen(ctx, folder / "soften.glsl")
        self._compose = FullScreen(ctx, folder / "compose.glsl")
        self._captions = Captions(ctx)

    async def update(self, frame: pf.Frame) -> None:
        """Make the mask of the source's present picture. On a GPU neither is ever copied to host memory."""
        picture = self._source.picture_at(frame.time, self._stage.in_step)
        if picture is None:
            return
        seen = self._pictures[1]
        seen.bring(picture)
        # the CPU has the picture at hand as an array: sampled there, nothing must come back from the GPU
        self._converter.to_tensor(picture.pixels if self._stage.on_cpu else seen.texture, self._input, self._transform)
        self.shown.take(self.worker.schedule(self._input).peek_output())
        while self.shown.pending:
            await pf.next_frame()
        self._pictures.reverse()
        self._is_there = True
        self._timer.tick()

    def render(self, frame: pf.Frame) -> None:
        """Draw people before the background, and in two corners what the network saw and what it said."""
        size = self.app.size
        if not self._is_there:
            self.app.framebuffer.clear(0.055, 0.06, 0.08)
            return
        picture, mask = self._pictures[0], self.shown.texture
        if self.ground == "blur":
            self._blur(picture.texture, mask)
        box = fitted(picture.size, size).box
        wide, high = size[0] * 0.18, size[0] * 0.18 * picture.size[1] / picture.size[0]
        gap = size[1] / 36
        foot = box[1] + box[3] - gap - high
        insets = [(box[0] + gap, foot - at * (high + size[1] / 12), wide, high) for at in (1, 0)]
        self._compose.set(
            size=size,
            box=box,
            seen_at=insets[0],
            mask_at=insets[1],
            ground=GROUNDS.index(self.ground),
            plain=self._color,
            behind_size=self._behind.size,
        )
        self._compose.draw(picture=picture.texture, mask=mask, behind=self._behind.texture, soft=texture_of(self._soft))
        for text, (left, top, width, _) in zip(("seen", "mask"), insets, strict=True):
            self._captions.draw(text, size, (left + width / 2, top - size[1] / 17))
        if self._timer.is_due() or not self._text:
            time = self._timer.milliseconds
            self._text = f"{self._stage.backend}  ·  {mask.width} x {mask.height} mask"
            self._text += "" if time is None or self._stage.in_step else f"  ·  {time:.0f} ms"
        self._captions.draw(f"{self._text}  ·  {self.ground}", size, name="status")

    def on_event(self, event: Event) -> None:
        """Choose what lies behind."""
        if isinstance(event, KeyEvent) and event.pressed:
            if event.key == "space":
                self.ground = GROUNDS[(GROUNDS.index(self.ground) + 1) % len(GROUNDS)]
            elif event.key in ("1", "2", "3"):
                self.ground = GROUNDS[int(event.key) - 1]

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        held = (self._source, self.worker, self._converter, self._input, self.shown, *self._pictures, self._behind)
        things: tuple[Any, ...] = (
            *held,
            *self._soft.color_attachments,
            self._soft,
            self._soften,
            self._compose,
            self._captions,
        )
        for thing in things:
            thing.release()

    def _blur(self, picture: moderngl.Texture, mask: moderngl.Texture) -> None:
        """Bring what is behind people into a small texture, and its mipmaps: people do not shine into the blur."""
        self._soft.use()
        self._soften.draw(picture=picture, mask=mask)
        soft = texture_of(self._soft)
        soft.build_mipmaps()
        self.app.framebuffer.use()


def background(text: str) -> tuple[str, Path, tuple[float, float, float]]:
    """What --background says: what to begin with, the picture, and the colour, 0..1."""
    is_color = re.fullmatch(r"#?[0-9a-fA-F]{6}", text) is not None
    code = text.removeprefix("#") if is_color else COLOR
    red, green, blue = (int(code[at : at + 2], 16) / 255 for at in (0, 2, 4))
    path = resource("assets", "painter", "scene.jpg") if is_color or text in ("", "blur") else Path(text)
    if not path.exists():
        raise pf.InputError(
            f"--background: there is no file {text!r}; it takes a picture, blur, or a color such as 2a6f97"
        )
    return "colour" if is_color else "blur" if text == "blur" else "picture", path, (red, green, blue)
