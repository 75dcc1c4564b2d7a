"""Rotary embeddings written out in several layers become RotatePairs.

Exporters write x * cos + turned(x) * sin, where turned(x) joins -b and a of all pairs (a, b), or they join
a * cos - b * sin and b * cos + a * sin. The pairs are two halves of x, or neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np

from perframe.layers.base import normalize_axis
from perframe.model import Evaluate, Layer, Model
from perframe.passes.match import Graph
from perframe.tensor import DataType


class Members(NamedTuple):
    """The first or the second numbers of all pairs in the last dim of a value."""

    whole: str
    second: bool
    interleaved: bool


class Found(NamedTuple):
    """The operands of a rotation."""

    x: str
    cos: str
    sin: str
    interleaved: bool


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of rotations that were found."""
    if not any(layer.op == "Concat" for layer in model.layers):
        return 0
    graph, replaced = Graph(model), 0
    for index, layer in enumerate(model.layers):
        found = next(_rotations(graph, layer), None)
        if found is not None and _fits(graph, found, layer.outputs[0]):
            given = [found.x, found.cos, found.sin]
            attributes = {"interleaved": int(found.interleaved)}
            model.layers[index] = Layer("RotatePairs", layer.name, given, list(layer.outputs), attributes)
            graph.add(model.layers[index])
            replaced += 1
    return replaced


def _rotations(graph: Graph, layer: Layer) -> Iterator[Found]:
    """Yield what the layer may be. All matches of one spelling compute the same."""
    if layer.op == "Add":
        yield from _sums(graph, layer)
    joined = _joined(graph, layer.outputs[0])
    if joined is not None:
        yield from _joins(graph, *joined)


def _sums(graph: Graph, layer: Layer) -> Iterator[Found]:
    """Match x * cos + turned(x) * sin."""
    for plain, other in permutations(layer.inputs):
        for (x, cos), (turned, sin) in _pairs(_factors(graph, plain), _factors(graph, other)):
            joined = _joined(graph, turned)
            if joined is None:
                continue
            first, second, interleaved = joined
            negated = _maker(graph, first, "Neg")
            if negated is None:
                continue
            b, a = _members(graph, negated.inputs[0]), _members(graph, second)
            if b == Members(x, True, interleaved) and a == Members(x, False, interleaved):
                yield Found(x, cos, sin, interleaved)


def _joins(graph: Graph, first: str, second: str, interleaved: bool) -> Iterator[Found]:
    """Match the join of a * cos - b * sin and b * cos + a * sin."""
    difference, total = _maker(graph, first, "Sub"), _maker(graph, second, "Add")
    if difference is None or total is None:
        return
    for (a, cos), (b, sin) in _pairs(*(_factors(graph, name) for name in difference.inputs)):
        one, other = _members(graph, a), _members(graph, b)
        if one is None or one.second or other != one._replace(second=True) or one.interleaved != interleaved:
            continue
        for left, right in permutations(total.inputs):
            if {b, cos} == set(_factors(graph, left)) and {a, sin} == set(_factors(graph, right)):
                yield Found(one.whole, cos, sin, interleaved)


def _maker(graph: Graph, name: str, op: str) -> Layer | None:
    layer = graph.producers.get(name)
    return layer if layer is not None and layer.op == op and not layer.epilogue else None


def _factors(graph: Graph, name: str) -> list[str]:
    product = _maker(graph, name, "Mul")
    return [] if product is None else product.inputs


