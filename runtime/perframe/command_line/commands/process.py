"""The command `perframe process`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line import options
from perframe.command_line.terminal import console, progress_bar, say_json


def process(
    source: Annotated[str, typer.Argument(metavar="VIDEO_OR_FOLDER", help="Video, picture, or folder of pictures.")],
    out: Annotated[Path, typer.Option(metavar="OUT", help="Video, picture or .npz file, or a folder.")],
    model: Annotated[str, typer.Option(metavar="MODEL", help="Model file, or the name of a known model.")] = "",
    script: Annotated[str, typer.Option(metavar="S.py[:NAME]", help="Script to run instead of a model.")] = "",
    backend: options.BackendOption = "auto",
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of processes.")] = 1,
    ray: Annotated[str, typer.Option(metavar="ADDRESS", help="Ray cluster to run on: host:6379, or auto.")] = "",
    size: Annotated[
        str, typer.Option(metavar="WxH", help="Size of the script's surface. Default: the pictures' size.")
    ] = "",
    rate: Annotated[float | None, typer.Option(metavar="N", help="Frame rate for a folder of pictures.")] = None,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Process only the first N pictures.")] = None,
    chunk: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pictures per chunk; scripts and states restart with each chunk.")
    ] = 240,
    lead: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Pictures to run before each chunk, to warm up script or states."),
    ] = 0,
    mean: options.Mean = "0",
    std: options.Std = "1",
    scale: options.Scale = 1.0,
    suffix: Annotated[str, typer.Option(metavar=".png|.jpg|.npz", help="File format when OUT is a folder.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start over even if there is a result.")] = False,
    as_json: options.AsJson = False,
    dims: options.Dims = "",
    carry: options.Carry = "",
) -> None:
    """Run a model or a script on each picture of a video or folder. Run the same command again to resume."""
    import perframe as pf
    from perframe.command_line.sources import named_model, parse_carry, parse_dims, parse_numbers

    (place,) = options.check_backends([backend])
    found = named_model(model) if model else None
    if isinstance(found, bytes):
        raise typer.BadParameter(f"{model!r} has no file: save it with `perframe save`", param_hint="--model")
    with progress_bar() as progress:
        done = pf.process(
            source,
            out,
            found,
            script=script or None,
            dims=parse_dims(dims),
            carry=parse_carry(carry),
            backend=place,
            jobs=jobs,
            ray=ray or None,
            size=_size(size),
            rate=rate,
            count=count,
            chunk=chunk,
            lead=lead,
            scale=scale,
            mean=parse_numbers(mean, "--mean"),
            std=parse_numbers(std, "--std"),
            suffix=suffix,
            overwrite=overwrite,
            progress=progress,
        )
    report = {"out": str(done.out), "pictures": done.pictures, "resumed": done.resumed, "seconds": done.seconds}
    if as_json:
        say_json(report)
        return
    before = f", {done.resumed} of them before" * bool(done.resumed)
    made = f"{done.pictures} picture{'s' * (done.pictures != 1)}"
    console().print(f"{made}{before}, in {done.seconds:.1f} s: {done.out}", soft_wrap=True)


def _size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    try:
        width, height = (int(side) for side in text.lower().split("x"))
    except ValueError:
        width = height = 0
    if min(width, height) < 1:
        raise typer.BadParameter(f"{text!r} is not a size such as 640x360", param_hint="--size")
    return width, height
