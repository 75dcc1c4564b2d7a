"""Layers between a dequantization and a quantization compute with 8-bit values.

Layers that only move elements, or choose among them, take bytes. A chain of formulas of one value becomes a table of
256 bytes. Sums and averages have kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.epilogue import apply
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.layers.quantize import WHOLE_RANGES
from perframe.passes.match import constant_of
from perframe.passes.quantise.quantization import (
    BYTES,
    Numbers,
    Quantization,
    averages_pixels,
    moves,
    numbers_of,
    quantization,
)
from perframe.tensor import DataType

MOST_LAYERS = 16  # that one table replaces at most


def run(model: Model, evaluate: Evaluate) -> int:
    """Rewrite, and return the number of quantizations that were removed."""
    return sum(
        _QuantizationRewrite(model, evaluate, layer).run() for layer in model.walk() if layer.op == "QuantizeLinear"
    )


class _QuantizationRewrite:
    """The rewriting of one quantization and the layers before it."""

    def __init__(self, model: Model, evaluate: Evaluate, rounds: Layer) -> None:
        self.model, self.evaluate, self.rounds = model, evaluate, rounds
        self.to = quantization(rounds)

    def run(self) -> bool:
        """Rewrite, and return whether the quantization was removed."""
        if self.to is None:
            return False
        source = self.rounds.input(0)
        numbers = numbers_of(source)
        if numbers is not None:
            return self._requantize(numbers, self.to)
        layer = source.producer
        if layer is None or source.only_user is None or layer.outputs[1:]:
            return False
        if moves(layer):
            return self._move(layer, self.to)
        if layer.op == "Add" and self._add(layer, self.to):
            return True
        if averages_pixels(layer):
            return self._mean(layer, self.to)
        return layer.family == "elementwise" and self._formulas()

    def _replace(self, layers: list[Layer], *removed: Layer) -> bool:
        """Put new layers in the place of the quantization, and drop the `removed` layers, which had no other reader."""
        self.model.replace(self.rounds, *layers)
        self.model.remove(*removed)
        return True

    def _zero(self, numbers: Numbers) -> int:
        value = constant_of(numbers.zero)
        return 0 if value is None else int(value.reshape(()))

    def _dtype(self, to: Quantization) -> DataType:
        return self.rounds.output.spec.dtype

    def _bytes(self, source: DataType) -> NDArray[np.generic]:
        """Return all bytes, in the order of their bits."""
        return np.arange(256, dtype=np.uint8).view(source.numpy)

    # --- tables ---

    def _look_up(self, source: Value, table: NDArray[np.generic], output: Value) -> Layer:
        constant = self.model.add_constant(f"table of {output.name}", table)
        return Layer("LookUp", f"{output.name} looked up", [source, constant], [output])

    def _table(self, layers: Sequence[Layer], source: Value) -> NDArray[np.generic]:
        """Return the result of the layers, in order, for each byte. The last layer makes bytes."""
        values: dict[Value, NDArray[Any]] = {source: self._bytes(source.spec.dtype)}
        for layer in layers:
            given = [None if value is None else values.get(value, value.constant) for value in layer.inputs]
            values[layer.output] = self.evaluate(layer, given)[0]
        return values[layers[-1].output].reshape(256)

    def _requantize(self, numbers: Numbers, to: Quantization) -> bool:
        """Change from one scale to another: by a table, or by an Identity if the scales are the same."""
        output = self.rounds.output
        if self._is_same(numbers, to):
            return self._replace([Layer("Identity", self.rounds.name, [numbers.bytes], [output])])
        back = self.rounds.x.producer
        return self._replace([self._look_up(numbers.bytes, self._table([back, self.rounds], numbers.bytes), output)])

    def _is_same(self, numbers: Numbers, to: Quantization) -> bool:
        same = numbers.bytes.spec.dtype is self._dtype(to)
        return same and bool(numbers.scale == to.scale) and self._zero(numbers) == int(to.zero)

    def _formulas(self) -> bool:
        """Replace formulas of one value and of constant numbers by a table; there may be quantizations between them."""
        layers: list[Layer] = []
        shape = self.rounds.output.spec.shape
        sources = self._sources(self.rounds, layers, shape) if shape is not None else None
        if sources is None or len(set(sources)) != 1:
            return False
        source, ordered = sources[0], [layer for layer in self.model.layers if layer in layers]
        return self._replace([self._look_up(source, self._table(ordered, source), self.rounds.output)])

    def _sources(self, layer: Layer, layers: list[Layer], shape: DynamicTensorShape) -> list[Value] | None:
        """Return the bytes that the formulas before a layer begin with; None if there are other layers.

        The layers found are added to `layers`.
        """
        if len(layers) >= MOST_LAYERS:
            return None
        layers.append(layer)
        found: list[Value] = []
        for value in layer.operands:
            array = value.constant
            if array is not None and (array.size == 1 or layer.op == "LookUp"):
                continue
            made, spec = value.producer, value.spec
            if array is not None or spec.shape != shape:
                return None
            is_start = layer.op in ("DequantizeLinear", "LookUp") and (made is None or made.op != "LookUp")
            if is_start:
                found.append(value)
                continue
            if made is None or made.outputs[1:] or not self._is_formula(made):
                return None
            more = self._sources(made, layers, shape)
            if more is None:
                return None
            found += more
        return found

    def _is_formula(self, layer: Layer) -> bool:
        if layer.op == "DequantizeLinear":
            return quantization(layer) is not None
        return layer.op == "LookUp" or layer.family == "elementwise"

    # --- layers on bytes ---

    def _move(self, layer: Layer, to: Quantization) -> bool:
        """Let a layer that moves elements move bytes. Inputs with another scale are first changed by a table."""
        data = layer.operands if layer.op == "Concat" else layer.operands[:1]
        found = [numbers_of(value) for value in data]
        if layer.epilogue or any(numbers is None for numbers in found):
            return False
        made: list[Layer] = []
        inputs: list[Value | None] = []
        for value, numbers in zip(data, found, strict=True):
            assert numbers is not None
            if self._is_same(numbers, to):
                inputs.append(numbers.bytes)
                continue
            back, output = value.producer, Value(f"{self.rounds.output.name}/{len(made)}")
            assert back is not None
            table = self._table([back, self._rounds_of(value)], numbers.bytes)
            made.append(self._look_up(numbers.bytes, table, output))
            inputs.append(output)
        rest = layer.inputs[len(data) :]
        moved = Layer(layer.op, layer.name, [*inputs, *rest], [self.rounds.output], layer.attributes)
        return self._replace([*made, moved], layer)

    def _rounds_of(self, value: Value) -> Layer:
        """Return the quantization, applied to another value."""
        return Layer("QuantizeLinear", "", [value, *self.rounds.inputs[1:]], ["rounded"], self.rounds.attributes)

    def _limits(self, layer: Layer, to: Quantization) -> tuple[int, int] | None:
        """Return the bytes between which an epilogue clamps the result; None if it does anything else."""
        if any(stage.limits is None for stage in layer.epilogue):
            return None
        low, high = WHOLE_RANGES[self._dtype(to)]
        real = apply(layer.epilogue, np.array([-np.inf, np.inf], np.float32))
        clipped = np.clip(np.rint(real / to.scale) + int(to.zero), low, high)
        return int(clipped[0]), int(clipped[1])

    def _add(self, layer: Layer, to: Quantization) -> bool:
        found = [numbers_of(value) for value in layer.operands]
        limits = self._limits(layer, to)
        shapes = {value.spec.shape for value in layer.operands}
        if limits is None or len(shapes) != 1 or None in shapes or any(numbers is None for numbers in found):
            return False
        given = [numbers for numbers in found if numbers is not None and numbers.scale is not None]
        attributes = {
            "factors": [float(numbers.scale / to.scale) for numbers in given if numbers.scale is not None],
            "zeros": [self._zero(numbers) for numbers in given],
            "zero": int(to.zero),
            "low": limits[0],
            "high": limits[1],
            "to": self._dtype(to),
        }
        sources = [numbers.bytes for numbers in given]
        added = Layer("QuantizedAdd", layer.name, sources, [self.rounds.output], attributes)
        return self._replace([added], layer)

    def _mean(self, layer: Layer, to: Quantization) -> bool:
        """Rewrite an average over all dims but the first two."""
        numbers, shape = numbers_of(layer.input(0)), layer.input(0).spec.shape
        if numbers is None or numbers.scale is None or shape is None or layer.epilogue:
            return False
        if numbers.bytes.spec.dtype is not self._dtype(to) or self._dtype(to) not in BYTES:
            return False
        keeps = layer.op != "ReduceMean" or bool(layer.keepdims)
        attributes = {
            "factor": float(numbers.scale / to.scale),
            "x_zero": self._zero(numbers),
            "zero": int(to.zero),
            "to": self._dtype(to),
        }
        output = self.rounds.output
        made = output if keeps else Value(f"{output.name}/mean")
        layers = [Layer("QuantizedMean", layer.name, [numbers.bytes], [made], attributes)]
        if not keeps:
            kept = self.model.add_constant(f"axes of {layer.name}", np.arange(2, len(shape)))
            layers.append(Layer("Squeeze", f"{layer.name} squeezed", [made, kept], [output]))
        return self._replace(layers, layer)
