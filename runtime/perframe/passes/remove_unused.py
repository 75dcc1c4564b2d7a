"""Removes layers and constants that no output needs."""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model


def run(model: Model, evaluate: Evaluate) -> int:
    """Remove, and return the number of layers and constants that were removed."""
    needed, kept = set(model.output_names), list[Layer]()
    for layer in reversed(model.layers):
        if needed.isdisjoint(layer.outputs):
            continue
        kept.append(layer)
        needed.update(layer.inputs)
    unused = [name for name in model.constants if name not in needed]
    removed = len(model.layers) - len(kept) + len(unused)
    model.layers = kept[::-1]
    for name in unused:
        del model.constants[name]
    return removed
