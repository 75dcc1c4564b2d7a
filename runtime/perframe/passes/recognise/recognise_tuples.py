"""Elements that ScatterND replaces, with a tuple of indices each, become rows with a tuple each.

PyTorch exports `cache[:, :, at] = rows` with tuples of single elements. A tuple is four times as large as an element,
and a row of a cache has a hundred.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Array, Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.geometry import Ints
from perframe.ir.report import refuse


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were replaced."""
    changes = 0
    for layer in model.walk():
        join = layer.indices.producer if layer.op == "ScatterND" and layer.reduction == "none" else None
        if join is None or join.op != "Concat" or join.epilogue or layer.epilogue:
            continue
        data, tuples = layer.x.spec.shape, layer.indices.spec.shape
        if data is None or tuples is None or not data.is_static or not tuples.is_static:
            refuse(layer, "the sizes of the data and of its indices are not known")
        elif normalize_axis(join.axis, len(tuples)) == len(tuples) - 1:
            shape, (*_, depth) = tuple(data.to_shape()), tuples.to_shape()
            whole = _whole_dims(join, shape, depth)
            if whole:
                _replace(model, layer, shape, depth, whole)
                changes += 1
            else:
                refuse(layer, "the tuples do not name whole rows one after the other")
    return changes


def _whole_dims(join: Layer, shape: Ints, depth: int) -> int:
    """Return how many of the last indices count through whole dims, while the others stay."""
    for whole in range(depth - 1, 0, -1):
        rest, dims, first = depth - whole, shape[depth - whole : depth], 0
        elements = math.prod(dims)
        counted = np.indices(dims).reshape(whole, elements).T
        for part in join.operands:
            width = part.spec.shape[-1] if part.spec.shape else 0
            assert isinstance(width, int)
            stays = max(0, min(width, rest - first))
            if elements == 0 or not _fits(part, width, elements, stays, counted[:, first + stays - rest :]):
                break
            first += width
        else:
            return whole
    return 0


def _fits(part: Value, width: int, elements: int, stays: int, counted: NDArray[np.intp]) -> bool:
    """Whether the first `stays` indices are equal within each row of elements, and the others count through it."""
    if part.constant is None or not width:
        return width == stays == 1 and _is_repeated(part, elements)
    if part.constant.size % (width * elements):
        return False
    rows: Array = part.constant.reshape(-1, elements, width)
    counts = rows[:, :, stays:]
    return bool((rows[:, :, :stays] == rows[:, :1, :stays]).all() and (counts == counted[:, : width - stays]).all())


def _is_repeated(value: Value, times: int) -> bool:
    """Whether an Expand repeats each number of a value so often, in a row."""
    while (layer := value.producer) is not None and layer.declaration.alias and not layer.epilogue:
        value = layer.input(0)
    if layer is None or layer.op != "Expand" or layer.epilogue:
        return False
    given, made = layer.x.spec.shape, layer.output.spec.shape
    if given is None or made is None or not given.is_static or not made.is_static:
        return False
    repeated = 1
    for size, dim in zip(reversed((1,) * (len(made) - len(given)) + tuple(given)), reversed(made), strict=True):
        if size != 1:
            break
        repeated *= int(dim or 0)
    return repeated > 0 and repeated % times == 0


def _replace(model: Model, layer: Layer, shape: Ints, depth: int, whole: int) -> None:
    """Take the first tuple of each row, without the indices that count."""
    rest, dims = depth - whole, shape[depth - whole : depth]

    def constant(name: str, *numbers: int) -> Value:
        return Value(f"{layer.name} {name}", constant=np.array(numbers, np.int64))

    by_row, tuples, rows = (Value(f"{layer.name} {name}") for name in ("elements", "tuples", "rows"))
    model.replace(
        layer,
        Layer("Reshape", by_row.name, [layer.indices, constant("in rows", -1, math.prod(dims), depth)], [by_row]),
        Layer(
            "Slice",
            tuples.name,
            [by_row, constant("begin", 0, 0), constant("end", 1, rest), constant("axes", 1, 2)],
            [tuples],
        ),
        Layer("Reshape", rows.name, [layer.updates, constant("of rows", -1, 1, *shape[rest:])], [rows]),
        Layer("ScatterND", layer.name, [layer.x, tuples, rows], layer.outputs),
    )
