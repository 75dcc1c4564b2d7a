"""A Reshape to a computed shape gets a constant shape if each dim is known, copied from the input, or the rest.

Then no layer needs to compute the shape, not even for a new input shape. A shape with an unknown number stays computed:
the number may not fit, and that is an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.report import refuse
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import Dim

Entry = int | tuple[Value, int] | None  # a number, the dim of a value along an axis, or unknown
SAME_SHAPE = ("Identity", "Cast", "LayerNormalization", "RMSNormalization", "Softmax", "Dropout")


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of replaced shapes."""
    replaced = 0
    for layer in model.walk():
        if layer.op != "Reshape" or layer.shape.constant is not None:
            continue
        target = _target(layer) or _copied(layer)
        if target is not None:
            layer.set_input(1, model.add_constant(f"shape of {layer.output.name}", np.array(target, np.int64)))
            layer.attributes.pop("allowzero", None)
            replaced += 1
        else:
            refuse(layer, "its shape has a number that is neither known nor a dim of the input")
    return replaced


def _target(layer: Layer) -> list[int] | None:
    """Return the constant shape: 0 copies the input's dim, -1 stands for the rest. None if there is no such shape."""
    given, made = layer.x.spec.shape, layer.output.spec.shape
    wanted = listed(layer.shape.spec)
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


def _copied(layer: Layer) -> list[int] | None:
    """Return the constant shape if each entry is a number or a dim of the input by its origin. One of these dims may
    move to another axis, as the rest: the others then have as many elements as the input's other dims.
    """
    given = layer.x.spec.shape
    entries = _entries(layer.shape)
    if given is None or entries is None or layer.allowzero:
        return None
    source, kept = _same_shape(layer.input(0)), set[int]()
    target: list[int] = []
    for axis, entry in enumerate(entries):
        if isinstance(entry, int):
            target.append(entry)
        elif entry is None or entry[0] is not source or entry[1] in kept:
            return None
        else:
            kept.add(entry[1])
            target.append(0 if entry[1] == axis else -1)
    numbers = [number for number in target if number > 0]
    others: list[Dim] = [dim for axis, dim in enumerate(given) if axis not in kept]
    if any(number < -1 for number in target) or target.count(-1) > 1 or not kept or 0 in others:
        return None
    if 0 in entries:
        return None
    if -1 in entries:  # the rest by the file's own word: the other entries mean what they meant
        return target
    known = [dim for dim in others if isinstance(dim, int)]
    fits = len(known) == len(others) and math.prod(numbers) == math.prod(known)
    return target if fits else None


def _entries(value: Value) -> Sequence[Entry] | None:
    """Where the elements of a vector or a number come from; None if a layer on the way is of another kind."""
    known = value.constant
    if known is not None:
        return [int(number) for number in known.reshape(-1)] if known.dtype.kind in "iu" and known.ndim < 2 else None
    layer = value.producer
    if layer is None or layer.epilogue:
        return None
    if layer.op == "Shape":
        shape = layer.x.spec.shape
        if shape is None:
            return None
        first, end, _ = slice(layer.start, layer.end).indices(len(shape))
        source = _same_shape(layer.input(0))
        return [dim if isinstance(dim, int) else (source, axis) for axis, dim in enumerate(shape)][first:end]
    if layer.op in ("Unsqueeze", "Squeeze", "Identity"):
        return _entries(layer.x)
    if layer.op == "Concat":
        parts = [_entries(part) for part in layer.operands]
        return None if None in parts else [entry for part in parts if part is not None for entry in part]
    if layer.op == "Gather":
        values, indices = _entries(layer.x), layer.indices.constant
        if (
            values is None
            or indices is None
            or indices.ndim > 1
            or (indices.size and abs(indices).max() >= len(values))
        ):
            return None
        return [values[normalize_axis(int(index), len(values))] for index in indices.reshape(-1)]
    return None


def _same_shape(value: Value) -> Value:
    """The first value on the way to this one that has its shape for certain."""
    layer = value.producer
    while layer is not None and layer.output is value and layer.op in SAME_SHAPE:
        value = layer.input(0)
        layer = value.producer
    return value
