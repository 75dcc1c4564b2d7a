"""`perframe convert`: the converted file, its source, and how well both agree."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line.options import AsJson, Signature
from perframe.command_line.terminal import Console, console, progress_bar, say_json, table
from perframe.safety.wording import bytes_text

if TYPE_CHECKING:
    from perframe.conversion.converting import Conversion

SHOWN = 8  # inputs or outputs, on the screen


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="File or folder to convert; the format is detected.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="Output file: m.onnx, m.perframe or m.sentis.")],
    opset: Annotated[int, typer.Option(metavar="N", help="ONNX opset version, at least 15.")] = 18,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME:SHAPE[:DTYPE]", help="Input shape, if the file has none: image:1x3x224x224."
        ),
    ] = None,
    output: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Output of a TensorFlow 1 graph; repeatable.")
    ] = None,
    dynamic: Annotated[
        list[str] | None, typer.Option(metavar="NAME:AXIS=DIM", help="Keep a dim dynamic: image:0=batch.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run both models on random inputs; exit status 1 if they differ.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load pickles, which can run code. Only for files you trust.")
    ] = False,
    builder: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Function that builds the network for a weights file.")
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A Python that has the framework and its exporter."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Time limit for the framework, in seconds.")
    ] = 1800.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed for the inputs of --verify.")] = 0,
    signature: Signature = None,
    as_json: AsJson = False,
) -> None:
    """Convert a file of PyTorch, TensorFlow, Keras, TensorFlow.js, scikit-learn, LiteRT or Unity to ONNX.

    Their frameworks run in a Python that has them, or in an environment that is made once in the cache folder.
    """
    from perframe.conversion import converting

    with progress_bar() as progress:
        made = converting.convert(
            source,
            target,
            opset=opset,
            inputs=given or (),
            outputs=output or (),
            dynamic=dynamic or (),
            verify=verify,
            seed=seed,
            trust=trust,
            builder=builder,
            python=python,
            timeout=timeout,
            signature=signature,
            progress=progress,
        )
    if as_json:
        say_json(as_dict(made))
    else:
        show(made, console())
    if not made.agrees:
        raise typer.Exit(1)


def as_dict(made: Conversion) -> dict[str, Any]:
    """The report for a machine. An error without bound is null."""
    errors = [asdict(error) for error in made.errors]
    for error in errors:
        error |= {name: None for name in ("apart", "relative") if not math.isfinite(error[name])}
    paths = {"source": str(made.source), "target": str(made.target)}
    return asdict(made) | paths | {"verified": bool(errors), "agrees": made.agrees, "errors": errors}


def show(made: Conversion, console: Console) -> None:
    """Print the report for a person."""
    from rich.text import Text

    from perframe.conversion.options import KINDS

    opset = f", opset {made.opset}" if made.opset else ""
    console.print(Text(f"{made.source} is {KINDS[made.kind].words}"))
    console.print(Text(f"{made.target}: {bytes_text(made.bytes)}{opset}, made with {made.made_with}"), soft_wrap=True)
    for what, names in (("inputs", made.inputs), ("outputs", made.outputs)):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        console.print(Text(f"  {what}: {', '.join(names[:SHOWN])}{more}"))
    if not made.errors:
        return
    errors = table("output", "shape", "largest error", "of the largest value", "")
    for error in made.errors:
        verdict = Text("agrees", "green") if error.agrees else Text("differs", "bold red")
        errors.add_row(error.output, str(error.shape), f"{error.apart:.3g}", f"{error.relative:.2g}", verdict)
    console.print(errors)
