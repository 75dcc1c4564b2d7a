"""All models of a folder through all backends, against onnxruntime: `python tools/sweep.py FOLDER`.

Each side of each model runs in a process of its own, with a limit of time and of memory, so that no model stops the
sweep. Results are written after each model; a model with results is left alone, so that a sweep that was interrupted
goes on where it was.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Annotated, Any

import typer
from agreement import agree, in_their_order
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import perframe.errors
from perframe.command_line.commands.bench import machine_facts
from perframe.command_line.contest import BenchTask, Clock, Contestant, Limits, Process
from perframe.command_line.sources import parse_dims
from perframe.command_line.terminal import seconds_text
from perframe.errors import BackendError, PerframeError
from perframe.inspection.comparison import relative_differences
from perframe.safety.wording import bytes_text

ROUNDS_SECONDS = 30  # a slow model has fewer rounds
SLOW = 0.7  # a ratio below this is listed with the operators that take most
PEER = "onnxruntime"
FALLBACK = " runs on the CPU instead of "  # in the planner's warning

Result = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What a sweep measures, and how."""

    dims: Mapping[str, int]
    seed: int
    rounds: int
    threads: int
    clock: Clock
    seconds: float
    memory: int

    @property
    def limits(self) -> Limits:
        """The limits of one side."""
        return Limits(self.seconds, self.memory)

    @property
    def environment(self) -> dict[str, str]:
        """What perframe's own processes are told. Jobs that prepare plans for other shapes would count as CPU time."""
        return {"PERFRAME_THREADS": str(self.threads), **({"PERFRAME_FOLLOW": "0"} if self.clock == "cpu" else {})}


# --- one model ---


def examine(file: Path, backends: Sequence[str], settings: Settings, say: Say) -> Result:
    """Run one model on onnxruntime and on the backends, and compare them. Errors are part of the result."""
    with tempfile.TemporaryDirectory(prefix="perframe-sweep-") as folder:
        say("reads")
        try:
            task = make_task(file, folder, settings)
        except PerframeError as error:
            peer_error = opening_error(file, settings)
            facts = {"peer": failure(peer_error)} if peer_error else {}
            return {**facts, "sides": {backend: failure(error) for backend in backends}}
        peer = Contestant(task, PEER, settings.threads, limits=settings.limits, clock=settings.clock)
        try:
            say(PEER)
            if not peer.attempt(peer.prepare):
                return {"peer": failure(peer.timing.error), "sides": {}}
            wanted = peer.outputs(Path(folder))
            say(f"{PEER}, not optimized")
            noise = optimization_noise(task, wanted, folder, settings)
            sides = {}
            for backend in backends:
                say(backend)
                sides[backend] = examine_side(task, backend, peer, wanted, noise, Path(folder), settings)
            peer.attempt(peer.finish)
            timing = peer.timing
            facts = {"first": timing.first, "steady": timing.steady, "memory": timing.memory, "error": timing.error}
            return {"noise": None if noise is None else max(noise, default=0.0), "peer": facts, "sides": sides}
        except PerframeError as error:
            return {"peer": failure(error), "sides": {}}
        finally:
            peer.close()


def make_task(file: Path, folder: str, settings: Settings) -> BenchTask:
    """Make the model's inputs, without those of another shape. Raises BackendError."""
    maker = Process("the maker of inputs", settings.limits)
    try:
        made = maker.ask("task", model=str(file), folder=folder, dims=settings.dims, seed=settings.seed)
    finally:
        maker.close()
    return BenchTask(file.name, Path(made["ours"]), Path(made["peers"]), Path(made["feed"]), None)


def opening_error(file: Path, settings: Settings) -> str | None:
    """Why the peer refuses a file, too."""
    peer = Process(PEER, settings.limits)
    try:
        peer.ask("open", side=PEER, model=str(file), threads=settings.threads)
        return None
    except PerframeError as error:
        return str(error)
    finally:
        peer.close()


def optimization_noise(task: BenchTask, wanted: Sequence[Any], folder: str, settings: Settings) -> list[float] | None:
    """What the peer's own optimizations change, output by output; None if it fails without them."""
    plain = Contestant(task, PEER, settings.threads, limits=settings.limits)
    try:
        plain.ask("open", side=PEER, model=str(task.peers), threads=settings.threads, optimize=False)
        return relative_differences(plain.outputs(Path(folder)), wanted)
    except PerframeError:
        return None
    finally:
        plain.close()


