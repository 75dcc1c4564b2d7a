"""Long runs of frame loops and of jobs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

import perframe as pf
from perframe.resources import resource
from soak import small_models as models
from soak.scenarios import GL, check, ones, scenario


def _add_one(source: Any, target: Any) -> None:
    np.add(source, 1, out=target)


def _fail(*_: Any) -> None:
    raise ValueError("it fails")


@scenario(full=5_000, short=250, backends=("cpu",))
def jobs(backend: str, ctx: Any) -> Iterator[None]:
    """Functions run between two workers. Some fail, and some of those have no caller that waits for them."""
    logging.getLogger("perframe").setLevel(logging.CRITICAL)  # failed jobs without a caller that waits
    with pf.Worker(models.products(), backend) as first, pf.Worker(models.products(), backend) as second:
        for index in count():
            between = pf.Tensor(ones(4, models.WIDTH))
            y = first.schedule(ones(4, models.WIDTH, value=index % 3)).peek_output()
            job = pf.jobs.schedule(_add_one, y, between, depends_on=[y], writes=[between])
            z = second.schedule(between).peek_output().readback_request()
            if index % 5 == 0:
                failed = pf.jobs.schedule(_fail, y, depends_on=[job], writes=[pf.Tensor(ones(9000))])
                if index % 2:
                    with suppress(ValueError):
                        failed.wait()
            value = 1 + index % 3 / (1 + index % 3)
            check(z.result(wait=True), value / (1 + value))
            yield


class Show(pf.Script):
    """Runs a model in every way that a script can."""

    def __init__(self, backend: str) -> None:
        self.backend, self.results, self.awaited = backend, 0, 0

    def start(self) -> None:
        """Make the objects that frames use."""
        ctx = self.app.ctx
        self.worker = pf.Worker(models.picture(4), self.backend, None if self.backend == "cpu" else ctx)
        self.steps = pf.Worker(models.picture(4), self.backend, None if self.backend == "cpu" else ctx)
        self.converter = pf.TextureConverter(ctx)
        self.x = ones(1, 3, 16, 16, value=0.5)
        self.is_advancing = False
        self.app.start_coroutine(self.ask(), owner=self)

    async def ask(self) -> None:
        """Await results, for ever."""
        while True:
            values = await self.worker.schedule(self.x).peek_output().readback_request()
            check(values[0, :, 8, 8], 0.5)
            self.awaited += 1
            await pf.next_frame()

    def update(self, frame: pf.Frame) -> None:
        """Have a readback called back, and another run go on over frames."""
        self.app.when_done(self.worker.schedule(self.x).peek_output().readback_request(), self.count, self)
        if not self.is_advancing:
            self.is_advancing = True
            self.app.advance(self.steps.schedule_iterable(self.x), 0.01, self.end, self)

    def end(self) -> None:
        """The run that went on is over."""
        self.is_advancing = False

    def count(self, values: Any) -> None:
        """A readback has arrived."""
        check(values[0, :, 8, 8], 0.5)
        self.results += 1

    def render(self, frame: pf.Frame) -> None:
        """Draw the output."""
        self.converter.render_to_screen(self.worker.peek_output())

    def destroy(self) -> None:
        """Free the objects that `start` made."""
        for thing in (self.worker, self.steps, self.converter):
            thing.release()


@scenario(full=3_000, short=180)
def app(backend: str, ctx: Any) -> Iterator[None]:
    """A frame loop with a script, which is replaced now and then."""
    with pf.App(size=(32, 32), headless=True, stop_on_error=True) as loop:
        for index in count():
            if index % 60 == 0:
                script = Show(backend)
                loop.add(script)
            loop.loop_once()
            if index % 60 == 59:
                assert script.results > 30 and script.awaited > 10
                loop.remove(script)
            yield


@scenario(full=10_000, short=90, backends=GL)
def painter(backend: str, ctx: Any) -> Iterator[None]:
    """The demo's way of a frame: a camera's texture, which changes, is painted, and the painting goes to a texture."""
    noise = np.random.default_rng(1).integers(0, 256, (8, 120, 192, 4), np.uint8)
    model = pf.load(resource("assets", "painter", "painter.onnx"))
    camera, shown = ctx.texture((192, 120), 4), ctx.texture((96, 64), 4)
    transform = pf.TextureTransform(coord_origin="bottom_left")
    with pf.Worker(model, backend, ctx) as worker, pf.TextureConverter(ctx, backend) as converter:
        x = worker.empty_input("image", (1, 3, 64, 96))
        for index in count():
            camera.write(noise[index % len(noise)])
            converter.to_tensor(camera, x, transform)
            converter.to_texture(worker.schedule(x).peek_output(), shown, transform)
            ctx.finish()  # the frame's work belongs to its time
            yield
