"""A frame of the demo hands beside the sum of its networks: `python -m tests.benchmarks.chain [BACKEND...]`.

The time is the CPU time of the process, with all work finished, after pictures are uploaded. Frames with a look of the
detector count apart. The networks run alone in the rhythm of the frames, and in turns with them. Compare figures within
one run only.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib import import_module
from time import process_time
from typing import Annotated, Any

import moderngl
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from perframe.command_line.commands.demo import load_demo

SIZE, PICTURES, SECONDS = (640, 360), 60, 1 / 30
SETTLING = 40  # frames that are not measured


class Measured:
    """The chain, and the milliseconds of its frames and of its networks."""

    def __init__(self, backend: str) -> None:
        load_demo("hands")
        self._module = import_module("perframe_demos.hands.chain")
        self._ctx = moderngl.create_standalone_context(require=430 if backend == "gpu_compute" else 330, backend="egl")
        self.chain = self._module.HandChain(backend, self._ctx, SIZE)
        draw = import_module("perframe_demos.hands.film").HandFilm(SIZE)
        self._pictures = [draw(index * SECONDS).tobytes() for index in range(PICTURES)]
        self._texture, self._next = self._ctx.texture(SIZE, 3), 0
        self.times: dict[str, list[float]] = {}

    def _time(self, name: str, work: Callable[[], object]) -> None:
        self._ctx.finish()
        begin = process_time()
        work()
        self._ctx.finish()
        self.times.setdefault(name, []).append((process_time() - begin) * 1000)

    def frame(self) -> None:
        """Measure a frame of the chain."""
        self._texture.write(self._pictures[self._next % PICTURES])
        self._next += 1
        is_look = self.chain.pictures % self._module.EVERY == 0
        self._time("look" if is_look else "frame", self._follow)

    def _follow(self) -> None:
        self.chain.landmarks(self._texture, self.chain.regions(self._texture), SECONDS)

    def networks(self, with_detector: bool) -> None:
        """Measure each network, with the inputs of the last frame."""
        chain, none = self.chain, np.zeros(1, np.float32)
        found, kept = chain._detector.peek_output, chain._follower.peek_output
        regions, scores = chain._last
        given = {"regions": regions, "scores": scores, "found": found("regions"), "sure": found("scores")}
        if with_detector:
            self._time("detector", lambda: chain._detector.schedule(chain._picture))
        self._time("follower", lambda: chain._follower.schedule({**given, "fresh": none}))
        given = {"crops": chain._crops, "regions": kept("chosen"), "kept": kept("kept")}
        self._time("landmarks", lambda: chain._landmarks.schedule({**given, "seconds": none + SECONDS}))


def measured(backend: str, rounds: int) -> dict[str, float]:
    """The median milliseconds of each part."""
    hands = Measured(backend)
    for _ in range(SETTLING):
        hands.frame()
    hands.times.clear()
    for _ in range(rounds):
        for _ in range(hands._module.EVERY):
            hands.frame()
        for at in range(hands._module.EVERY):
            hands.networks(at == 0)
    return {name: statistics.median(times) for name, times in hands.times.items()}


def main(
    backends: Annotated[list[str] | None, typer.Argument()] = None,
    rounds: Annotated[int, typer.Option(help="looks of the detector.")] = 15,
) -> None:
    """Print what a frame takes beyond its networks."""
    table = Table("backend", "frame / networks", "with the detector", "over all frames", "crop and sampling, ms")
    for backend in backends or ["gpu_compute", "gpu_pixel"]:
        ms: Any = measured(backend, rounds)
        every = import_module("perframe_demos.hands.chain").EVERY
        plain = ms["follower"] + ms["landmarks"]
        whole = ((every - 1) * ms["frame"] + ms["look"]) / (every * plain + ms["detector"])
        beyond = ms["frame"] - plain, ms["look"] - plain - ms["detector"]
        ratios = f"{ms['frame'] / plain:.3f}", f"{ms['look'] / (plain + ms['detector']):.3f}", f"{whole:.3f}"
        table.add_row(backend, *ratios, " and ".join(f"{each:.1f}" for each in beyond))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