def examine_side(
    task: BenchTask,
    backend: str,
    peer: Contestant,
    wanted: Sequence[Any],
    noise: Sequence[float] | None,
    folder: Path,
    settings: Settings,
) -> Result:
    """Measure one backend beside the peer, which is warm."""
    ours = Contestant(task, backend, limits=settings.limits, environment=settings.environment, clock=settings.clock)
    try:
        if not ours.attempt(ours.prepare):
            return failure(ours.timing.error)
        found = compared(ours.outputs(folder), wanted, noise)
        ratio = race(ours, peer, settings.rounds)
        ours.attempt(ours.finish)
        warnings = ours.ask("warnings")["warnings"]
        costs = ours.ask("costs", repeats=3)["seconds"] if backend == "cpu" else {}
    except PerframeError as error:
        return failure(error)
    finally:
        ours.close()
    timing = ours.timing
    times = {"load": timing.load, "first": timing.first, "steady": timing.steady, "memory": timing.memory}
    strict = not any(FALLBACK in text for text in warnings)
    return {**found, **times, "ratio": ratio, "strict": strict, "warnings": warnings, "costs": costs}


def race(ours: Contestant, peer: Contestant, rounds: int) -> float | None:
    """Let both run in alternating rounds; the median of the peer's time / our time."""
    begin, ratios = time.monotonic(), []
    for index in range(rounds):
        for contestant in (ours, peer) if index % 2 else (peer, ours):
            if not contestant.attempt(contestant.round):
                return None
        ratios.append(peer.timing.rounds[-1] / ours.timing.rounds[-1])
        if time.monotonic() - begin > ROUNDS_SECONDS:
            break
    return median(ratios)


def compared(got: Sequence[Any], wanted: Sequence[Any], noise: Sequence[float] | None) -> Result:
    """The largest difference, and whether every output agrees."""
    try:
        apart = relative_differences(got, wanted)
        if not agree(apart, noise) and (ordered := in_their_order(got, wanted)) is not None:
            in_order = relative_differences(ordered, wanted)
            apart = in_order if agree(in_order, noise) else apart
    except BackendError as error:
        return {"difference": None, "agrees": False, "error": f"outputs cannot be compared: {error}"}
    return {"difference": max(apart, default=0.0), "agrees": agree(apart, noise)}


def failure(error: object) -> Result:
    """An error as a result; `typed` says that perframe raised it on purpose."""
    text = str(error)
    kind = getattr(perframe.errors, text.partition(":")[0], None)
    return {"error": text, "typed": isinstance(kind, type) and issubclass(kind, PerframeError)}


# --- all models ---


def sweep(
    folder: Path, backends: Sequence[str], out: Path, settings: Settings, again: bool, progress: Progress
) -> dict[str, Result]:
    """Examine what has no results yet. Returns the results of all models of the folder."""
    models = json.loads(out.read_text(encoding="utf-8"))["models"] if out.exists() else {}
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*.onnx"))}
    bar = progress.add_task("", total=len(files))
    for name, file in files.items():
        known = {} if again else models.get(name, {}).get("sides", {})
        missing = [backend for backend in backends if backend not in known]
        if missing and not (name in models and not known and not again):
            found = examine(
                file, missing, settings, lambda what, name=name: progress.update(bar, description=f"{name}: {what}")
            )
            found["sides"] = {**models.get(name, {}).get("sides", {}), **found["sides"]}
            models[name] = found
            write(out, {"machine": machine_facts(), "settings": vars(settings), "models": models})
        progress.advance(bar)
    return {name: models[name] for name in files}


def write(out: Path, content: Mapping[str, Any]) -> None:
    """Write a file as a whole: an interruption leaves the one before."""
    part = out.with_name(out.name + ".part")
    part.write_text(json.dumps(content, indent=1))
    part.replace(out)


# --- the report ---


