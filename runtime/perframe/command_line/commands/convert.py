"""The command `perframe convert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.options import AsJson, console


def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="File or folder to convert; the format is detected.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="Output file: m.onnx or m.perframe.")],
    opset: Annotated[int, typer.Option(help="ONNX opset version, at least 15.")] = 18,
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
        typer.Option(metavar="PATH", help="A Python that has PyTorch and onnxscript, or TensorFlow and tf2onnx."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Time limit for the framework, in seconds.")
    ] = 1800.0,
    seed: Annotated[int, typer.Option(help="Random seed for the inputs of --verify.")] = 0,
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
