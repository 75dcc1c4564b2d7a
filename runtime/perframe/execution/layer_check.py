"""Comparison layer by layer: each layer's outputs on a backend, against its NumPy definition on the same inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from perframe.backends.precision import Precision
from perframe.errors import BackendError
from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass
from perframe.tensor import Array, Tensor

FLOATS = 1e-3  # error that rounding may cause, relative to the largest value; Winograd's products need this much
HALVES = 2e-2  # as rounding to float16 may cause
BFLOATS = 1e-1  # as rounding of what products multiply to bfloat16 may cause
ROUNDED = (
    "quantize",
    "quantized",
    "requantize",
)  # families whose integers may differ by one, since a tie may round either way


def limit_of(precision: Precision) -> float:
    """The error that may come from the rounding of a worker's numbers."""
    return BFLOATS if precision.rounds else HALVES if precision.has_halves else FLOATS


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
    made = model.copy()
    made.outputs = [*made.outputs, *_declared(_inner_values(made))]
    return made


def with_all_copies(model: Model) -> tuple[Model, dict[str, str]]:
    """Return the model with copies of the outputs of all layers appended to its own outputs, and the names of the
    copies by those of the values. The values themselves lie where a run without copies puts them.
    """
    made = model.copy()
    names, added = dict[str, str](), list[Value]()
    for value in _inner_values(made):
        copy = Layer("Copy", f"copy of {value.name}", [value], [f"{value.name}:copy"])
        made.insert(copy, after=value.producer)
        names[value.name] = copy.output.name
        added.append(copy.output)
    made.outputs = [*made.outputs, *_declared(added)]
    return made, names


def _inner_values(model: Model) -> list[Value]:
    """Return the tensors that layers on the backend make and the model does not output."""
    model.infer()
    made = (value for layer in model.layers if not layer.declaration.on_host for value in layer.results)
    return [value for value in made if not value.is_output and value.spec.kind == "tensor"]


def _declared(values: Sequence[Value]) -> Sequence[Value]:
    """Declare the dtypes of values that become outputs."""
    for value in values:
        value.declared = PartialTensor(value.spec.dtype)
    return values


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
        names = layer.output_names
        found = [array(name) if name in values else None for name in names]  # raises what the run raised
        expected = evaluate(layer, [array(name) if name else None for name in layer.input_names])
        for name, made, wanted in zip(names, found, expected, strict=False):
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
    by_element = distances(one, other)
    at = np.unravel_index(int(by_element.argmax()), by_element.shape)
    distance, largest = float(by_element[at]), largest_of(other)
    relative = distance / largest if largest else (np.inf if distance else 0.0)
    limit = limit if wanted.dtype.itemsize >= 4 else HALVES
    if wanted.dtype.kind in "biu":
        agrees = distance <= int(layer.family in ROUNDED)
    else:
        agrees = relative <= limit or distance <= float(np.finfo(np.float32).tiny)
    where = tuple(int(index) for index in at)
    return made(distance, relative, where, float(one[at].real), float(other[at].real), agrees)


def distances(found: Array, wanted: Array) -> Array:
    """The distance of each pair of floats: 0 for equal infinities and two NaNs, infinity for NaN in one alone."""
    with np.errstate(invalid="ignore"):
        apart = np.where((found == wanted) | (np.isnan(found) & np.isnan(wanted)), 0, np.abs(found - wanted))
    return np.where(np.isnan(apart), np.inf, apart)


def largest_of(values: Array) -> float:
    """The largest absolute value that is finite; 0 without any."""
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0))
