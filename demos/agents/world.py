"""A flock on a backend: its state goes from step to step there, and never leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

import perframe as pf
from perframe.resources import resource

from .flock import moved, senses

F = pf.functional
HALF = (16 / 9, 1.0)  # of the world's width and height
SECONDS = 1 / 60  # of a step
SPEED = 0.42  # at which they begin


def life(creatures: int) -> pf.Model:
    """`state` (1, 4, 1, creatures) and `hawk` (1, 3, 1) → `moved`, a step later: senses, the policy, and the motion."""
    policy = pf.load(resource("assets", "agents", "agents.onnx"))
    graph = pf.FunctionalGraph("flock")
    state = graph.add_input("float32", (1, 4, 1, creatures), "state")
    hawk = graph.add_input("float32", (1, 3, 1), "hawk")
    rows = state.reshape(1, 4, creatures)
    (action,) = F.forward(policy, senses(F, rows, hawk, HALF))
    return graph.compile(moved=moved(F, rows, action, HALF, SECONDS).reshape(1, 4, 1, creatures))


class Flock:
    """Creatures on a backend."""

    def __init__(self, backend: pf.BackendType, ctx: Any, creatures: int, seed: int) -> None:
        self._worker = pf.Worker(life(creatures), backend, ctx, carry={"moved": "state"})
        self._hawk = self._worker.empty_input("hawk")
        self._where: tuple[float, float, float] | None = None
        self._creatures, self._random = creatures, np.random.default_rng(seed)
        self.scatter()

    def scatter(self) -> None:
        """Put each creature somewhere, on its way to anywhere."""
        count = self._creatures
        angle = self._random.uniform(0, 2 * np.pi, count)
        rows = [self._random.uniform(-side, side, count) * 0.96 for side in HALF]
        rows += [SPEED * np.cos(angle), SPEED * np.sin(angle)]
        self._worker.reset(np.stack(rows).astype(np.float32).reshape(1, 4, 1, count))

    def step(self, hawk: tuple[float, float, float]) -> pf.Tensor:
        """Let them live for SECONDS, and return their state, which may be pending. `hawk` is x, y and its fright."""
        if hawk != self._where:
            self._hawk.upload(np.array(hawk, np.float32).reshape(1, 3, 1))
            self._where = hawk
        return self._worker.schedule(self._hawk).peek_output()

    @property
    def state(self) -> pf.Tensor:
        """The state of all creatures, which may be pending."""
        return self._worker.state()

    def release(self) -> None:
        """Free all that it holds."""
        self._worker.release()
        self._hawk.release()
