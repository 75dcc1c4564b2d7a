"""Layers that compute the same result become one layer; equal small constants become one constant."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse

MAX_BYTES = 4096  # of a constant that is compared with others


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers and constants that were removed."""
    outputs = set(model.output_names)
    renamed = _merged_constants(model, outputs)
    seen: dict[Hashable, Layer] = {}
    kept, removed = list[Layer](), len(renamed)
    for layer in model.layers:
        layer.inputs = [renamed.get(name, name) for name in layer.inputs]
        key = _key(layer)
        first = layer if key is None else seen.setdefault(key, layer)
        if first is layer:
            kept.append(layer)
        elif outputs.intersection(layer.outputs):
            refuse(layer, f"it computes the same as {first.name!r}, and the model outputs both")
            kept.append(layer)
        elif any(name and not other for name, other in zip(layer.outputs, first.outputs, strict=True)):
            kept.append(layer)  # the first one lacks an output that this one makes
        else:
            renamed.update(zip(layer.outputs, first.outputs, strict=True))
            removed += 1
    model.layers = kept
    return removed


def _merged_constants(model: Model, outputs: set[str]) -> dict[str, str]:
    """The names of constants that equal an earlier one, with that one's name."""
    seen: dict[Hashable, str] = {}
    renamed = {}
    for name, value in model.constants.items():
        if value.nbytes <= MAX_BYTES and value.dtype != object:
            first = seen.setdefault((value.dtype.str, str(value.dtype), value.shape, value.tobytes()), name)
            if first != name and name not in outputs:
                renamed[name] = first
    for name in renamed:
        del model.constants[name]
    return renamed


def _key(layer: Layer) -> Hashable | None:
    """Everything that decides what a layer computes; None for a layer that may give other values each time."""
    entry = layer.declaration
    if not entry.pure or not any(layer.inputs):
        return None
    made = (
        *(layer.op, len(layer.outputs), tuple(layer.inputs), _frozen(layer.attributes)),
        *(layer.epilogue, layer.on_host, layer.channels_last),
    )
    try:
        hash(made)
    except TypeError:
        return None
    return made


def _frozen(value: Any) -> Any:
    """An attribute in a form that can be compared and hashed."""
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    return type(value), value
