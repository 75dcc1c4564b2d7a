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
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Output file: m.perframe or m.onnx.")],
    weights: Annotated[str, typer.Option(metavar=WEIGHTS, help="Data type of the weights.")] = "int8",
    static: Annotated[
        str, typer.Option(metavar="DATA", help=f"Calibrate and compute with 8-bit integers. {DATA}")
    ] = "",
    runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="Use only the first N samples.")] = None,
    mean: Mean = "0",
    std: Std = "1",
    scale: Scale = 1.0,
    activations: Annotated[
        str, typer.Option(metavar="uint8|int8", help="Data type of activations with --static.")
    ] = "uint8",
    method: Annotated[
        str, typer.Option(metavar="min-max|percentile|mse", help="How value ranges are estimated.")
    ] = "min-max",
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="Use one scale per weight tensor, not one per channel.")
    ] = False,
    block_size: Annotated[int, typer.Option(metavar="N", help="int4 weights per scale.")] = 32,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="LAYER", help="Layer to keep in float32; repeatable.")
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(metavar="PART", help="Largest output error; layers return to float32 until it holds."),
    ] = None,
    html: HtmlPage = None,
    as_json: AsJson = False,
    seed: Seed = 0,
    dims: Dims = "",
) -> None:
    """Quantize a model's weights, or with --static the whole model, and show the errors."""
    from perframe.command_line.calibration import calibration_data
    from perframe.command_line.pictures import Normalization, parse_numbers
    from perframe.command_line.quantize import as_json as to_json
    from perframe.command_line.quantize import examine, show, write
    from perframe.command_line.sources import loaded_model, parse_dims
    from perframe.exporters.saving import check_name

    check_name(out.name)
    normalization = Normalization(scale, parse_numbers(mean, "--mean"), parse_numbers(std, "--std"))
    loaded = loaded_model(model, seed, dims=parse_dims(dims))
    data = calibration_data(static, loaded, normalization, runs) if static else None
    options = {"weights": weights, "activations": activations, "method": method, "per_tensor": per_tensor}
    options |= {"block_size": block_size, "exclude": exclude or (), "max_error": max_error}
    found = examine(loaded, out, data, seed, **options)
    if html is not None:
        write(html, found)
    typer.echo(to_json(found)) if as_json else show(found, console())
