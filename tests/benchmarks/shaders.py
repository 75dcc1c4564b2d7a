"""perframe's GPU backends beside ncnn on Vulkan and onnxruntime's WebGPU provider.

`python -m tests.benchmarks.shaders` at the top of a checkout. All run on the software devices of one Mesa
(tools/drivers.py): llvmpipe under OpenGL, lavapipe under Vulkan. Each side has a process of its own, and all take turns
in alternating rounds. It asserts nothing about time.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Any

import numpy as np
import onnx
import onnxruntime
import typer
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tests.benchmarks.peers import PEERS, convert_to_ncnn, peers_python
from tools.driver_environments import driver_environment

from perframe.command_line.commands.bench import machine_facts
from perframe.command_line.contest import BenchTask, Contestant, Limits, Timing, make_task
from perframe.command_line.terminal import seconds_text
from perframe.errors import BackendError, PerframeError
from perframe.inspection.comparison import relative_difference
from perframe.resources import resource
from perframe.safety.archives import read_feed, write_feed

MODELS = (
    "mnist-12",
    "light_squeezenet",
    "light_shufflenet",
    "ultraface_rfb_320",
    "selfie_segmentation",
    "light_densenet121",
    "light_resnet50",
)
OURS = ("gpu_compute", "gpu_pixel")
SIDES = (*OURS, *PEERS)
WIDTH = 150  # columns of the report
SMALLER = 16  # by so much the picture of the new shape is smaller than the model's own
LIMITS = Limits(seconds=300)

Arrays = Sequence[np.ndarray]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What one side did with one model. `differs` is relative to onnxruntime on the CPU, the worst of the outputs."""

    timing: Timing
    differs: float | None = None


@dataclass(frozen=True)
class Settings:
    """What is measured, and how."""

    sides: Sequence[str]
    rounds: int
    threads: int  # of a peer, for its work on the CPU
    driver: str  # "" for the system's


def measure(name: str, settings: Settings, say: Say) -> list[Result]:
    """Measure all sides with one model. The timing of a failed side has its error. Raises ModelError."""
    with tempfile.TemporaryDirectory(prefix="perframe-shaders-") as place, ExitStack() as stack:
        folder = Path(place)
        task = replace(make_task(name, folder, {}, 0), name=Path(name).stem, new_feed=None)
        wanted = reference(task.peers, task.feed)
        opened = opened_task(task, folder)
        racing: list[tuple[Contestant, BenchTask | None]] = []
        results = []
        for side in settings.sides:
            say(f"{side} warms up")
            try:
                file = convert_to_ncnn(task.peers, folder / "ncnn", peers_python()) if side == "ncnn" else None
                contestant = enter(replace(task, peers=file or task.peers), side, settings)
            except PerframeError as error:
                results.append(Result(Timing(task.name, side, error=str(error))))
                continue
            stack.callback(contestant.close)
            contestant.attempt(contestant.prepare)
            racing.append((contestant, opened and replace(opened, peers=file or opened.peers)))
        for index in range(settings.rounds):
            say(f"round {index + 1} of {settings.rounds}")
            for contestant, _ in racing if index % 2 else reversed(racing):
                contestant.attempt(contestant.round)
        for contestant, other_shape in racing:
            say(f"{contestant.timing.side} is compared")
            results.append(finish(contestant, other_shape, wanted, folder, settings))
        return results


def enter(task: BenchTask, side: str, settings: Settings) -> Contestant:
    """Start a side's process on the driver. A peer's process has the peers' environment. Raises BackendError."""
    root = resource("shaders").parent
    paths = {"PYTHONPATH": os.pathsep.join((str(root / "runtime"), str(root)))}
    environment = {**(driver_environment(settings.driver) if settings.driver else {}), **paths}
    if side in OURS:
        return Contestant(task, side, limits=LIMITS, environment=environment)
    command = (str(peers_python()), "-m", "tests.benchmarks.side")
    return Contestant(task, side, settings.threads, limits=LIMITS, environment=environment, command=command)


def finish(
    contestant: Contestant, other_shape: BenchTask | None, wanted: Arrays, folder: Path, settings: Settings
) -> Result:
    """Compare a side's outputs, and measure its first run with another shape in a process of its own."""
    contestant.attempt(contestant.finish)
    if contestant.timing.error:
        return Result(contestant.timing)
    try:
        differs = largest_difference(contestant.outputs(folder), wanted)
    except PerframeError as error:
        return Result(replace(contestant.timing, error=f"outputs cannot be compared: {error}"))
    contestant.close()
    if other_shape is None:
        return Result(contestant.timing, differs)
    other = enter(other_shape, contestant.timing.side, settings)
    try:
        other.attempt(other.prepare)
    finally:
        other.close()
    cpu = {**contestant.timing.cpu, **{name: time for name, time in other.timing.cpu.items() if name == "new_shape"}}
    timing = replace(contestant.timing, new_shape=other.timing.new_shape, cpu=cpu)
    return Result(replace(timing, error=other.timing.error and f"another shape: {other.timing.error}"), differs)


# --- what is right, and another shape ---


