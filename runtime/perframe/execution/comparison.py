"""Comparison layer by layer: each layer's outputs on a backend, against its NumPy definition on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from perframe.errors import BackendError
from perframe.model import Evaluate, Layer, Model, Value
from perframe.tensor import DataType, Tensor

if TYPE_CHECKING:
    from rich.console import Console

Array = NDArray[Any]

FLOATS = 1e-3  # error that rounding may cause, relative to the largest value; Winograd's products need this much
HALVES = 2e-2  # as rounding to float16 may cause
ROUNDED = (
    "quantize",
    "quantized",
    "requantize",
)  # families whose integers may differ by one, since a tie may round either way


@dataclass(frozen=True)
class Comparison:
    """The comparison of one output of a layer.

    `apart` is the largest distance between a value that was found and the value that the definition gives. `relative`
    is `apart` divided by the largest value of the definition. Both are infinite where one value is NaN and the other
    is not.
    """

    layer: str
    op: str
    output: str
    dtype: str
    shape: tuple[int, ...]
    apart: float
    relative: float
    at: tuple[int, ...]
    found: float
    expected: float
    agrees: bool

    def __str__(self) -> str:
        return (
            f"layer {self.layer!r} ({self.op}): {self.output!r} {self.dtype} {self.shape} is {self.found:.7g} at "
            f"{self.at}, where its definition gives {self.expected:.7g}: {self.apart:.3g} apart, {self.relative:.2g} "
            "of the largest value"
        )


class LayerCheck:
    """Compares the layers of runs that keep all values.

    `comparisons` holds the comparisons of the last run, in the order of its layers. With `strict`, the first
    disagreement raises BackendError. `limit` is the largest relative error that counts as agreement.
    """

    def __init__(self, evaluate: Evaluate, where: str, strict: bool, limit: float = FLOATS) -> None:
        self._evaluate, self._where, self._strict, self._limit = evaluate, where, strict, limit
        self.comparisons: list[Comparison] = []

    def begin_run(self) -> None:
        """Forget the run before."""
        self.comparisons = []

    def __call__(self, model: Model, values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Compare the layers of a model or a body. A run computed `values` from the arrays in `given`; the comparison
        waits for these values.
        """
        for comparison in compared(model, values, given, self._evaluate, self._limit):
            self.comparisons.append(comparison)
            if self._strict and not comparison.agrees:
                raise BackendError(f"on {self._where} {comparison}")


def with_all_values(model: Model) -> Model:
    """Return the model with the outputs of all layers appended to its own outputs, so that a run keeps them."""
    added = [Value(name, dtype, None) for names in _inner_values(model) for name, dtype in names.items()]
    return _with(model, model.layers, added)


def with_all_copies(model: Model) -> tuple[Model, dict[str, str]]:
    """Return the model with copies of the outputs of all layers appended to its own outputs, and the names of the
    copies by those of the values. The values themselves lie where a run without copies puts them.
    """
    layers, added, names = list[Layer](), list[Value](), dict[str, str]()
    for layer, made in zip(model.layers, _inner_values(model), strict=True):
        layers.append(layer)
        for name, dtype in made.items():
            names[name] = f"{name}:copy"
            layers.append(Layer("Copy", f"copy of {name}", [name], [names[name]]))
            added.append(Value(names[name], dtype, None))
    return _with(model, layers, added), names


def _with(model: Model, layers: Sequence[Layer], outputs: Sequence[Value]) -> Model:
    """Return a model of these layers with further outputs, which backends prepare as they prepare `model`."""
    made = Model(model.inputs, [*model.outputs, *outputs], layers, model.constants, model.name)
    made.preparations = model.preparations
    return made


def _inner_values(model: Model) -> Iterator[dict[str, DataType]]:
    """Yield for each layer the dtypes of its outputs by name: of tensors that are no outputs of the model."""
    specs, kept = model.infer(), set(model.output_names)
    for layer in model.layers:
        names = [] if layer.declaration.on_host else [name for name in layer.outputs if name and name not in kept]
        yield {name: specs[name].dtype for name in names if specs[name].kind == "tensor"}


