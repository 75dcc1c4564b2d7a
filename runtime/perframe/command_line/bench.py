"""`perframe bench`: perframe's backends and other runtimes side by side, in alternating rounds.

Each side has a process of its own, because the idle threads of some runtimes spin, which slows everything else in the
process. In every round each side runs a burst of inferences. Every other round reverses the order of the sides, so a
machine that slows down or warms up affects all sides alike.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata, util
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from perframe.command_line.sources import input_arrays, named_model
from perframe.command_line.units import bytes_text, seconds_text
from perframe.errors import BackendError, MissingExtraError, PerframeError

if TYPE_CHECKING:
    from rich.console import Console

WARM_UP_SECONDS = 0.5
BURST_SECONDS = 0.1
PAUSE_SECONDS = 0.02  # lets the threads of the side before fall asleep

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Timing:
    """The times of one side for one model, in seconds, and the peak memory of its process, in bytes.

    `load` includes the runtime's import. `first` is the first inference. `new_shape` is the first inference with other
    input shapes when everything else is warm; None if the model has no open dims. `steady` is the median of the rounds.
    `difference` is the largest deviation from the peer's outputs, relative to the largest of them. `ratio` is peer /
    ours, of times and of memory: above 1, perframe is better. `peer` is the fastest peer, to which the others are
    compared.
    """

    model: str
    side: str
    threads: int | None = None
    load: float | None = None
    first: float | None = None
    new_shape: float | None = None
    steady: float | None = None
    rounds: tuple[float, ...] = ()
    memory: int | None = None
    difference: float | None = None
    peer: str | None = None
    ratio: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Task:
    """A model to measure: files for both sides, inputs, and inputs of another shape if the model has open dims."""

    name: str
    ours: Path
    peers: Path
    feed: Path
    new_feed: Path | None


class Process:
    """A side in its own process. See bench_side.py for its requests and answers."""

    def __init__(self, side: str, threads: int | None = None) -> None:
        self.side, self.threads = side, threads
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (close() closes it)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "perframe.command_line.bench_side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request, and block until the answer comes. Raises BackendError."""
        assert self._child.stdin and self._child.stdout
        try:
            print(json.dumps({"do": do, **request}), file=self._child.stdin, flush=True)
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or [f"exit status {self._child.wait()}"])[-1]
            raise BackendError(f"{self.side} ended while asked to {do}: {last}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BackendError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process. May be called twice."""
        self._child.kill()
        with contextlib.suppress(BrokenPipeError), self._child:
            pass
        self._errors.close()


class Contestant:
    """A side, and its measurements so far."""

    def __init__(self, task: Task, side: str, threads: int | None = None, strict: bool = False) -> None:
        self.timing = Timing(task.name, side, threads)
        self._task, self._process = task, Process(side, threads)
        self._options = {"strict": strict} if threads is None else {"threads": threads}
        self._burst = 1
        self._rounds: list[float] = []

    def prepare(self) -> None:
        """Open the model, measure the load, the first inference and the first with a new shape, and warm up."""
        task, ask = self._task, self._process.ask
        path = task.ours if self.timing.threads is None else task.peers
        load = ask("open", side=self.timing.side, model=str(path), **self._options)["seconds"]
        (first,) = self._run(task.feed, 1)
        samples, begin = self._run(task.feed, 2), time.perf_counter()
        while time.perf_counter() - begin < WARM_UP_SECONDS:
            samples = self._run(task.feed, 3)
        new_shape = self._run(task.new_feed, 1)[0] if task.new_feed else None
        self._burst = max(1, min(200, round(BURST_SECONDS / median(samples))))
        self.timing = replace(self.timing, load=load, first=first, new_shape=new_shape, steady=median(samples))

    def round(self) -> None:
        """Run one burst of inferences."""
        time.sleep(PAUSE_SECONDS)
        self._rounds.append(median(self._run(self._task.feed, self._burst)))
        self.timing = replace(self.timing, rounds=tuple(self._rounds), steady=median(self._rounds))

    def finish(self) -> None:
        """Measure the peak memory."""
        self.timing = replace(self.timing, memory=self._process.ask("memory")["peak"])

    def outputs(self, folder: Path) -> list[Any]:
        """Return the outputs for the task's inputs."""
        path = folder / f"{self.timing.side}.npz"
        self._process.ask("save", feed=str(self._task.feed), path=str(path))
        with np.load(path) as arrays:
            return list(arrays.values())

    def attempt(self, step: Callable[[], None]) -> bool:
        """Run a step, and return whether the side is still without error. A failed step ends the process, and its error
        becomes the result.
        """
        if self.timing.error is None:
            try:
                step()
            except PerframeError as error:
                self.timing = Timing(self.timing.model, self.timing.side, self.timing.threads, error=str(error))
                self.close()
        return self.timing.error is None

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _run(self, feed: Path, times: int) -> list[float]:
        samples: list[float] = self._process.ask("run", feed=str(feed), times=times)["samples"]
        return samples


def measure(
    models: Sequence[str],
    backends: Sequence[str],
    against: Sequence[str] = (),
    rounds: int = 15,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    strict: bool = False,
    progress: Progress = lambda _what, _fraction: None,
) -> Iterator[list[Timing]]:
    """Measure one model after the other, and yield the timings of each. The timing of a failed side has its error.

    Raises MissingExtraError if a peer is not installed.
    """
    for peer in against:
        if not util.find_spec(peer):
            raise MissingExtraError(peer, "bench", f"a benchmark against {peer}")
    for name in models:
        with tempfile.TemporaryDirectory(prefix="perframe-bench-") as folder:
            progress(f"{name}: reading", 0)
            try:
                task = make_task(name, Path(folder), dims or {}, seed)
            except PerframeError as error:
                yield [Timing(name, backend, error=str(error)) for backend in backends]
                continue
            yield _measure_one(task, backends, against, rounds, strict, Path(folder), progress)


def make_task(name: str, folder: Path, dims: Mapping[str, int], seed: int) -> Task:
    """Put the model and its inputs into `folder`. Raises ModelError."""
    import perframe as pf
    from perframe.importers.light import for_other_runtimes

    source = named_model(name, seed)
    if isinstance(source, Path):
        ours = source
    else:
        ours = folder / "model.onnx"
        ours.write_bytes(source)
    inputs = pf.load(ours, optimize=False).inputs
    peers, changed = ours, for_other_runtimes(ours)
    if changed is not None:
        peers = folder / "peers.onnx"
        peers.write_bytes(changed)
    names = {dim for value in inputs for dim in value.shape or () if isinstance(dim, str)}
    doubled = {dim: 2 * dims.get(dim, 1) for dim in names}
    feeds = {"feed": input_arrays(inputs, (), dims, seed), "new_feed": input_arrays(inputs, (), doubled, seed)}
    for file, arrays in feeds.items():
        np.savez(folder / f"{file}.npz", **arrays)  # type: ignore[arg-type] # NumPy types the names as bool
    return Task(name, ours, peers, folder / "feed.npz", folder / "new_feed.npz" if names else None)


def _measure_one(
    task: Task,
    backends: Sequence[str],
    against: Sequence[str],
    rounds: int,
    strict: bool,
    folder: Path,
    progress: Progress,
) -> list[Timing]:
    ours = [Contestant(task, backend, strict=strict) for backend in backends]
    counts = sorted({1, os.cpu_count() or 1})
    peers = [[Contestant(task, peer, threads) for threads in counts] for peer in against]
    everyone = [*ours, *itertools.chain(*peers)]
    try:
        for contestant in everyone:
            progress(f"{task.name}: {contestant.timing.side} warms up", 0)
            contestant.attempt(contestant.prepare)
        chosen = [_fastest(contestants) for contestants in peers]
        racing = [*ours, *chosen]
        for index in range(rounds):
            progress(f"{task.name}: round {index + 1} of {rounds}", index / rounds)
            for contestant in racing if index % 2 else reversed(racing):
                contestant.attempt(contestant.round)
        for contestant in racing:
            contestant.attempt(contestant.finish)
        able = [contestant for contestant in chosen if not contestant.timing.error]
        if not able:
            return [contestant.timing for contestant in racing]
        best = min(able, key=_steady)
        return [*(_compared(contestant, best, folder) for contestant in ours), *(peer.timing for peer in chosen)]
    finally:
        for contestant in everyone:
            contestant.close()


def _steady(contestant: Contestant) -> float:
    return contestant.timing.steady or float("inf")


def _fastest(contestants: Sequence[Contestant]) -> Contestant:
    """Return the fastest of one peer's thread counts, and end the others."""
    best = min(contestants, key=_steady)
    for contestant in contestants:
        if contestant is not best:
            contestant.close()
    return best


def _compared(contestant: Contestant, peer: Contestant, folder: Path) -> Timing:
    timing, theirs = contestant.timing, peer.timing
    if timing.error:
        return timing
    ratio = {
        what: getattr(theirs, what) / getattr(timing, what)
        for what in ("load", "first", "new_shape", "steady", "memory")
        if getattr(theirs, what) and getattr(timing, what)
    }
    timing = replace(timing, ratio=ratio, peer=theirs.side)
    try:
        pairs = zip(contestant.outputs(folder), peer.outputs(folder), strict=True)
        return replace(timing, difference=max(_difference(a, b) for a, b in pairs))
    except (PerframeError, ValueError) as error:
        return replace(timing, error=f"outputs cannot be compared: {error}")


def _difference(ours: Any, theirs: Any) -> float:
    if ours.shape != theirs.shape:
        raise BackendError(f"shape {ours.shape}, the peer's {theirs.shape}")
    largest = float(np.max(np.abs(theirs), initial=0))
    return float(np.max(np.abs(ours.astype(float) - theirs.astype(float)), initial=0)) / (largest or 1)


def as_json(timings: Sequence[Timing], settings: Mapping[str, Any]) -> str:
    """The timings for a machine, with the machine, the packages and the settings."""
    machine = {
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in ("perframe", "numpy", "onnx", "numba", "moderngl")},
    }
    listed = [timing.__dict__ for timing in timings]
    return json.dumps({"machine": machine, "settings": dict(settings), "timings": listed}, indent=2)


