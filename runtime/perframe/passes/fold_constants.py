"""Layers of which all inputs are constants are computed now."""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model

MAX_BYTES = 64 << 20  # what folding may add to a model for one layer


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold; returns how many layers went."""
    outputs = set(model.output_names)
    kept: list[Layer] = []
    for layer in model.layers:
        known = all(not name or name in model.constants for name in layer.inputs)
        if not known or not layer.declaration.pure or outputs & set(layer.outputs):
            kept.append(layer)
            continue
        values = evaluate(layer, [model.constants[name] if name else None for name in layer.inputs])
        if sum(value.nbytes for value in values) > MAX_BYTES:
            kept.append(layer)
            continue
        for name, value in zip(layer.outputs, values, strict=False):
            if name:
                model.constants[name] = np.ascontiguousarray(value).reshape(value.shape)
    folded = len(model.layers) - len(kept)
    model.layers = kept
    return folded