def reference(model: Path, feed: Path) -> Arrays:
    """The outputs of onnxruntime on the CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # the caller hears of errors by exceptions
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session.run(None, read_feed(feed))


def largest_difference(made: Arrays, wanted: Arrays) -> float:
    """The largest relative difference of all outputs. ncnn's lack the batch's dim. Raises BackendError."""
    if [array.size for array in made] != [array.size for array in wanted]:
        shapes = [[array.shape for array in arrays] for arrays in (made, wanted)]
        raise BackendError(f"shapes {shapes[0]}, onnxruntime's {shapes[1]}")
    return max(relative_difference(one.reshape(two.shape), two) for one, two in zip(made, wanted, strict=True))


def opened_task(task: BenchTask, folder: Path) -> BenchTask | None:
    """The model with an open height and width, and a smaller picture; None if it computes for one size only."""
    model = onnx.load(task.peers)
    (name, picture), *others = read_feed(task.feed).items()
    if others or picture.ndim != 4:
        return None
    channels_last = picture.shape[3] <= 4
    height = 1 if channels_last else 2
    declared = next(value for value in model.graph.input if value.name == name).type.tensor_type.shape.dim
    for dim, text in zip(declared[height : height + 2], ("height", "width"), strict=True):
        dim.dim_param = text
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    smaller = np.ascontiguousarray(
        picture[:, SMALLER:, SMALLER:] if channels_last else picture[..., SMALLER:, SMALLER:]
    )
    opened, new_feed = folder / "opened.onnx", folder / "new.npz"
    onnx.save(model, opened)
    write_feed(new_feed, {name: smaller})
    try:
        reference(opened, new_feed)
    except (Fail, InvalidArgument, RuntimeException):  # such as a Reshape to fixed sizes
        return None
    return replace(task, ours=opened, peers=opened, new_feed=new_feed)


# --- the report ---


def ratios(results: Sequence[Result], ours: str, peer: str, clock: str) -> dict[str, float]:
    """The peer's steady time / ours, of each model that both have run."""
    times: dict[str, dict[str, float]] = {}
    for result in results:
        timing = result.timing
        steady = timing.steady if clock == "wall" else timing.cpu.get("steady")
        if steady and timing.side in (ours, peer):
            times.setdefault(timing.model, {})[timing.side] = steady
    return {model: both[peer] / both[ours] for model, both in times.items() if len(both) == 2}


def show(results: Sequence[Result], settings: Settings, console: Console) -> None:
    """Print a table of times for each model, the ratios of both clocks, and the errors."""
    plain: dict[str, Any] = {"title_justify": "left", "box": None, "pad_edge": False}
    models = list(dict.fromkeys(result.timing.model for result in results))
    columns = ("load", "first", "new shape", "steady", "first, CPU", "new shape, CPU", "steady, CPU", "differs")
    for model in models:
        table = Table("", *columns, title=model, **plain)
        for result in results:
            timing = result.timing
            if timing.model == model:
                wall = (timing.load, timing.first, timing.new_shape, timing.steady)
                cpu = (timing.cpu.get(what) for what in ("first", "new_shape", "steady"))
                differs = "–" if result.differs is None else f"{result.differs:.0e}"
                table.add_row(timing.side, *(seconds_text(value) for value in (*wall, *cpu)), differs)
        console.print(table, "")
    pairs = [(peer, ours) for ours in OURS for peer in PEERS if {ours, peer} <= set(settings.sides)]
    for clock in ("wall", "cpu") if pairs else ():
        title = f"peer's steady time / ours: {'on the wall' if clock == 'wall' else 'CPU time of all threads'}"
        table = Table("", *(f"{peer} / {ours}" for peer, ours in pairs), title=title, **plain)
        found = [ratios(results, ours, peer, clock) for peer, ours in pairs]
        for model in models:
            table.add_row(model, *(f"{one[model]:.2f}" if model in one else "–" for one in found))
        table.add_row("geometric mean", *(f"{geometric_mean(one.values()):.2f}" if one else "–" for one in found))
        console.print(table, "")
    for result in results:
        if result.timing.error:
            console.print(Text(f"{result.timing.model}, {result.timing.side}: {result.timing.error}"))


def as_json(results: Sequence[Result], settings: Settings) -> str:
    """The results for a machine, with the machine and the settings."""
    listed = [{**asdict(result.timing), "differs": result.differs} for result in results]
    return json.dumps({"machine": machine_facts(), "settings": asdict(settings), "timings": listed}, indent=2)


cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@cli.command()
def main(
    models: Annotated[str, typer.Option(help="Files, or names that `perframe bench` knows.")] = ",".join(MODELS),
    sides: Annotated[str, typer.Option(help="What takes part.")] = ",".join(SIDES),
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all sides take turns.")] = 7,
    threads: Annotated[int, typer.Option(min=1, help="Threads of a peer.")] = os.cpu_count() or 1,
    driver: Annotated[str, typer.Option(help="One of tools/drivers.py; nothing for the system's.")] = "llvmpipe25",
    json_file: Annotated[Path | None, typer.Option("--json", metavar="OUT", help="Write JSON.")] = None,
) -> None:
    """Time perframe's GPU backends beside ncnn on Vulkan and onnxruntime's WebGPU provider, on software devices."""
    chosen = sides.split(",")
    for side in chosen:
        if side not in SIDES:
            raise typer.BadParameter(f"{side!r} is none of {', '.join(SIDES)}", param_hint="--sides")
    settings = Settings(chosen, rounds, threads, driver)
    results: list[Result] = []
    console, status = Console(width=WIDTH), Console(stderr=True)
    for model in models.split(","):
        try:
            results += measure(model, settings, lambda what, model=model: status.print(f"{model}: {what}"))
        except PerframeError as error:
            sys.exit(f"error: {error}")
        if json_file:
            json_file.write_text(as_json(results, settings))
    show(results, settings, console)
    if any(result.timing.error for result in results):
        raise typer.Exit(1)


if __name__ == "__main__":
    cli()
