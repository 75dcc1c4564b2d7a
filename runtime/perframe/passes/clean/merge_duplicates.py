"""Layers that compute the same result become one layer; equal constants become one constant."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse
from perframe.tensor import Array
from perframe.tensor.background import in_turns

CHUNK = 1 << 20  # bytes that are compared at once
SAMPLE = 4096  # bytes of a constant that are compared first: a file may be mapped, and its pages not yet read


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of layers and constants that were removed."""
    merged = _merge_constants(model)
    readers: dict[Hashable, Layer] = {}  # the first by operator and inputs; most layers are the only one
    seen: dict[Hashable, Layer] = {}
    removed = list[Layer]()
    for layer in model.walk():
        first = readers.setdefault((layer.op, layer.inputs), layer)
        if first is layer:
            continue
        seen.setdefault(_key(first), first)
        key = _key(layer)
        first = layer if key is None else seen.setdefault(key, layer)
        if first is layer:
            continue
        if any(value.is_output for value in layer.results):
            refuse(layer, f"it computes the same as {first.name!r}, and the model outputs both")
            continue
        pairs = list(zip(layer.outputs, first.outputs, strict=True))
        if any(value is not None and other is None for value, other in pairs):
            continue  # the first one lacks an output that this one makes
        for value, other in pairs:
            if value is not None and other is not None:
                model.replace_uses(value, other)
        removed.append(layer)
    model.remove(*removed)
    return merged + len(removed)


def _merge_constants(model: Model) -> int:
    """Let layers read the first of equal constants, and return the number of those that nothing reads any more."""
    seen: dict[Hashable, Value] = {}
    merged = 0
    for value in in_turns(model.constant_values):
        array = value.constant
        if array is None or array.dtype == object:
            continue
        first = seen.setdefault((array.dtype, array.shape, _sample(array)), value)
        if first is not value and not value.is_output and _equal(first.constant, array):
            model.replace_uses(value, first)
            merged += 1
    return merged


def _key(layer: Layer) -> Hashable | None:
    """Everything that decides what a layer computes; None for a layer that may give other values each time."""
    entry = layer.declaration
    if not entry.pure or not layer.operands:
        return None
    made = (
        *(layer.op, len(layer.outputs), layer.inputs, _frozen(layer.attributes)),
        *(layer.epilogue, layer.on_host, layer.channels_last, tuple(value.is_half for value in layer.results)),
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


def _sample(array: Array) -> bytes:
    """Return all bytes of a small array, and the first ones of a large one."""
    return array.tobytes() if array.nbytes <= SAMPLE else _bytes(array)[:SAMPLE].tobytes()


def _equal(one: Array | None, other: Array) -> bool:
    """Whether two arrays of a shape and dtype, whose samples agree, have the same bytes."""
    if one is None or other.nbytes <= SAMPLE:
        return one is not None
    a, b = _bytes(one), _bytes(other)
    return all(np.array_equal(a[at : at + CHUNK], b[at : at + CHUNK]) for at in range(0, len(a), CHUNK))


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
