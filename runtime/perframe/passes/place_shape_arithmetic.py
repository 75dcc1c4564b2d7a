"""Small integer layers that only lead to shapes run on the CPU, whatever the backend."""

from __future__ import annotations

from perframe.model import Evaluate, Model
from perframe.passes.match import Graph


def run(model: Model, evaluate: Evaluate) -> int:
    """Place; returns how many layers were."""
    graph, placed, outputs = Graph(model), 0, set(model.output_names)
    for layer in reversed(model.layers):
        if layer.on_host or outputs & set(layer.outputs):
            continue
        readers = [(user, i) for name in layer.outputs for user in graph.users.get(name, []) for i, n in enumerate(user.inputs) if n == name]
        if readers and all(user.on_host or user.declaration.is_host(index) or user.op in ("Shape", "Size") for user, index in readers):
            layer.on_host = True
            placed += 1
    return placed