def _pairs(one: list[str], other: list[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the factors of two products in all orders."""
    return ((a, b) for a in permutations(one, 2) for b in permutations(other, 2))


def _joined(graph: Graph, name: str) -> tuple[str, str, bool] | None:
    """Return two values that are joined along the last dim, and whether their numbers alternate."""
    join, interleaved = _maker(graph, name, "Concat"), False
    if join is None:
        flat, interleaved = _maker(graph, name, "Reshape"), True
        join = None if flat is None else _maker(graph, flat.inputs[0], "Concat")
    if join is None or len(join.inputs) != 2 or not _is_last(graph, join):
        return None
    parts = join.inputs
    if interleaved:
        stacked = [_maker(graph, one, "Unsqueeze") for one in parts]
        parts = [layer.inputs[0] for layer in stacked if layer is not None and _adds_last(graph, layer)]
        if len(parts) < 2 or not _are_flattened(graph, parts[0], name):
            return None
    return parts[0], parts[1], interleaved


def _are_flattened(graph: Graph, numbers: str, whole: str) -> bool:
    """Whether pairs of these numbers are in line in a value, with the same dims before them."""
    one, other = graph.specs[numbers].shape, graph.specs[whole].shape
    if not one or other is None or not isinstance(one[-1], int) or tuple(other) != (*one[:-1], 2 * one[-1]):
        return False
    return list(other).count(None) < 2  # of two unknown dims, each could have become the other


def _is_last(graph: Graph, layer: Layer) -> bool:
    """Whether the layer's axis is the last one."""
    shape = graph.specs[layer.outputs[0]].shape
    return shape is not None and normalize_axis(layer.attributes.get("axis", 0), len(shape)) == len(shape) - 1


def _adds_last(graph: Graph, layer: Layer) -> bool:
    axes, shape = graph.constant(layer.inputs[1]), graph.specs[layer.outputs[0]].shape
    return axes is not None and shape is not None and axes.size == 1 and int(axes.item()) in (-1, len(shape) - 1)


def _members(graph: Graph, name: str) -> Members | None:
    """Return of which value's pairs these are the first or the second numbers."""
    split = _maker(graph, name, "Split")
    if split is not None:
        shapes = [graph.specs[one].shape for one in (split.inputs[0], *split.outputs) if one]
        size, *sizes = [shape[-1] for shape in shapes if shape]
        halves = isinstance(size, int) and [2 * one for one in sizes if isinstance(one, int)] == [size, size]
        return Members(split.inputs[0], name == split.outputs[1], False) if halves and _is_last(graph, split) else None
    flat = _maker(graph, name, "Squeeze")
    if flat is not None:
        return _unbound(graph, flat)
    cut = _maker(graph, name, "Slice")
    if cut is None or len(cut.inputs) != 5:
        return None
    shape = graph.specs[cut.inputs[0]].shape
    known = [graph.constant(one) for one in cut.inputs[1:]]
    if shape is None or not isinstance(shape[-1], int) or any(one is None or one.size != 1 for one in known):
        return None
    first, past, axis, step = (int(one.item()) for one in known if one is not None)
    if normalize_axis(axis, len(shape)) != len(shape) - 1:
        return None
    taken = np.arange(shape[-1])[first:past:step].tolist()
    for second in (False, True):
        if taken == list(range(int(second), shape[-1], 2)):
            return Members(cut.inputs[0], second, True)
    return None


def _unbound(graph: Graph, flat: Layer) -> Members | None:
    """Match the numbers of neighbors that a Reshape gave a dim of their own, and a Split then took apart."""
    split = _maker(graph, flat.inputs[0], "Split")
    shaped = None if split is None else _maker(graph, split.inputs[0], "Reshape")
    if split is None or shaped is None or not _is_last(graph, split):
        return None
    pairs, numbers = (graph.specs[name].shape for name in (split.inputs[0], flat.outputs[0]))
    if not pairs or pairs[-1] != 2 or numbers != pairs[:-1]:
        return None
    neighbours = _are_flattened(graph, flat.outputs[0], shaped.inputs[0])
    return Members(shaped.inputs[0], flat.inputs[0] == split.outputs[1], True) if neighbours else None


def _fits(graph: Graph, found: Found, output: str) -> bool:
    """Whether the layer takes these operands: their dtypes and shapes are known, and no dim of x is repeated."""
    x, cos, sin, made = (graph.specs[name] for name in (*found[:3], output))
    if any(spec.dtype is not DataType.FLOAT32 or spec.shape is None for spec in (x, cos, sin, made)):
        return False
    shape, *tables = [spec.shape for spec in (x, cos, sin) if spec.shape is not None]
    size, widths = shape[-1] if shape else 0, {table[-1] if table else 0 for table in tables}
    if not isinstance(size, int) or size % 2 or widths not in ({size}, {size // 2}):
        return False
    repeats = [len(table) > len(shape) for table in tables]
    for table in tables:  # an unknown dim of x may be 1, and the table's not
        repeats += [mine is None and other != 1 for mine, other in zip(shape[-2::-1], table[-2::-1], strict=False)]
    return made.shape == shape and not any(repeats)
