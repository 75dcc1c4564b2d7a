"""`perframe bench`: perframe's backends and other runtimes side by side, in alternating rounds.

Each side has a process of its own (contest.py). In every round each side runs a burst of inferences. Every other round
reverses the order of the sides, so a machine that slows down or warms up affects all sides alike.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line.options import BACKENDS, Activations, Dims, Seed, Strict, Weights, check_backends, takes_key
from perframe.command_line.terminal import Console, Progress, console, progress_bar, seconds_text
from perframe.errors import MissingExtraError, PerframeError
from perframe.safety.wording import bytes_text, counted

if TYPE_CHECKING:
    from perframe.command_line.contest import BenchTask, Contestant, Timing

PACKAGES = {"litert": "ai_edge_litert"}  # of peers whose package has another name


@takes_key
def bench(
    models: Annotated[list[str], typer.Argument(metavar="MODEL", help="Model files, or names of known models.")],
    backend: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Comma-separated backends: {', '.join(BACKENDS)}.")
    ] = "cpu",
    against: Annotated[
        str, typer.Option(metavar="PEER,...", help="Comma-separated runtimes: onnxruntime, openvino, litert.")
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of alternating rounds.")] = 15,
    strict: Strict = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write JSON to OUT; - for stdout.")
    ] = None,
    seed: Seed = 0,
    dims: Dims = "",
    weights: Weights = "float32",
    activations: Activations = "float32",
    work: Annotated[
        float,
        typer.Option(min=0, max=1000, metavar="MS", help="Milliseconds of other work before each run, as in a frame."),
    ] = 0.0,
) -> None:
    """Time backends and other runtimes. A ratio above 1 means: faster than the fastest other runtime."""
    from perframe.command_line.bench_side import PEERS
    from perframe.command_line.sources import parse_dims

    backends = check_backends(backend.split(","))
    peers = [peer for peer in against.split(",") if peer]
    for peer in peers:
        if peer not in PEERS:
            raise typer.BadParameter(f"{peer!r} is not one of {', '.join(PEERS)}", param_hint="--against")
    options = {"strict": strict, "weights": weights, "activations": activations}
    timings = []
    with progress_bar() as step:
        for measured in measure(models, backends, peers, rounds, parse_dims(dims), seed, options, step, work):
            timings += measured
    if json_file:
        text = to_json(timings, {"rounds": rounds, "dims": dims, "seed": seed, "work": work, **options})
        typer.echo(text) if str(json_file) == "-" else json_file.write_text(text, encoding="utf-8")
    if str(json_file) != "-":
        show(timings, console())
    if any(timing.error for timing in timings):
        raise typer.Exit(1)


def measure(
    models: Sequence[str],
    backends: Sequence[str],
    against: Sequence[str] = (),
    rounds: int = 15,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: Progress = lambda _what, _fraction: None,
    work: float = 0.0,
) -> Iterator[list[Timing]]:
    """Measure one model after the other, and yield the timings of each. The timing of a failed side has its error.
    `options` are arguments of our workers. Each run but the first comes after `work` milliseconds of other work.

    Raises MissingExtraError if a peer is not installed.
    """
    from tempfile import TemporaryDirectory

    from perframe.command_line.contest import Timing, make_task

    for peer in against:
        if not util.find_spec(PACKAGES.get(peer, peer)):
            raise MissingExtraError(PACKAGES.get(peer, peer), "bench", f"a benchmark against {peer}")
    for name in models:
        with TemporaryDirectory(prefix="perframe-bench-") as folder:
            progress(f"{name}: reading", 0)
            try:
                task = make_task(name, Path(folder), dims or {}, seed)
            except PerframeError as error:
                yield [Timing(name, backend, error=str(error)) for backend in backends]
                continue
            yield _measure_one(task, backends, against, rounds, options or {}, Path(folder), progress, work / 1000)


def _measure_one(
    task: BenchTask,
    backends: Sequence[str],
    against: Sequence[str],
    rounds: int,
    options: Mapping[str, Any],
    folder: Path,
    progress: Progress,
    work: float,
) -> list[Timing]:
    from perframe.command_line.contest import Contestant

    ours = [Contestant(task, backend, options=options, work=work) for backend in backends]
    rounding = {"openvino": {"activations": options.get("activations", "float32")}}
    peers = [
        [Contestant(task, peer, threads, rounding.get(peer), work=work) for threads in thread_counts()]
        for peer in against
    ]
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
    from perframe.inspection.comparison import relative_differences

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
        apart = relative_differences(contestant.outputs(folder), peer.outputs(folder))
        return replace(timing, difference=max(apart, default=0.0))
    except PerframeError as error:
        return replace(timing, error=f"outputs cannot be compared: {error}")


def machine_facts() -> dict[str, Any]:
    """The machine and the packages with which something was measured."""
    from importlib import metadata

    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in ("perframe", "numpy", "onnx", "numba", "moderngl")},
    }


def to_json(timings: Sequence[Timing], settings: Mapping[str, Any]) -> str:
    """The timings for a machine, with the machine, the packages and the settings."""
    listed = [timing.__dict__ for timing in timings]
    return json.dumps({"machine": machine_facts(), "settings": dict(settings), "timings": listed}, indent=2)


def show(timings: Sequence[Timing], console: Console) -> None:
    """Print the timings for a person, and the errors below them. The ratio is the fastest peer's steady time / ours."""
    from rich.table import Table
    from rich.text import Text

    for model, listed in itertools.groupby(timings, lambda timing: timing.model):
        group = [*listed]
        if all(timing.error and timing.load is None for timing in group):
            continue  # nothing was measured: only the errors are printed
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
            table.add_row(timing.side, *times, faster, memory, close)
        console.print(table)
        for note in _notes(group):
            console.print(note, highlight=False)
        console.print()
    failed: dict[tuple[str, str], list[str]] = {}  # sides by their model and error
    for timing in timings:
        if timing.error:
            failed.setdefault((timing.model, timing.error), []).append(timing.side)
    for (model, error), sides in failed.items():
        console.print(Text(f"{model}, {', '.join(sides)}: {error}", "red"))


def _notes(timings: Sequence[Timing]) -> list[str]:
    """Explain the ratio, and the threads of other runtimes."""
    peer = next((timing.peer for timing in timings if timing.ratio), "")
    notes = [f"ratio: the steady time of {peer} / ours; above 1, perframe is faster"] if peer else []
    tried = thread_counts()
    for timing in timings:
        if timing.threads is not None and not timing.error:
            fastest = f", its fastest of {' and '.join(map(str, tried))}" if len(tried) > 1 else ""
            notes.append(f"{timing.side} ran with {counted(timing.threads, 'thread')}{fastest}")
    return notes


def thread_counts() -> list[int]:
    """The numbers of threads with which other runtimes are tried."""
    return sorted({1, os.cpu_count() or 1})
