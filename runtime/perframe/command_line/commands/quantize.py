"""The command `perframe quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perframe.command_line.keys import takes_key
from perframe.command_line.options import AsJson, Dims, HtmlPage, Mean, ModelName, Scale, Seed, Std, console

WEIGHTS = "float16|uint8|int8|int4"
DATA = "Inputs of typical runs: a folder of pictures, an .npz or .npy, or module:function that yields dicts of arrays."


@takes_key
def quantize(
    model: ModelName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="m.perframe, or m.onnx.")],
    weights: Annotated[str, typer.Option(metavar=WEIGHTS, help="What the weights become.")] = "int8",
    static: Annotated[str, typer.Option(metavar="DATA", help=f"Let layers compute with bytes. {DATA}")] = "",
    runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Use the first N runs of the data.")] = None,
    mean: Mean = "0",
    std: Std = "1",
    scale: Scale = 1.0,
    activations: Annotated[str, typer.Option(metavar="uint8|int8", help="What values become with --static.")] = "uint8",
    method: Annotated[str, typer.Option(metavar="min-max|percentile|mse", help="How ranges are found.")] = "min-max",
    per_tensor: Annotated[bool, typer.Option("--per-tensor", help="One scale for all columns of the weights.")] = False,
    block_size: Annotated[int, typer.Option(metavar="N", help="Weights of int4 that share a scale.")] = 32,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="LAYER", help="A layer that keeps float32; may be repeated.")
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(metavar="PART", help="Leave the worst layers in float32 until outputs err less.")
    ] = None,
    html: HtmlPage = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Make a model's weights smaller, and with --static let its layers compute with bytes; show the errors."""
    from perframe.command_line.calibration import calibration_data
    from perframe.command_line.pictures import Normalization, parse_numbers
    from perframe.command_line.quantize import as_json as to_json
    from perframe.command_line.quantize import examine, show, write
    from perframe.command_line.sources import loaded_model, parse_dims
    from perframe.exporters.saving import check_name

    check_name(out.name)
    normalization = Normalization(scale, parse_numbers(mean, "--mean"), parse_numbers(std, "--std"))
    sizes = parse_dims(dims)
    loaded = loaded_model(model, seed, dims=sizes)
    data = calibration_data(static, loaded, sizes, normalization, runs) if static else None
    options = {"weights": weights, "activations": activations, "method": method, "per_tensor": per_tensor}
    options |= {"block_size": block_size, "exclude": exclude or (), "max_error": max_error}
    found = examine(loaded, out, data, sizes, seed, **options)
    if html is not None:
        write(html, found)
    typer.echo(to_json(found)) if as_json else show(found, console())
