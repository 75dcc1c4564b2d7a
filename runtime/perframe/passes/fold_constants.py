"""Layers with only constant inputs, and shape arithmetic with known results, become constants.

Weights that take fewer bits in the file stay as they are, so that the model stays small and a backend may multiply
integers directly. `fold_weights` folds those that it does not multiply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from perframe.model import Array, Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.sizes.partial import PartialTensor
from perframe.tensor import DataType

MAX_BYTES = 64 << 20  # folding one layer may add at most so many bytes to a model,
MAX_GROWTH = 4  # or make so many times the bytes that it reads: large weights of bytes become float32
LEAST_WEIGHTS = 256  # elements; fewer are no weights


def _bytes(layer: Layer, given: Sequence[Array | None]) -> int:
    """Return the size of a layer's outputs in bytes."""
    specs = layer.infer([None if value is None else PartialTensor.of(value) for value in given])
    return sum((spec.shape.size or 0) * spec.dtype.numpy.itemsize for spec in specs if spec.shape is not None)


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold, and return the number of layers that were removed."""
    return fold(model, evaluate, lambda layer: _expands(model, layer))


def _expands(model: Model, layer: Layer) -> bool:
    """Whether a layer makes floats of smaller ones: of integers, or of weights in float16."""
    if layer.op != "Cast":
        return layer.op == "DequantizeLinear"
    source = model.constants.get(layer.inputs[0])
    if source is None or source.dtype != np.float16 or source.size < LEAST_WEIGHTS:
        return False
    return layer.attributes["to"] is DataType.FLOAT32


def fold(model: Model, evaluate: Evaluate, kept: Callable[[Layer], bool] = lambda _layer: False) -> int:
    """Fold all but the `kept` layers, and return the number of layers that were removed."""
    outputs = set(model.output_names)
    specs = model.infer()
    layers: list[Layer] = []
    for layer in model.layers:
        fixed = (
            not kept(layer)
            and layer.declaration.pure
            and not layer.declaration.on_host
            and not outputs & set(layer.outputs)
        )
        values = _values(model, layer, specs, evaluate) if fixed else None
        if values is None:
            layers.append(layer)
            continue
        for name, value in zip(layer.outputs, values, strict=False):
            if name:
                model.constants[name] = np.ascontiguousarray(value).reshape(value.shape)
    folded = len(model.layers) - len(layers)
    model.layers = layers
    return folded


def _values(
    model: Model, layer: Layer, specs: Mapping[str, PartialTensor], evaluate: Evaluate
) -> Sequence[Array] | None:
    """Return the outputs of a layer if they are known and not too large, else None."""
    found = [specs[name].value for name in layer.outputs if name]
    known = [value for value in found if value is not None]
    if len(known) == len(layer.outputs) and not layer.epilogue:
        return known
    if any(name and name not in model.constants for name in layer.inputs):
        return None
    given = [model.constants[name] if name else None for name in layer.inputs]
    size = _bytes(layer, given)
    most = max(MAX_BYTES, MAX_GROWTH * sum(value.nbytes for value in given if value is not None))
    if size > most:
        refuse(layer, f"its result would have {size:,} bytes, and at most {most:,} are folded")
        return None
    return evaluate(layer, given)
