"""Frames with a large network under a budget, beside frames of the scene alone: `python -m tests.benchmarks.budgets`.

Each backend runs in a process of its own. Frames are paced; the time of a frame is what its work takes. Compare figures
within one run only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from time import perf_counter, sleep
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import perframe as pf
from perframe.command_line.sources import likely_arrays, likely_dims, loaded_model

SCENE = """
#version 330
uniform float time;
out vec4 colour;
void main() {
    vec2 at = gl_FragCoord.xy / 90.0;
    colour = vec4(0.5 + 0.5 * sin(at.x + time), 0.5 + 0.5 * cos(at.y - time), 0.5, 1.0);
}
"""
QUAD = "#version 330\nvoid main() { gl_Position = vec4(ivec2(gl_VertexID & 1, gl_VertexID >> 1) * 4 - 1, 0, 1); }"


@dataclass
class Figures:
    """Milliseconds of frames: of the scene alone, and with the network. `longest` is the piece that took longest."""

    backend: str
    alone: tuple[float, float, float]
    together: tuple[float, float, float]
    runs: int
    frames_a_run: float
    longest: str
    longest_ms: float
    difference: float
    over: int = 0

    @property
    def allowed(self) -> float:
        """What the 99th hundredth of frame times may be."""
        return 1.25 * self.alone[2] + BUDGET_MS


BUDGET_MS = 4.0


class Scene(pf.Script):
    """A picture that one small shader draws."""

    def start(self) -> None:
        self.program = self.app.ctx.program(vertex_shader=QUAD, fragment_shader=SCENE)
        self.vertices = self.app.ctx.vertex_array(self.program, [])

    def render(self, frame: pf.Frame) -> None:
        self.program["time"] = frame.time
        self.app.framebuffer.use()
        self.vertices.render(self.app.ctx.TRIANGLES, vertices=3)
        self.app.ctx.finish()  # its time belongs to this frame


class Network(pf.Script):
    """Runs a worker under the budget, again and again, and compares each result."""

    def __init__(self, worker: pf.Worker, inputs: Any, expected: Any) -> None:
        self.worker, self.inputs, self.expected = worker, inputs, expected
        self.runs, self.difference = list[pf.Run](), 0.0

    @property
    def done(self) -> int:
        return sum(run.done for run in self.runs)

    def update(self, _frame: pf.Frame) -> None:
        if not self.runs or self.runs[-1].done:
            self.runs.append(self.app.schedule(self.worker, self.inputs, BUDGET_MS, on_done=self.compare))

    def compare(self, _run: pf.Run) -> None:
        found = self.worker.peek_output().download_to_array()
        self.difference = max(self.difference, float(np.abs(found - self.expected).max()))


def frames(app: pf.App, count: int, rate: float) -> list[float]:
    """The milliseconds of so many frames, paced to `rate` a second."""
    found, due = [], perf_counter()
    for _ in range(count):
        begin = perf_counter()
        app.loop_once()
        found.append((perf_counter() - begin) * 1e3)
        due = max(due + 1 / rate, perf_counter())
        sleep(max(0.0, due - perf_counter()))
    return found


def three(times: list[float]) -> tuple[float, float, float]:
    p50, p95, p99 = np.percentile(times, (50, 95, 99)).tolist()
    return p50, p95, p99


def side(backend: str, model: str, count: int, rate: float) -> Figures:
    """Measure one backend in this process: the scene alone before and after frames with the network."""
    loaded = loaded_model(model)
    inputs = likely_arrays(loaded, likely_dims(loaded.inputs))
    with pf.App(size=(640, 360), headless=True) as app:
        app.add(Scene())
        with pf.Worker(loaded, backend, None if backend == "cpu" else app.ctx) as worker:
            expected = worker.schedule(inputs).peek_output().download_to_array()
            alone, together = frames(app, count // 2, rate), list[float]()
            network = Network(worker, inputs, expected)
            app.add(network)
            while not network.done:
                frames(app, 10, rate)  # it learns what layers take
            learnt = len(network.runs)
            while len(together) < count or network.done == learnt - 1:
                together += frames(app, 10, rate)
            network.runs[-1].cancel()
            app.remove(network)
            alone += frames(app, count - count // 2, rate)
    runs = network.runs[learnt - 1 :]
    longest = max(runs, key=lambda run: run.longest_ms)
    ended = [run.frames for run in runs if not (run.failed or run is runs[-1])] or [0]
    return Figures(
        backend,
        three(alone),
        three(together),
        len(runs),
        sum(ended) / len(ended),
        longest.longest,
        longest.longest_ms,
        network.difference,
        sum(run.longest_ms > BUDGET_MS for run in runs),
    )


def main(
    model: str = "light_resnet50",
    backend: str = "cpu,gpu_compute,gpu_pixel",
    count: Annotated[int, typer.Option("--frames")] = 600,
    rate: float = 60.0,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Print the frame times of each backend."""
    if one:
        print(json.dumps(asdict(side(one, model, count, rate))))
        return
    columns = ("backend", "scene alone: p50, p99", "with the network", "allowed p99", "frames a run", "longest piece")
    table = Table(*columns, "off by")
    for name in backend.split(","):
        command = [sys.executable, "-m", "tests.benchmarks.budgets", "--model", model, "--frames", str(count)]
        command += ["--rate", str(rate), "--one", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        found = Figures(**json.loads(done.stdout.splitlines()[-1]))
        table.add_row(
            name,
            f"{found.alone[0]:.2f}, {found.alone[2]:.2f} ms",
            f"{found.together[0]:.2f}, {found.together[2]:.2f} ms",
            f"{found.allowed:.2f} ms",
            f"{found.frames_a_run:.1f}",
            f"{found.longest} {found.longest_ms:.2f} ms; over {BUDGET_MS:.0f} ms in {found.over} of {found.runs} runs",
            f"{found.difference:.1e}",
        )
    Console(width=170).print(table)


if __name__ == "__main__":
    typer.run(main)