def show(timings: Sequence[Timing], console: Console) -> None:
    """Print the timings for a person, and the errors below them. The ratio is the fastest peer's steady time / ours."""
    from rich.table import Table
    from rich.text import Text

    for model, group in itertools.groupby(timings, lambda timing: timing.model):
        table = Table(
            title=model, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False
        )
        table.add_column("", min_width=14, no_wrap=True)
        for column in ("load", "first", "new shape", "steady", "ratio", "memory", "differs"):
            table.add_column(column, justify="right", min_width=7, no_wrap=True)
        for timing in group:
            times = [seconds_text(value) for value in (timing.load, timing.first, timing.new_shape, timing.steady)]
            ratio, difference = timing.ratio.get("steady"), timing.difference
            faster = Text("" if ratio is None else f"{ratio:.2f}", "green" if ratio and ratio >= 1 else "yellow")
            close = Text("" if difference is None else f"{difference:.1e}", "" if (difference or 0) <= 1e-3 else "red")
            memory = "–" if timing.memory is None else bytes_text(timing.memory)
            table.add_row(_side_text(timing), *times, faster, memory, close)
        console.print(table, "")
    for timing in timings:
        if timing.error:
            console.print(Text(f"{timing.model}, {_side_text(timing)}: {timing.error}", "red"))


def _side_text(timing: Timing) -> str:
    return timing.side if timing.threads is None else f"{timing.side} ×{timing.threads}"
