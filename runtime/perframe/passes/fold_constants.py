"""Layers of which all inputs are constants are computed now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perframe.model import Array, Evaluate, Layer, Model
from perframe.spec import PartialTensor

MAX_BYTES = 64 << 20  # what folding may add to a model for one layer


def _bytes(layer: Layer, given: Sequence[Array | None]) -> int:
    """How much its outputs would take."""
    specs = layer.infer([None if value is None else PartialTensor.of(value) for value in given])
    return sum((spec.shape.size or 0) * spec.dtype.numpy.itemsize for spec in specs if spec.shape is not None)


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold; returns how many layers went."""
    outputs = set(model.output_names)
    kept: list[Layer] = []
    for layer in model.layers:
        known = all(not name or name in model.constants for name in layer.inputs)
        if not known or not layer.declaration.pure or layer.declaration.on_host or outputs & set(layer.outputs):
            kept.append(layer)
            continue
        given = [model.constants[name] if name else None for name in layer.inputs]
        if _bytes(layer, given) > MAX_BYTES:
            kept.append(layer)
            continue
        values = evaluate(layer, given)
        for name, value in zip(layer.outputs, values, strict=False):
            if name:
                model.constants[name] = np.ascontiguousarray(value).reshape(value.shape)
    folded = len(model.layers) - len(kept)
    model.layers = kept
    return folded
