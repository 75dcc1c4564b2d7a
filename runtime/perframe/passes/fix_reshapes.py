"""A Reshape to a computed shape gets a constant shape, if each dim is a known number, a dim of its input, or the rest.

Then no layer needs to compute the shape, not even for a new input shape. A shape with an unknown number stays computed:
the number may not fit, and that is an error.
"""

from __future__ import annotations

import numpy as np

from perframe.layers.entries import listed
from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph


def _target(graph: Graph, layer: Layer) -> list[int] | None:
    """Return the constant shape: 0 copies the input's dim, -1 stands for the rest. None if there is no such shape."""
    given, made = graph.specs[layer.inputs[0]].shape, graph.specs[layer.outputs[0]].shape
    wanted = listed(graph.specs[layer.inputs[1]])
    if given is None or made is None or wanted is None or 0 in made:
        return None
    target: list[int] = []
    for axis, (dim, entry) in enumerate(zip(made, wanted, strict=True)):
        if isinstance(dim, int):
            target.append(dim)
        elif entry in (0, -1):
            target.append(entry)
        elif dim is not None and axis < len(given) and given[axis] == dim:
            target.append(0)
        else:
            return None
    return target


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of replaced shapes."""
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
