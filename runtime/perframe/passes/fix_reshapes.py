"""A Reshape to a computed shape that is known but for one dim, or copies its input's, gets it as a constant.

What computed the shape is then needed by nobody, and a new input shape computes nothing.
"""

from __future__ import annotations

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph


def _target(graph: Graph, layer: Layer) -> list[int] | None:
    """The constant that says the same: 0 copies the input's dim, -1 is what remains, once."""
    given, made = graph.specs[layer.inputs[0]].shape, graph.specs[layer.outputs[0]].shape
    if given is None or made is None or 0 in made:
        return None
    target = []
    for axis, dim in enumerate(made):
        if isinstance(dim, int):
            target.append(dim)
        else:
            same = dim is not None and axis < len(given) and given[axis] == dim
            target.append(0 if same else -1)
    return target if target.count(-1) <= 1 else None


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace; returns how many shapes were."""
    graph, replaced = Graph(model), 0
    for layer in model.layers:
        if layer.op != "Reshape" or graph.constant(layer.inputs[1]) is not None:
            continue
        target = _target(graph, layer)
        if target is not None:
            layer.inputs[1] = model.add_constant(f"shape of {layer.outputs[0]}", np.array(target, np.int64))
            layer.attributes.pop("allowzero", None)
            replaced += 1
    return replaced
