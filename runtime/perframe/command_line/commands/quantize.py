"""`perframe quantize`: a smaller model, and the errors of its layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line.options import AsJson, HtmlPage, KeptDims, Mean, ModelName, Scale, Seed, Std, takes_key
from perframe.command_line.terminal import Console, console, progress_bar, say_json, table
from perframe.errors import PerframeError
from perframe.safety.wording import bytes_text, counted

if TYPE_CHECKING:
    from perframe.ir import Model
    from perframe.quantization.measuring import QuantizationErrors

SHOWN = 12  # layers on the screen
LARGEST = 1e30  # a page holds no infinities
WEIGHTS = "float16|uint8|int8|int4"
DATA = "Inputs of typical runs: a folder of pictures, an .npz or .npy, or module:function that yields dicts of arrays."


@takes_key
def quantize(
    model: ModelName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Output file: m.perframe, m.onnx or m.sentis.")],
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
    dims: KeptDims = "",
) -> None:
    """Quantize a model's weights, or with --static the whole model, and show the errors."""
    from perframe.command_line.calibration import calibration_data
    from perframe.command_line.sources import Normalization, loaded_model, parse_dims, parse_numbers
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
    say_json(as_dict(found)) if as_json else show(found, console())


@dataclass(frozen=True)
class Quantized:
    """A quantized model in a file, and its errors. `random` says that they are those of random inputs.

    `failure` says why random inputs did not work; then there are no errors.
    """

    model: Model
    path: Path
    before: int  # bytes of constants
    after: int
    errors: QuantizationErrors
    random: bool
    failure: str = ""

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.path.stat().st_size

    @property
    def left(self) -> list[str]:
        """The layers whose weights are still float32, without small ones."""
        from perframe.quantization.weights import LEAST_ELEMENTS, weights_of

        return [
            layer.name
            for layer in self.model.layers
            if any(weights.values.size >= LEAST_ELEMENTS for weights in weights_of(layer))
        ]


def examine(model: Model, path: Path, data: Iterable[Any] | None, seed: int, **options: Any) -> Quantized:
    """Quantize a model, save it, and measure the errors: on the data, or else on one run of seeded random inputs.

    `options` are those of `quantize`. Raises its errors.
    """
    from perframe.command_line.sources import model_inputs
    from perframe.exporters.saving import save
    from perframe.quantization.measuring import QuantizationErrors, measure_errors
    from perframe.quantization.quantizing import quantize

    samples = list(data) if isinstance(data, Iterator) else data  # it is read twice
    with progress_bar() as progress:
        made = quantize(model, calibration=samples, progress=progress, **options)
        progress("measures errors", 1.0)
        errors, failure = QuantizationErrors(0, (), {}), ""
        if samples is not None:
            errors = measure_errors(model, made, samples)
        else:
            try:
                random, _ = model_inputs(model, seed=seed, likely=True)
                errors = measure_errors(model, made, [random])
            except PerframeError as error:  # a model may want inputs of which the file says nothing
                failure = str(error)
    save(made, path)
    return Quantized(made, path, _bytes(model), _bytes(made), errors, samples is None, failure)


def _bytes(model: Model) -> int:
    """The bytes of a model's constants in a file."""
    from perframe.files.tensors import stored_bytes
    from perframe.tensor import DataType

    return sum(stored_bytes(DataType.of(value.dtype), value.shape) or 0 for value in model.constants.values())


def as_dict(found: Quantized) -> dict[str, Any]:
    """The report for a machine."""
    report = {
        "file": str(found.path),
        "bytes": found.size,
        "constants": {"before": found.before, "after": found.after},
        "inputs": "random" if found.random else "calibration",
        "left": found.left,
        "failure": found.failure,
    }
    return report | found.errors.as_json()


def show(found: Quantized, console: Console) -> None:
    """Print the report for a person: sizes, the worst layers, and the outputs."""
    from rich.text import Text

    ratio = found.before / max(1, found.after)
    console.print(
        f"{found.path}: {found.size:,} bytes; constants {bytes_text(found.before)} → {bytes_text(found.after)}, "
        f"1/{ratio:.2f}",
        soft_wrap=True,
    )
    if found.left:
        few = ", ".join(found.left[:SHOWN]) + (", ..." if len(found.left) > SHOWN else "")
        console.print(Text(f"{len(found.left)} layers keep weights of float32: {few}"), soft_wrap=True)
    if found.failure:
        console.print(Text(f"\nerrors are not known, for random inputs do not fit: {found.failure}"), soft_wrap=True)
        return
    runs = "random inputs" if found.random else f"{counted(found.errors.runs, 'run')} of calibration data"
    console.print(f"\nerrors on {runs}, as parts of the values; the worst layers", style="dim", soft_wrap=True)
    layers = table("layer", "operator", "output", right=("error", "of its inputs", "SQNR"))
    for one in found.errors.layers[:SHOWN]:
        figures = (f"{one.relative:.2%}", f"{one.inherited:.2%}", f"{one.sqnr:.1f} dB")
        layers.add_row(Text(one.layer), one.op, Text(one.output), *figures)
    console.print(layers)
    for name, error in found.errors.outputs.items():
        console.print(Text(f"output {name}: {error:.2%}", "bold"), soft_wrap=True)


def write(path: Path, found: Quantized) -> None:
    """Draw the quantized model on a page, colored by the errors."""
    from perframe.inspection.page import Mark, write_page

    worst: dict[str, float] = {}
    for one in found.errors.layers:
        worst[one.layer] = max(worst.get(one.layer, 0.0), min(one.relative, LARGEST))
    write_page(path, found.model, None, {"error": Mark(worst)})
