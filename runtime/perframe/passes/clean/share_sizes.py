"""A Shape of one open dim reads the only input that declares the dim. Layers that compute from it become equal.

A decoder computes positions in each of its layers, from the length of that layer's own operand.
"""

from __future__ import annotations

from perframe.ir import Evaluate, Model, Value
from perframe.ir.report import refuse


def run(model: Model, evaluate: Evaluate) -> int:
    """Let layers read the inputs, and return the number of these layers."""
    declared, changed = _declared(model), 0
    for layer in model.walk():
        if layer.op != "Shape" or (shape := layer.x.spec.shape) is None:
            continue
        axes = range(*slice(layer.start, layer.end).indices(len(shape)))
        dim = shape[axes[0]] if len(axes) == 1 else None
        if not isinstance(dim, str) or dim not in declared:
            continue
        found = declared[dim]
        if found is None:
            refuse(layer, f"{dim!r} is a size of several inputs, and states may have other sizes")
        elif found[0] is not layer.x:
            layer.set_input(0, found[0])
            layer.attributes |= {"start": found[1], "end": found[1] + 1}
            changed += 1
    return changed


def _declared(model: Model) -> dict[str, tuple[Value, int] | None]:
    """The input and the axis that declare each named size; None for a name that occurs again."""
    found = dict[str, tuple[Value, int] | None]()
    for value in model.inputs:
        for axis, dim in enumerate((value.shape or ()) if value.kind == "tensor" else ()):
            if isinstance(dim, str):
                found[dim] = None if dim in found else (value, axis)
    return found
