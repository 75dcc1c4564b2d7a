"""Three ways to a result that do not hold the frame: poll, await, or a callback."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe.resources import resource

picture = np.random.default_rng(0).random((1, 3, 96, 160), np.float32)


class Reader(pf.Script):
    def start(self) -> None:
        self.worker = pf.Worker(resource("assets", "painter", "painter.onnx"))
        self.app.start_coroutine(self.await_it(), owner=self)
        self.app.when_done(self.ask(), lambda painting: self.tell("a callback", painting), owner=self)
        self.polled: pf.Readback | None = self.ask()

    def ask(self) -> pf.Readback:
        return self.worker.schedule(picture).peek_output().readback_request()

    async def await_it(self) -> None:
        self.tell("await", await self.ask())

    def update(self, frame: pf.Frame) -> None:
        if self.polled is not None and self.polled.done:
            self.tell("polling", self.polled.result())
            self.polled = None

    def tell(self, way: str, painting: np.ndarray) -> None:
        print(f"frame {self.app.frame.index if self.app.frame else 0}: {way} has {painting.shape}")

    def destroy(self) -> None:
        self.worker.release()


pf.App(size=(320, 192), headless=True).run(Reader(), frames=200)
