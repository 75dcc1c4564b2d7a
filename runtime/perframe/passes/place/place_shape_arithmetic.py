"""Small integer layers that only compute shapes run on the CPU, whatever the backend."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model
from perframe.tensor.background import in_turns


def _is_arithmetic(layer: Layer) -> bool:
    """Whether a layer computes on the CPU with its inputs' values. A layer that reads a shape only leaves the values on
    the backend.
    """
    return layer.on_host and layer.declaration.reads_values


def run(model: Model, evaluate: Evaluate) -> int:
    """Place, and return the number of placed layers."""
    placed = 0
    for layer in in_turns(reversed(model.layers)):
        if layer.on_host or any(value.is_output for value in layer.results):
            continue
        readers = [
            (user, index)
            for value in layer.results
            for user in value.users
            for index, read in enumerate(user.inputs)
            if read is value
        ]
        if readers and all(_is_arithmetic(user) or user.declaration.is_host(index) for user, index in readers):
            layer.on_host = True
            placed += 1
    return placed
