"""The script of the demo: the chain, the skeletons over the picture, and the ball that a pinch carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import perframe as pf
from perframe.vision import Overlay

from ..common.drawing import Captions
from ..common.seen import SeenPicture, fitted, source_of
from ..common.stage import Stage
from .ball import TRAIL, ball_model, beginning
from .chain import HandChain
from .drawn import BONES
from .film import HandFilm

COLORS = np.array([(0.20, 0.95, 0.80), (1.0, 0.72, 0.25)], np.float32)  # of the hands
BALL, LIGHT, WHITE = (0.93, 0.27, 0.36), (1.0, 0.62, 0.62), (1.0, 1.0, 1.0)
NAMES = ("points", "scores", "ball", "trail")


@dataclass
class HandsShown:
    """A picture, and what lies over it: tensors on a GPU, arrays from the CPU."""

    picture: SeenPicture
    marks: dict[str, Any] | None = None


class HandsView(pf.Script):
    """Looks at each picture of a source. On a GPU nothing is read back: from the picture to the marks on it."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._options = stage, stage.options
        self._time = 0.0  # of the last picture

    def awake(self) -> None:
        """Make all that does not depend on the picture's size."""
        ctx = self.app.ctx
        self._source = source_of(self._options, HandFilm)
        self._results = [HandsShown(SeenPicture(ctx)) for _ in range(2)]  # the one on show, and the next one
        self._overlay = Overlay(ctx)
        self._captions = Captions(ctx)
        self.chain: HandChain | None = None
        self.ball: pf.Worker | None = None

    @property
    def shown(self) -> HandsShown:
        """What is on show."""
        return self._results[0]

    async def update(self, frame: pf.Frame) -> None:
        """Find the hands of the source's present picture, and move the ball."""
        picture = self._source.picture_at(frame.time, self._stage.in_step)
        if picture is None:
            return
        result = self._results[1]
        result.picture.bring(picture)
        chain, ball = self._networks(picture.size)
        # the CPU has the picture at hand as an array: sampled there, nothing must come back from the GPU
        seen = picture.pixels if self._stage.on_cpu else result.picture.texture
        seconds = max(0.0, picture.time - self._time)
        self._time = picture.time
        regions = chain.regions(seen)
        await self._arrived(regions)
        hands = chain.landmarks(seen, regions, seconds)
        given = {"points": hands.points, "scores": hands.scores, "seconds": np.array([seconds], np.float32)}
        moved = ball.schedule(given).peek_output
        tensors = (hands.points, hands.scores, moved("ball"), moved("new_trail"))
        result.marks = {name: await self._arrived(tensor) for name, tensor in zip(NAMES, tensors, strict=True)}
        self._results.reverse()

    def render(self, frame: pf.Frame) -> None:
        """Draw the picture, the ball, the skeletons, and a line of text."""
        size, result = self.app.size, self.shown
        if result.marks is None or self.chain is None:
            self.app.framebuffer.clear(0.055, 0.06, 0.08)
            return
        result.picture.draw(size)
        self._draw(result.marks, result.picture.size, size)
        text = f"{self._stage.backend}  ·  the detector saw {self.chain.looks} of {self.chain.pictures} pictures"
        self._captions.draw(text, size, name="status")

    def destroy(self) -> None:
        """Free everything on the GL thread."""
        pictures = [result.picture for result in self._results]
        for thing in (self._source, *pictures, self._overlay, self._captions, self.chain, self.ball):
            if thing is not None:
                thing.release()

    def _networks(self, size: tuple[int, int]) -> tuple[HandChain, pf.Worker]:
        """The chain and the ball for pictures of this size."""
        if self.chain is None or self.ball is None or self.chain.size != size:
            for thing in (self.chain, self.ball):
                if thing is not None:
                    thing.release()
            stage, options = self._stage, self._options
            self.chain = HandChain(stage.backend, stage.worker_ctx, size, options.detector, options.landmarks)
            carry = {"new_state": "state", "new_trail": "trail"}
            self.ball = pf.Worker(ball_model(size), stage.backend, stage.worker_ctx, carry=carry)
            self.ball.reset(beginning(size))
        return self.chain, self.ball

    async def _arrived(self, tensor: pf.Tensor) -> Any:
        """A tensor on a GPU at once; the values of one on the CPU when they are there."""
        if not self._stage.on_cpu:
            return tensor
        request = self._stage.asked(tensor)
        return request.result() if request.done else await request

    def _draw(self, marks: dict[str, Any], picture: tuple[int, int], size: tuple[int, int]) -> None:
        """Draw the marks where the picture lies."""
        ctx, overlay = self.app.ctx, self._overlay
        left, top, width, height = fitted(picture, size).box
        ctx.viewport = (left, size[1] - top - height, width, height)
        overlay.size = picture
        thick = height / 150
        trail = np.stack([np.arange(TRAIL - 1), np.arange(1, TRAIL)], 1)
        overlay.lines(marks["trail"], trail, color=(*BALL, 0.5), width=2.2 * thick)
        for color, radius in ((BALL, 6.5), (LIGHT, 3.5)):
            overlay.points(marks["ball"], color=color, radius=radius * thick)
        hands: dict[str, Any] = {"scores": marks["scores"], "color": COLORS}
        overlay.lines(marks["points"], BONES, width=thick, **hands)
        overlay.points(marks["points"], radius=1.3 * thick, **hands)
        overlay.points(marks["points"], radius=0.6 * thick, **{**hands, "color": WHITE})
        ctx.viewport = (0, 0, *size)
