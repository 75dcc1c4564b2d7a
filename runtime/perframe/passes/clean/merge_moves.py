"""Chains of layers that move data become one layer.

Two transpositions become one, and two layers that keep the order of the elements become one Reshape. Two transpositions
that undo each other leave their elementwise layers behind. An Unsqueeze of a transposed value goes before the
Transpose, where it may join a Reshape.
"""

from __future__ import annotations

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.report import refuse
from perframe.passes.match import constant_of

SAME_ORDER = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")  # the elements stay in their order


def run(model: Model, evaluate: Evaluate) -> int:
    """Merge, and return the number of changed layers."""
    changed = 0
    for layer in model.walk():
        if layer.epilogue or layer.channels_last:
            continue
        if layer.op == "Transpose":
            changed += _merge_transposes(model, layer)
        elif layer.op in SAME_ORDER and not layer.on_host:
            changed += _join(model, layer) or (layer.op == "Unsqueeze" and _go_before(model, layer))
    return changed


def _perm(layer: Layer) -> list[int] | None:
    shape, perm = layer.x.spec.shape, layer.perm
    return list(perm) if perm else None if shape is None else list(range(len(shape)))[::-1]


def _merge_transposes(model: Model, layer: Layer) -> bool:
    chain, source = list[Layer](), layer.input(0)
    before = source.producer
    while before is not None and before.op != "Transpose" and _is_unary(before):
        chain.append(before)
        source = next(value for value in before.operands if value.constant is None)
        before = source.producer
    if before is None or before.op != "Transpose" or before.epilogue or before.channels_last:
        return False
    first, second = _perm(before), _perm(layer)
    if first is None or second is None or len(first) != len(second):
        return False
    if chain and source.only_user is None:
        refuse(layer, f"other layers read the transposed value {source.name!r} too")
        return False
    perm = [first[axis] for axis in second]
    if not chain:
        layer.set_input(0, before.input(0))
        layer.attributes = {"perm": tuple(perm)}
        return True
    if perm != list(range(len(perm))):
        return False
    chain[-1].replace_input(source, before.input(0))  # the elementwise layers read the original,
    chain[0].outputs = [layer.output]  # and the last of them makes the result
    model.remove(layer, before)
    return True


def _is_unary(layer: Layer) -> bool:
    """Whether a layer computes each element from one element, constant numbers aside, for one reader."""
    if not layer.declaration.is_pointwise or layer.outputs[1:] or layer.output.only_user is None:
        return False
    others = [value for value in layer.inputs if value is None or value.constant is None]
    numbers = [value.constant for value in layer.operands if value.constant is not None]
    return len(others) == 1 and others[0] is not None and all(number.size == 1 for number in numbers)


def _join(model: Model, layer: Layer) -> bool:
    """Make two layers that keep the order of the elements one Reshape, if its shape is known but for one dim."""
    before = layer.x.producer
    if before is None or before.op not in SAME_ORDER or before.epilogue or before.on_host:
        return False
    if layer.op == "Reshape":
        shape = layer.shape.constant
        if shape is not None and (shape.all() or layer.allowzero):
            layer.set_input(0, before.input(0))
            return True
    spec = layer.output.spec
    if (spec.values is not None and spec.value is None) or spec.shape is None or 0 in spec.shape:
        return False
    if sum(not isinstance(dim, int) for dim in spec.shape) > 1:
        refuse(layer, f"more than one dim of its shape {spec.shape} is open")
        return False
    target = np.array([dim if isinstance(dim, int) else -1 for dim in spec.shape], np.int64)
    shape_value = model.add_constant(f"shape of {layer.output.name}", target)
    layer.op, layer.inputs, layer.attributes = "Reshape", [before.input(0), shape_value], {}
    return True


def _go_before(model: Model, layer: Layer) -> bool:
    """Exchange an Unsqueeze of one axis with the Transpose before it, if a layer that it can join is before that."""
    moved, axes = layer.x.producer, constant_of(layer.axes)
    if (
        moved is None
        or moved.op != "Transpose"
        or moved.epilogue
        or moved.channels_last
        or axes is None
        or axes.size != 1
    ):
        return False
    first, perm = moved.x.producer, _perm(moved)
    if first is None or first.op not in SAME_ORDER or perm is None or moved.output.only_user is None:
        return False
    axis = int(axes.reshape(())) % (len(perm) + 1)
    source, result, between = moved.input(0), layer.output, moved.output
    others = [given + (given >= axis) for given in perm]
    added = Layer(layer.op, layer.name, [source, *layer.inputs[1:]], [Value(between.name)])
    turned = {"perm": (*others[:axis], axis, *others[axis:])}
    model.replace(moved, added, Layer("Transpose", moved.name, [added.output], [result], turned))
    model.remove(layer)
    return True
