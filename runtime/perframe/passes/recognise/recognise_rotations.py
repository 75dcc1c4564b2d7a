"""Rotary embeddings written out in several layers become RotatePairs.

Exporters write x * cos + turned(x) * sin, where turned(x) joins -b and a of all pairs (a, b), or they join
a * cos - b * sin and b * cos + a * sin. The pairs are two halves of x, or neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.passes.match import constant_of
from perframe.tensor import DataType


class Members(NamedTuple):
    """The first or the second numbers of all pairs in the last dim of a value."""

    whole: Value
    second: bool
    interleaved: bool


class Found(NamedTuple):
    """The operands of a rotation."""

    x: Value
    cos: Value
    sin: Value
    interleaved: bool


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of rotations that were found."""
    replaced = 0
    for layer in model.walk():
        found = next(_rotations(layer), None)
        if found is not None and _fits(found, layer.output):
            attributes = {"interleaved": int(found.interleaved)}
            model.replace(layer, Layer("RotatePairs", layer.name, found[:3], layer.outputs, attributes))
            replaced += 1
    return replaced


def _rotations(layer: Layer) -> Iterator[Found]:
    """Yield what the layer may be. All matches of one spelling compute the same."""
    if layer.op == "Add":
        yield from _sums(layer)
    joined = _joined(layer.output)
    if joined is not None:
        yield from _joins(*joined)


def _sums(layer: Layer) -> Iterator[Found]:
    """Match x * cos + turned(x) * sin."""
    for plain, other in permutations(layer.operands):
        for (x, cos), (turned, sin) in _pairs(_factors(plain), _factors(other)):
            joined = _joined(turned)
            if joined is None:
                continue
            first, second, interleaved = joined
            negated = _maker(first, "Neg")
            if negated is None:
                continue
            b, a = _members(negated.x), _members(second)
            if b == Members(x, True, interleaved) and a == Members(x, False, interleaved):
                yield Found(x, cos, sin, interleaved)


def _joins(first: Value, second: Value, interleaved: bool) -> Iterator[Found]:
    """Match the join of a * cos - b * sin and b * cos + a * sin."""
    difference, total = _maker(first, "Sub"), _maker(second, "Add")
    if difference is None or total is None:
        return
    for (a, cos), (b, sin) in _pairs(*(_factors(value) for value in difference.operands)):
        one, other = _members(a), _members(b)
        if one is None or one.second or other != one._replace(second=True) or one.interleaved != interleaved:
            continue
        for left, right in permutations(total.operands):
            if {b, cos} == set(_factors(left)) and {a, sin} == set(_factors(right)):
                yield Found(one.whole, cos, sin, interleaved)


def _maker(value: Value, op: str) -> Layer | None:
    layer = value.producer
    return layer if layer is not None and layer.op == op and not layer.epilogue else None


def _factors(value: Value) -> Sequence[Value]:
    product = _maker(value, "Mul")
    return () if product is None else product.operands


def _pairs(one: Sequence[Value], other: Sequence[Value]) -> Iterator[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """Yield the factors of two products in all orders."""
    return ((a, b) for a in permutations(one, 2) for b in permutations(other, 2))


def _joined(value: Value) -> tuple[Value, Value, bool] | None:
    """Return two values that are joined along the last dim, and whether their numbers alternate."""
    join, interleaved = _maker(value, "Concat"), False
    if join is None:
        flat, interleaved = _maker(value, "Reshape"), True
        join = None if flat is None else _maker(flat.x, "Concat")
    if join is None or len(join.inputs) != 2 or not _is_last(join):
        return None
    parts: Sequence[Value] = join.operands
    if interleaved:
        stacked = [_maker(one, "Unsqueeze") for one in parts]
        parts = [layer.input(0) for layer in stacked if layer is not None and _adds_last(layer)]
        if len(parts) < 2 or not _are_flattened(parts[0], value):
            return None
    return parts[0], parts[1], interleaved


def _are_flattened(numbers: Value, whole: Value) -> bool:
    """Whether pairs of these numbers are in line in a value, with the same dims before them."""
    one, other = numbers.spec.shape, whole.spec.shape
    if not one or other is None or not isinstance(one[-1], int) or tuple(other) != (*one[:-1], 2 * one[-1]):
        return False
    return list(other).count(None) < 2  # of two unknown dims, each could have become the other


def _is_last(layer: Layer) -> bool:
    """Whether the layer's axis is the last one."""
    shape = layer.output.spec.shape
    return shape is not None and normalize_axis(layer.axis, len(shape)) == len(shape) - 1


def _adds_last(layer: Layer) -> bool:
    axes, shape = layer.axes.constant, layer.output.spec.shape
    return axes is not None and shape is not None and axes.size == 1 and int(axes.item()) in (-1, len(shape) - 1)


def _members(value: Value) -> Members | None:
    """Return of which value's pairs these are the first or the second numbers."""
    split = _maker(value, "Split")
    if split is not None:
        shapes = [one.spec.shape for one in (split.x, *split.results)]
        size, *sizes = [shape[-1] for shape in shapes if shape]
        halves = isinstance(size, int) and [2 * one for one in sizes if isinstance(one, int)] == [size, size]
        return Members(split.x, value is split.outputs[1], False) if halves and _is_last(split) else None
    flat = _maker(value, "Squeeze")
    if flat is not None:
        return _unbound(flat)
    cut = _maker(value, "Slice")
    if cut is None or len(cut.inputs) != 5:
        return None
    shape = cut.x.spec.shape
    known = [constant_of(one) for one in cut.inputs[1:]]
    if shape is None or not isinstance(shape[-1], int) or any(one is None or one.size != 1 for one in known):
        return None
    first, past, axis, step = (int(one.item()) for one in known if one is not None)
    if normalize_axis(axis, len(shape)) != len(shape) - 1:
        return None
    taken = np.arange(shape[-1])[first:past:step].tolist()
    for second in (False, True):
        if taken == list(range(int(second), shape[-1], 2)):
            return Members(cut.x, second, True)
    return None


def _unbound(flat: Layer) -> Members | None:
    """Match the numbers of neighbors that a Reshape gave a dim of their own, and a Split then took apart."""
    split = _maker(flat.x, "Split")
    shaped = None if split is None else _maker(split.x, "Reshape")
    if split is None or shaped is None or not _is_last(split):
        return None
    pairs, numbers = (one.spec.shape for one in (split.x, flat.output))
    if not pairs or pairs[-1] != 2 or numbers != pairs[:-1]:
        return None
    neighbours = _are_flattened(flat.output, shaped.x)
    return Members(shaped.x, flat.x is split.outputs[1], True) if neighbours else None


def _fits(found: Found, output: Value) -> bool:
    """Whether the layer takes these operands: their dtypes and shapes are known, and no dim of x is repeated."""
    x, cos, sin, made = (value.spec for value in (*found[:3], output))
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
