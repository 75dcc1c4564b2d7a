"""How far a quantized model's values are from those of the model of floats, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.ir import Array, Layer, Model
from perframe.quantization.samples import checked
from perframe.quantization.watching import Watch
from perframe.tensor import DataType


@dataclass(frozen=True)
class LayerError:
    """The error of a value over all runs. `relative` is its root mean square, divided by that of the value."""

    layer: str
    op: str
    output: str
    relative: float
    inherited: float  # the largest relative error of the layer's inputs

    @property
    def sqnr(self) -> float:
        """The ratio of signal to noise in dB; infinite without an error."""
        return math.inf if not self.relative else -20 * math.log10(self.relative)

    @property
    def own(self) -> float:
        """The part of the error that begins at this layer, about: errors are added as if they were independent."""
        return math.sqrt(max(0.0, self.relative**2 - self.inherited**2))


@dataclass(frozen=True)
class QuantizationErrors:
    """The errors of the values that two models have in common by name, worst first, and those of the outputs."""

    runs: int
    layers: tuple[LayerError, ...]
    outputs: Mapping[str, float]  # relative errors, by name

    @property
    def worst_output(self) -> float:
        """The largest relative error of the outputs."""
        return max(self.outputs.values(), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return numbers and texts that `json` takes. What is infinite is None: the ratio of an exact value."""

        def finite(numbers: Mapping[str, Any]) -> dict[str, Any]:
            return {name: None if number in (math.inf, -math.inf) else number for name, number in numbers.items()}

        rows = [finite(asdict(one) | {"sqnr": one.sqnr}) for one in self.layers]
        return {"runs": self.runs, "outputs": finite(self.outputs), "layers": rows}


def measure_errors(
    model: Model, quantized: Model, calibration: Iterable[Mapping[str, Any] | Any]
) -> QuantizationErrors:
    """Run both models on the CPU for each run of the data, and compare their values of float32. Blocks.

    Give the optimized model: `quantize` optimizes, and a value that a pass removed cannot be compared. Raises
    InputError for data that does not fit, and for models without a common value.
    """
    made, also = _made(model), _made(quantized)
    common = {name: layer for name, layer in made.items() if name in also}
    if not common:
        raise InputError(f"{model.name} and {quantized.name} have no value in common: one is not made from the other")
    noise, signal, runs = dict.fromkeys(common, 0.0), dict.fromkeys(common, 0.0), 0
    with Watch(model, common) as first, Watch(quantized, common) as second:
        for sample in checked(model, calibration):
            wanted, found = first.run(sample), second.run(sample)
            runs += 1
            for name, value in wanted.items():
                if value.shape == found[name].shape:
                    noise[name] += _energy(found[name].astype(np.float64) - value)
                    signal[name] += _energy(value)
    relative = {name: _ratio(noise[name], signal[name]) for name in common}
    rows = []
    for name, layer in common.items():
        inherited = max((relative.get(source, 0.0) for source in layer.input_names), default=0.0)
        rows.append(LayerError(layer.name, layer.op, name, relative[name], inherited))
    outputs = {name: relative[name] for name in model.output_names if name in relative}
    return QuantizationErrors(runs, tuple(sorted(rows, key=lambda row: -row.relative)), outputs)


def _made(model: Model) -> dict[str, Layer]:
    """The tensors of float32 that layers make, in run order. Constants that layers expand are not among them."""
    model.infer()
    fixed, made = set(model.constant_values), dict[str, Layer]()
    for layer in model.layers:
        if layer.inputs and fixed.issuperset(layer.operands):
            fixed.update(layer.results)
            continue
        for value in layer.results:
            if value.spec.dtype is DataType.FLOAT32 and value.spec.kind == "tensor":
                made[value.name] = layer
    return made


def _energy(values: Array) -> float:
    return float(np.square(values, dtype=np.float64).sum())


def _ratio(noise: float, signal: float) -> float:
    return 0.0 if not noise else math.sqrt(noise / signal) if signal else math.inf