def compared(
    model: Model, values: Mapping[str, Any], given: Mapping[str, Any], evaluate: Evaluate, limit: float = FLOATS
) -> Iterator[Comparison]:
    """Compare each layer whose inputs and outputs a run left in `values`. Skip random layers and layers on the host."""
    arrays: dict[str, Any] = {**model.constants, **given}

    def array(name: str) -> Any:
        if name not in arrays:
            value = values[name]
            arrays[name] = value.download_to_array() if isinstance(value, Tensor) else value
        return arrays[name]

    for layer in model.layers:
        if layer.declaration.on_host or not layer.declaration.pure:
            continue
        found = [array(name) if name in values else None for name in layer.outputs]  # raises what the run raised
        expected = evaluate(layer, [array(name) if name else None for name in layer.inputs])
        for name, made, wanted in zip(layer.outputs, found, expected, strict=False):
            if made is not None:
                yield apart(layer, name, made, wanted, limit)


def apart(layer: Layer, name: str, found: Array, wanted: Array, limit: float = FLOATS) -> Comparison:
    """Compare an output with what was wanted: values agree within `limit` of the largest. Raises BackendError if the
    shapes or dtypes differ.
    """
    made = partial(Comparison, layer.name, layer.op, name, found.dtype.name, tuple(found.shape))
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        raise BackendError(
            f"layer {layer.name!r} ({layer.op}): {name!r} is {found.dtype} {found.shape}, where its definition gives "
            f"{wanted.dtype} {wanted.shape}"
        )
    if not wanted.size or wanted.dtype == object:
        same = bool(np.all(found == wanted))
        return made(0.0 if same else np.inf, 0.0 if same else np.inf, (), np.nan, np.nan, same)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    one, other = found.astype(wide), wanted.astype(wide)
    with np.errstate(invalid="ignore"):
        distances = np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, np.abs(one - other))
    distances = np.where(np.isnan(distances), np.inf, distances)
    at = np.unravel_index(int(distances.argmax()), distances.shape)
    distance = float(distances[at])
    finite = np.abs(other[np.isfinite(other)])
    largest = float(finite.max()) if finite.size else 0.0
    relative = distance / largest if largest else (np.inf if distance else 0.0)
    limit = limit if wanted.dtype.itemsize >= 4 else HALVES
    if wanted.dtype.kind in "biu":
        agrees = distance <= int(layer.family in ROUNDED)
    else:
        agrees = relative <= limit or distance <= float(np.finfo(np.float32).tiny)
    where = tuple(int(index) for index in at)
    return made(distance, relative, where, float(one[at].real), float(other[at].real), agrees)


def show(comparisons: Sequence[Comparison], console: Console, most: int = 20) -> None:
    """Print the layers that are furthest from their definitions."""
    from rich.text import Text

    show_rows(comparisons, console, most, lambda one: ("" if one.agrees else "bold red", ()))
    wrong = [one for one in comparisons if not one.agrees]
    console.print(
        f"\n{len(comparisons)} outputs of layers, {len(wrong)} further from their definitions than rounding explains"
    )
    if wrong:
        console.print(Text(f"the first: {wrong[0]}", "bold red"))


Kind = TypeVar("Kind", bound=Comparison)


def show_rows(
    comparisons: Sequence[Kind],
    console: Console,
    most: int,
    more: Callable[[Kind], tuple[str, Sequence[str]]],
    titles: Sequence[str] = (),
) -> None:
    """Print the `most` largest errors, one line each. A name that is too long for that gets another line.

    `more` returns the style of a row, and its texts in more columns below `titles`.
    """
    from rich.text import Text

    chosen = sorted(comparisons, key=lambda one: -one.relative)[:most]
    rows = [(one, (f"{one.apart:.3g}", f"{one.relative:.2g}", *more(one)[1])) for one in chosen]
    heads = ("apart", "of the largest", *titles)
    widths = [max(len(one) for one in column) for column in zip(heads, *(figures for _, figures in rows), strict=True)]
    left = max(console.width - sum(widths) - 2 * len(widths), 0)

    def line(text: str, figures: Sequence[str], style: str) -> Text:
        numbers = "".join(f"  {figure:>{width}}" for figure, width in zip(figures, widths, strict=True))
        return Text(f"{text:<{left}}{numbers}", style)

    console.print(line("layer, operator and output", heads, "dim"))
    for one, figures in rows:
        name, style = one.layer if one.layer == one.output else f"{one.layer} → {one.output}", more(one)[0]
        text = f"{name}  {one.op} {one.dtype} {one.shape}"
        if len(text) > left:
            console.print(Text(name, style))
            text = f"  {one.op} {one.dtype} {one.shape}"
        if len(text) > left:
            console.print(Text(text, style))
            text = ""
        console.print(line(text, figures, style))
