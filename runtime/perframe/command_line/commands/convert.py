"""The command `perframe convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.options import AsJson, console


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A file or folder; its content tells what it is.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="m.onnx, or m.perframe.")],
    opset: Annotated[int, typer.Option(help="ONNX's version of operators: 15 or newer.")] = 18,
    given: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME:SHAPE[:DTYPE]", help="Where the file has no shapes: image:1x3x224x224."),
    ] = None,
    output: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Of a TensorFlow 1 graph.")] = None,
    dynamic: Annotated[
        list[str] | None, typer.Option(metavar="NAME:AXIS=DIM", help="A dim that stays open: image:0=batch.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run both on random inputs and compare; exit status 1 if they differ.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load pickles that may run code. Only for files whose origin you trust.")
    ] = False,
    builder: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="What makes the network for a file of weights.")
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A Python with PyTorch and onnxscript, or TensorFlow and tf2onnx."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Time for the framework.")] = 1800.0,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs of --verify.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Convert a file of PyTorch, TensorFlow, Keras, TensorFlow.js or LiteRT to ONNX.

    Their frameworks run in a Python that has them, or in an environment that is made once in the cache folder.
    """
    from perframe.command_line.convert import as_json_value, show
    from perframe.command_line.progress import progress_bar
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
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(as_json_value(made), indent=2))
    else:
        show(made, console())
    if not made.agrees:
        raise typer.Exit(1)
