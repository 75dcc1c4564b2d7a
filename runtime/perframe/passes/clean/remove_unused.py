"""Removes layers that no output needs. Constants go with their last reader."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model


def run(model: Model, evaluate: Evaluate) -> int:
    """Remove, and return the number of layers that were removed."""
    unused = list[Layer]()
    for layer in reversed(model.layers):
        if not any(value.users or value.is_output for value in layer.results):
            layer.unlink()
            unused.append(layer)
    model.remove(*unused)
    return len(unused)