def show(models: Mapping[str, Result], console: Console) -> None:
    """Print the table, and below it what needs work."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("model", overflow="fold")
    for column in ("side", "differs", "noise", "strict", "first", "memory", "steady", "ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, model in models.items():
        for side, facts in model["sides"].items():
            table.add_row(name, side, *cells(model, facts))
    console.print(table, "")
    for line in findings(models):
        console.print(Text(line), soft_wrap=True)
    for backend in sorted({side for model in models.values() for side in model["sides"]}):
        console.print(
            summary(backend, [model["sides"][backend] for model in models.values() if backend in model["sides"]])
        )


def markdown(models: Mapping[str, Result]) -> str:
    """All models as a Markdown table."""
    rows = ["| model | CPU | onnxruntime / ours | differs | noise | gpu_compute | gpu_pixel |", "|" + "---|" * 7]
    for name, model in models.items():
        sides, noise = model["sides"], model.get("noise")
        cpu = sides.get("cpu", {})
        facts = ["–"] * 3
        if "agrees" in cpu:
            ratio = "–" if cpu["ratio"] is None else f"{cpu['ratio']:.2f}"
            facts = [seconds_text(cpu["steady"]), ratio, _power(cpu["difference"])]
        gl = [_state(sides.get(backend)) for backend in ("gpu_compute", "gpu_pixel")]
        rows.append(f"| {' | '.join([name.removesuffix('.onnx'), *facts, _power(noise), *gl])} |")
    return "\n".join(rows)


def _power(value: float | None) -> str:
    return "–" if value is None else f"{value:.0e}"


def _state(facts: Result | None) -> str:
    """How a model runs on a GPU backend."""
    if facts is None:
        return "–"
    if "agrees" not in facts:
        return "error"
    return ("" if facts["agrees"] else "differs, ") + ("strict" if facts["strict"] else "falls back")


def cells(model: Result, facts: Result) -> Iterator[Text]:
    """One side's row."""
    if "agrees" not in facts:
        yield Text("error" if facts["typed"] else "untyped error", "red")
        return
    noise, apart = model["noise"], facts["difference"]
    yield Text("–" if apart is None else f"{apart:.1e}", "" if facts["agrees"] else "red")
    yield Text("–" if noise is None else f"{noise:.1e}")
    yield Text("yes" if facts["strict"] else "no", "" if facts["strict"] else "yellow")
    yield Text(seconds_text(facts["first"]))
    yield Text("–" if facts["memory"] is None else bytes_text(facts["memory"]))
    yield Text(seconds_text(facts["steady"]))
    ratio = facts["ratio"]
    yield Text("–" if ratio is None else f"{ratio:.2f}", "green" if ratio and ratio >= 1 else "yellow")


def findings(models: Mapping[str, Result]) -> Iterator[str]:
    """What fails, differs, falls back, or is slow."""
    for name, model in models.items():
        if error := model.get("peer", {}).get("error"):
            yield f"{name}: {PEER} fails: {error}"
        for side, facts in model["sides"].items():
            where = f"{name}, {side}"
            if error := facts.get("error"):
                yield f"{where}: {'' if facts.get('typed') else 'untyped: '}{error}"
                continue
            if not facts["agrees"]:
                yield f"{where}: differs by {facts['difference']:.1e}, noise {model['noise'] or 0:.1e}"
            for text in facts["warnings"]:
                yield f"{where}: {text}"
            if side == "cpu" and facts["ratio"] is not None and facts["ratio"] < SLOW:
                yield f"{where}: {facts['ratio']:.2f}; {costliest(facts)}"


def costliest(facts: Result, count: int = 4) -> str:
    """The operators that take most of a run; the rest is what runs on the host, and Python."""
    rows = sorted(facts["costs"].items(), key=lambda row: -row[1])[:count]
    return ", ".join(f"{operator or 'copies'} {seconds / facts['steady']:.0%}" for operator, seconds in rows)


def summary(backend: str, sides: Sequence[Result]) -> str:
    """One line for one backend."""
    ran = [facts for facts in sides if "agrees" in facts]
    ratios = [facts["ratio"] for facts in ran if facts["ratio"]]
    mean = f", ratio {geometric_mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    agree, strict = sum(facts["agrees"] for facts in ran), sum(facts["strict"] for facts in ran)
    return f"{backend}: {len(ran)} of {len(sides)} run, {agree} agree, {strict} strictly{mean}"


def main(
    folder: Annotated[Path, typer.Argument(help="ONNX files, in folders of any depth.", exists=True, file_okay=False)],
    backend: Annotated[str, typer.Option(metavar="NAME,...")] = "cpu,gpu_compute,gpu_pixel",
    dims: Annotated[str, typer.Option(metavar="NAME=N,...", help="Open dims; others follow from their names.")] = "",
    seed: int = 0,
    rounds: Annotated[int, typer.Option(min=1)] = 7,
    threads: Annotated[int, typer.Option(min=1, help="Of each side.")] = 2,
    cpu_clock: Annotated[bool, typer.Option("--cpu-clock", help="For a busy machine, with --threads 1.")] = False,
    seconds: Annotated[float, typer.Option(help="Limit for each answer of a side.")] = 300,
    memory: Annotated[float, typer.Option(help="Limit for each side, in GiB.")] = 8,
    json_file: Annotated[Path | None, typer.Option("--json", help="Results; FOLDER/sweep.json without it.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print all models as a Markdown table.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Run models that have results, too.")] = False,
) -> None:
    """All models of a folder through all backends, against onnxruntime."""
    clock: Clock = "cpu" if cpu_clock else "wall"
    settings = Settings(parse_dims(dims), seed, rounds, threads, clock, seconds, int(memory * 2**30))
    console = Console()
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        models = sweep(folder, backend.split(","), json_file or folder / "sweep.json", settings, again, progress)
    if as_markdown:
        print(markdown(models))
    else:
        show(models, console)
    sound = all(
        model["sides"] and all(facts.get("agrees") for facts in model["sides"].values()) for model in models.values()
    )
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    typer.run(main)
