"""Elements that are scattered with one index a row become rows that are scattered.

PyTorch exports `result[index] = rows` that way, with the index of each row repeated for all elements of the row. Eight
bytes of index an element are more than the rows themselves have.
"""

from __future__ import annotations

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were replaced."""
    changes = 0
    for layer in model.walk():
        if layer.op == "ScatterElements" and layer.indices.producer is not None:
            repeat = layer.indices.producer
            if repeat.op == "Expand" and not repeat.epilogue and not layer.epilogue and _is_by_rows(layer, repeat):
                _replace(model, layer, repeat)
                changes += 1
    return changes


def _is_by_rows(layer: Layer, repeat: Layer) -> bool:
    """Whether each index is repeated for a whole row of the data."""
    data, given, made = layer.x.spec.shape, repeat.x.spec.shape, repeat.output.spec.shape
    if data is None or given is None or made is None or repeat.shape.spec.shape != (len(given),):
        refuse(layer, "the ranks of the data and of its repeated indices are not known")
        return False
    row = tuple(data[1:])
    if layer.axis not in (0, -len(data)) or None in row or tuple(made[1:]) != row or any(dim != 1 for dim in given[1:]):
        refuse(layer, "the indices are not repeated for whole rows of known sizes")
        return False
    return layer.reduction == "none" and len(given) == len(data) > 1


def _replace(model: Model, layer: Layer, repeat: Layer) -> None:
    """Scatter rows instead. There are as many indices as before: the first of the sizes may ask for more of them."""
    column, count = Value(f"{layer.name} column"), Value(f"{layer.name} count")
    sizes, indices = Value(f"{layer.name} sizes"), Value(f"{layer.name} rows")
    zero, one = (Value(name, constant=np.array([number], np.int64)) for number, name in enumerate(("zero", "one")))
    pair = Value("column of one", constant=np.array([0, 1], np.int64))  # 0 keeps a dim
    model.replace(
        layer,
        Layer("Reshape", f"{layer.name} column", [repeat.x, pair], [column]),
        Layer("Slice", f"{layer.name} count", [repeat.shape, zero, one, zero], [count]),
        Layer("Concat", f"{layer.name} sizes", [count, one], [sizes], {"axis": 0}),
        Layer("Expand", f"{layer.name} rows", [column, sizes], [indices]),
        Layer("ScatterND", layer.name, [layer.x, indices, layer.updates], layer.outputs),
    )
