"""`perframe optimize`: what each pass did to a model, and what it refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perframe.command_line.options import AsJson, KeptDims, ModelName, Seed, Signature, check_backends, takes_key
from perframe.command_line.terminal import Console, console, progress_bar, say, say_json, table
from perframe.safety.wording import bytes_text, counted

if TYPE_CHECKING:
    from perframe.ir import Model
    from perframe.ir.report import ModelSize, OptimizationReport
    from perframe.tensor import BackendType

REFUSALS = 8  # of one pass, on the screen


@takes_key
def optimize(
    model: ModelName,
    out: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Output file: m.perframe, m.onnx, m.sentis or m.glsl.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each pass changed, refused, and where layers came from.")
    ] = False,
    stop_after: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Stop after N passes, to find a faulty one.")
    ] = None,
    backend: Annotated[
        str, typer.Option(metavar="NAME", help="Also show the passes that prepare the model for this backend.")
    ] = "",
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: KeptDims = "",
    signature: Signature = None,
) -> None:
    """Make a model smaller and faster without changing its results, and show how."""
    import perframe as pf
    from perframe.command_line.sources import loaded_model, parse_dims
    from perframe.exporters.saving import check_name

    if out is not None:
        check_name(out.name)
    (place,) = check_backends([backend]) if backend else (None,)
    wants_origins = explain or as_json
    passes = None if wants_origins else stop_after
    loaded = loaded_model(model, seed, not wants_origins, parse_dims(dims), passes, signature)
    report = explained(loaded, stop_after) if wants_origins else report_of(loaded)
    if out is not None:
        pf.save(loaded, out)
    prepared = None if place is None else report_of_preparation(loaded, place)
    if as_json:
        say_json(report.as_json() | ({} if prepared is None else {"prepared": prepared.as_json()}))
    else:
        is_open = any(value.shape is not None and not value.shape.is_static for value in loaded.inputs)
        show(loaded.name, report, console(), explain, is_open)
        if prepared is not None:
            show(f"\nprepared for {place}", prepared, console(), explain)
        if out is not None:
            say(f"{out}: {out.stat().st_size:,} bytes")


def report_of(model: Model) -> OptimizationReport:
    """The report of a model's passes."""
    from perframe.backends import evaluator
    from perframe.passes import optimize

    return model.report or optimize(model, evaluator())  # a file of an optimized model is loaded without passes


def explained(model: Model, stop_after: int | None = None) -> OptimizationReport:
    """Run the passes on a model that was loaded without them, and return their report with the origins of layers."""
    from perframe.backends import evaluator
    from perframe.passes import optimize

    model.preparations = None
    with progress_bar() as progress:
        return optimize(model, evaluator(), progress, stop_after, explain=True)


def report_of_preparation(model: Model, backend: BackendType) -> OptimizationReport | None:
    """The report of the passes that prepare a model for a backend; None if there are none."""
    from perframe.backends import evaluator
    from perframe.passes import prepare

    made = prepare(model, evaluator(), backend, explain=True)
    return None if made is model else made.report


def show(title: str, report: OptimizationReport, console: Console, explain: bool, is_open: bool = False) -> None:
    """Print the report for a person: the sums, and with `explain` each pass with what it did and refused, and where
    layers come from. `is_open` says that the model has open dims.
    """
    from rich.text import Text

    console.print(Text(title, "bold"))
    console.print(f"  {_sizes(report.before, is_open)}\n  {_sizes(report.after, is_open)} after the passes")
    if is_open:
        console.print("  multiply-adds depend on the open dims: set them with --dims")
    if not explain:
        return
    passes = table("#", "pass", right=("changes", "layers", "constants", "multiply-adds"))
    for one in report.passes:
        if one.changes:
            before, after = one.before, one.after
            passes.add_row(
                str(one.number),
                f"{one.name} ({one.body})" if one.body else one.name,
                str(one.changes),
                _difference(before.layers, after.layers),
                _difference(before.bytes, after.bytes, bytes_text),
                "" if is_open else _difference(before.multiply_adds, after.multiply_adds),
            )
    console.print()
    console.print(passes)
    for name, refusals in report.refusals.items():
        console.print(f"\n{name} refused {counted(len(refusals), 'layer')}", style="dim")
        for refusal in refusals[:REFUSALS]:
            console.print(Text(f"  {refusal}"))
        if len(refusals) > REFUSALS:
            console.print(f"  and {len(refusals) - REFUSALS} more: --json lists all")

    made = [origin for origin in report.origins if origin.is_changed]
    if made:
        console.print(f"\n{len(made)} layers were made of others", style="dim")
    for origin in made:
        console.print(Text(f"  {origin}"))
    if report.gone:
        console.print(f"\n{len(report.gone)} layers are gone: constants, duplicates, or without effect", style="dim")
    for layer in report.gone:
        console.print(Text(f"  {layer}"))


def _sizes(size: ModelSize, is_open: bool) -> str:
    work = "" if is_open or size.multiply_adds is None else f", {size.multiply_adds:,} multiply-adds"
    return f"{counted(size.layers, 'layer')}, {bytes_text(size.bytes)} of constants{work}"


def _difference(before: int | None, after: int | None, text: Callable[[int], str] = "{:,}".format) -> str:
    if before is None or after is None or before == after:
        return ""
    return f"{'+' if after > before else '−'}{text(abs(after - before))}"
