"""Small integer layers that only compute shapes run on the CPU, whatever the backend."""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph


def _is_arithmetic(layer: Layer) -> bool:
    """Whether a layer computes on the CPU with its inputs' values. A layer that reads a shape only leaves the values on
    the backend.
    """
    return layer.on_host and layer.declaration.reads_values


def run(model: Model, evaluate: Evaluate) -> int:
    """Place, and return the number of placed layers."""
    graph, placed, outputs = Graph(model), 0, set(model.output_names)
    for layer in reversed(model.layers):
        if layer.on_host or outputs & set(layer.outputs):
            continue
        readers = [
            (user, index)
            for name in layer.outputs
            for user in graph.users.get(name, [])
            for index, read in enumerate(user.inputs)
            if read == name
        ]
        if readers and all(_is_arithmetic(user) or user.declaration.is_host(index) for user, index in readers):
            layer.on_host = True
            placed += 1
    return placed
