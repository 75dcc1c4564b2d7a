"""`perframe inspect`: a model's inputs, outputs and layers, and the effect of the passes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perframe.command_line.options import (
    BACKENDS,
    AsJson,
    Dims,
    HtmlPage,
    ModelName,
    Signature,
    check_backends,
    takes_key,
)
from perframe.command_line.terminal import Console, console, progress_bar, say, say_json, table
from perframe.safety.wording import bytes_text, counted

if TYPE_CHECKING:
    from perframe.backends import BackendName
    from perframe.inspection import ModelFacts
    from perframe.inspection.facts import LayerFacts
    from perframe.ir import Model

FULLEST = 10  # layers that the report on memory lists


@takes_key
def inspect(
    model: ModelName,
    as_json: AsJson = False,
    no_optimize: Annotated[bool, typer.Option("--no-optimize", help="Show the model without optimization.")] = False,
    memory: Annotated[bool, typer.Option("--memory", help="Run once and show memory use.")] = False,
    html: HtmlPage = None,
    profile: Annotated[bool, typer.Option("--profile", help="With --html: color layers by their time.")] = False,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help=f"With --profile: the backend. One of auto, {', '.join(BACKENDS)}.")
    ] = "auto",
    dims: Dims = "",
    signature: Signature = None,
) -> None:
    """Show a model's layers and what optimization changes; with --memory, its memory use."""
    from perframe.command_line.sources import parse_dims

    if memory:
        used = examine_memory(model, parse_dims(dims), signature)
        say_json(asdict(used)) if as_json else show_memory(used, console())
        return
    if html is not None:
        place = check_backends([backend])[0] if profile else None
        write_graph(html, model, not no_optimize, parse_dims(dims), place, signature)
        say(f"{html}: {html.stat().st_size:,} bytes; open it in a browser")
        return
    facts = examine(model, not no_optimize, parse_dims(dims), signature)
    say_json(asdict(facts)) if as_json else show(facts, console())


def examine(
    name: str, optimize: bool = True, dims: dict[str, int] | None = None, signature: str | None = None
) -> ModelFacts:
    """Load a model by path or name, and report on it. Raises ModelError."""
    from perframe.command_line.sources import loaded_model
    from perframe.inspection import inspect

    as_filed = loaded_model(name, optimize=False, dims=dims, signature=signature)
    return inspect(loaded_model(name, dims=dims, signature=signature) if optimize else as_filed, as_filed)


def write_graph(
    path: Path,
    name: str,
    optimize: bool,
    dims: dict[str, int],
    profile: BackendName | None,
    signature: str | None = None,
) -> None:
    """Draw a model on a page, beside the file's model. Times on the backend `profile` color the layers."""
    from perframe.command_line.sources import loaded_model
    from perframe.inspection.page import Mark, write_page

    as_filed = loaded_model(name, optimize=False, dims=dims, signature=signature)
    model = loaded_model(name, dims=dims, signature=signature) if optimize else as_filed
    with progress_bar() as step:
        step(f"times the layers on {_place(profile)}" if profile else "", 0.2)
        marks = {f"time on {_place(profile)}": Mark(_seconds(model, profile), "s")} if profile else None
        step("draws the page", 0.8)
        write_page(path, model, as_filed if optimize else None, marks, title=name)


def _place(backend: str) -> str:
    return "the cpu" if backend == "cpu" else backend


def _seconds(model: Model, backend: BackendName, repeats: int = 5) -> dict[str, float]:
    """The time of each layer on a backend by its name, in seconds. The backend may run several layers as one."""
    from perframe.command_line.sources import model_inputs
    from perframe.execution.worker import Worker

    seconds: dict[str, float] = {}
    arrays, _ = model_inputs(model, likely=True)
    with Worker(model, backend) as worker:
        for output in worker.schedule(arrays).report(repeats):
            seconds[output.layer] = seconds.get(output.layer, 0.0) + (output.seconds or 0.0)
    return seconds


@dataclass(frozen=True)
class MemoryFacts:
    """The memory of a run on the CPU, in bytes.

    `weights` is the size of the model's constants. `packed` is the size of the values that kernels read instead of
    them. `arena` is the memory that all values within a run share. `layers` has the live part of it for each layer.
    """

    weights: int
    packed: int
    arena: int
    layers: list[tuple[str, int]]


def examine_memory(name: str, dims: dict[str, int] | None = None, signature: str | None = None) -> MemoryFacts:
    """Load a model and run it once on the CPU. Open dims that `dims` lacks are chosen. Raises ModelError."""
    import perframe as pf
    from perframe.command_line.sources import loaded_model, model_inputs

    model = loaded_model(name, signature=signature)
    with pf.Worker(model) as worker:
        worker.schedule(model_inputs(model, (), dims)[0]).peek_output()
        parts = worker.memory_use
    return MemoryFacts(
        weights=sum(part.constants for part in parts),
        packed=sum(part.packed for part in parts),
        arena=max((part.workspace for part in parts), default=0),  # parts run one after the other
        layers=[layer for part in parts for layer in part.live],
    )


def show_memory(facts: MemoryFacts, console: Console) -> None:
    """Print the report for a person: the sums, and the layers during which most memory is live."""
    from rich.text import Text

    for what, size in (("weights", facts.weights), ("packed weights", facts.packed), ("arena", facts.arena)):
        console.print(f"  {what:16}{bytes_text(size)}")
    live = table("layer", right=["live in the arena"])
    for layer, size in sorted(facts.layers, key=lambda item: -item[1])[:FULLEST]:
        live.add_row(Text(layer), bytes_text(size))
    console.print("", live)


def show(facts: ModelFacts, console: Console) -> None:
    """Print the report for a person."""
    from rich.text import Text

    from perframe.inspection.facts import shape_text

    name, *lines = str(facts).split("\n")
    console.print(Text(name, "bold"), *map(Text, lines), sep="\n")
    places = [_on_gpu(layer) for layer in facts.layers]
    if places and set(places) <= {"yes", "host"}:  # a column that says one thing leaves the others no room
        places = []
        console.print("  all but shape arithmetic runs on a GPU")
    console.print()
    layers = table("layer", "operator", "output", right=("parameters", "multiply-adds"))
    if places:
        layers.add_column("on a GPU", no_wrap=True)
    shown = ["  ".join(shape_text(shape) for shape in layer.shapes) for layer in facts.layers]
    for layer, shapes, *place in zip(facts.layers, shown, *([places] if places else []), strict=True):
        operators = " + ".join([layer.op, *layer.epilogue])
        numbers = [f"{number:,}" if number else "" for number in (layer.parameters, layer.multiply_adds)]
        layers.add_row(Text(layer.name), operators, shapes, *numbers, *place)
    console.print(layers)
    _show_passes(facts, console)


def _on_gpu(layer: LayerFacts) -> str:
    """Where a layer runs if the backend is a GPU, as a word."""
    from perframe.inspection.facts import HOST

    reason = layer.backends["gpu_compute"]
    return "host" if reason.startswith(HOST) else {"": "yes", "?": "?"}.get(reason, "on the CPU")


def _show_passes(facts: ModelFacts, console: Console) -> None:
    before, after = (sum(counts[when] for counts in facts.operators.values()) for when in (0, 1))
    changed = {op: counts for op, counts in facts.operators.items() if counts[0] != counts[1]}
    if not changed:
        return
    listed = ", ".join(f"{op} {was} → {now}" for op, (was, now) in changed.items())
    console.print(f"\nThe passes made {counted(after, 'layer')} of {before}: {listed}")
