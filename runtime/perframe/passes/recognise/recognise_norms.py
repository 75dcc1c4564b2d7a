"""Layers that normalize the last dim become LayerNormalization or RMSNormalization, in any spelling.

A scale and a bias of constants after them become the layer's. What the layers compute on probes decides. In float64
each row must agree relative to its own size, so that a guard that matters for small rows only is not lost.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from perframe.ir import Array, Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.passes.match import channel_vector, constant_of, scalar
from perframe.passes.recognise.regions import Region, agree, is_plain_formula, regions, replace_region, within
from perframe.tensor import DataType

MAX_EPSILON = 0.1
TOLERANCE = 1e-5  # in float32, of values around 1: the sums of a row round differently
EXACT = 1e-6  # in float64, of the largest value of a row
KINDS = ("LayerNormalization", "RMSNormalization")
ROWS, COLUMNS = 24, 48  # of the probes


@cache
def _probes() -> Array:
    """Rows of all sizes, around zero and around another number."""
    random = np.random.default_rng(0)
    rows = random.standard_normal((ROWS, COLUMNS)) * np.logspace(-16, 3, ROWS)[:, None]
    return np.concatenate([rows, rows + np.abs(rows).max(1, keepdims=True) / 2, np.zeros((1, COLUMNS))]).astype("f4")


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were removed."""
    removed = 0
    known: dict[Hashable, tuple[str, float] | None] = {}
    for region in regions(model, _belongs, fewest=4):
        if not any(layer.op == "ReduceMean" for layer in region.layers):
            continue
        key = region.key()
        if key not in known:
            known[key] = _norm(region, evaluate)
        found = known[key]
        if found is not None:
            before = len(model.layers)
            _replace(model, region, *found)
            removed += before - len(model.layers)
    return removed


def _belongs(layer: Layer) -> bool:
    """Whether a layer is elementwise, or the mean of rows that keeps its dim."""
    if layer.op != "ReduceMean":
        return is_plain_formula(layer)
    shape, given, axes = layer.x.spec.shape, layer.x.spec.dtype, constant_of(layer.axes)
    if shape is None or axes is None or axes.size != 1 or layer.epilogue or given is not DataType.FLOAT32:
        return False
    last = normalize_axis(int(axes.reshape(())), len(shape)) == len(shape) - 1
    return last and bool(layer.keepdims)


def _numbers(layers: Sequence[Layer]) -> Iterator[float]:
    """Each positive number that may be an epsilon, once."""
    found = {scalar(value.constant) for layer in layers for value in layer.operands}
    yield from (number for number in found if number is not None and 0 < number <= MAX_EPSILON)


def _norm(region: Region, evaluate: Evaluate) -> tuple[str, float] | None:
    same = Region(region.source, region.root, tuple(map(_of_probes, region.layers)))
    values = same.values(evaluate, _probes())
    if values is None or values.shape != _probes().shape:
        return None
    exact = None
    for epsilon in _numbers(region.layers):
        for op in KINDS:
            layer = Layer(op, op, ["x", "scale"], ["y"], {"epsilon": epsilon})
            expected = evaluate(layer, [_probes(), np.ones(COLUMNS, np.float32)])[0]
            if not agree(values, expected, within(expected, TOLERANCE, 1)):
                continue
            wide = _probes().astype(np.float64)
            if exact is None:
                exact = same.values(evaluate, wide)
            expected = evaluate(layer, [wide, np.ones(COLUMNS)])[0]
            if agree(exact, expected, within(np.abs(expected).max(1, keepdims=True), EXACT, 0)):
                return op, epsilon
    return None


def _of_probes(layer: Layer) -> Layer:
    """The layer for probes, which have two dims: a mean of the last dim by a negative axis."""
    if layer.op != "ReduceMean":
        return layer
    last = Value("last axis", constant=np.array([-1], np.int64))
    return Layer(layer.op, layer.name, [layer.input(0), last], layer.outputs, layer.attributes)


def _replace(model: Model, region: Region, op: str, epsilon: float) -> None:
    root = region.root
    shape = region.source.spec.shape
    assert shape is not None
    size = shape[-1]
    factors: list[Array | None] = [None, None]
    if isinstance(size, int):
        region, factors[0] = _followed(region, "Mul", size)
        if op == "LayerNormalization":
            region, factors[1] = _followed(region, "Add", size)
    scale = np.ones(size if isinstance(size, int) else 1, np.float32) if factors[0] is None else factors[0]
    given = [model.add_constant(f"{root.name} scale", scale)]
    if factors[1] is not None:
        given.append(model.add_constant(f"{root.name} bias", factors[1]))
    attributes: dict[str, Any] = {"axis": -1, "epsilon": epsilon}
    made = Layer(op, root.name, [region.source, *given], region.root.outputs, attributes)
    replace_region(model, region, made)


def _followed(region: Region, op: str, size: int) -> tuple[Region, Array | None]:
    """The region with the layer behind it, and that layer's constant, if it is this operator with a number a column."""
    output = region.root.output
    user, shape = output.only_user, output.spec.shape
    if user is None or user.op != op or user.epilogue or shape is None or user.inputs.count(output) > 1:
        return region, None
    other = user.inputs[1] if user.inputs[0] is output else user.inputs[0]
    vector = channel_vector(constant_of(other), size, len(shape), len(shape) - 1)
    if vector is None:
        return region, None
    return Region(region.source, user, (*region.layers, user)), np.ascontiguousarray(vector)
