"""The product of queries and keys, the softmax and the product with values become one attention layer.

Between the first product and the softmax there may be a factor, a cap (softcap * tanh(x / softcap)), masks that are
added, and one that chooses between scores and a number. After the softmax, a mask may drop rows without any key.
Strides express how queries, keys and values are cut out of other tensors, and how the heads of the result are joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from perframe.ir import Evaluate, Layer, Model, Value
from perframe.ir.arrangement import Arrangement
from perframe.ir.declaration import normalize_axis
from perframe.ir.epilogue import Stage
from perframe.passes.fuse.arrange import origin
from perframe.passes.match import all_float32, may_fold, scalar
from perframe.safety.records import dataclass


@dataclass
class _Scores:
    """The operations on the scores between the product and the softmax."""

    scale: float = 1.0
    softcap: float = 0.0
    added: list[Value] = field(default_factory=list)
    kept: Value | None = None
    fill: float = -math.inf
    keeps: int = 1


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of new layers."""
    made = 0
    for layer in model.walk():
        if _fuse(model, layer):
            made += 1
    return made


def _fuse(model: Model, layer: Layer) -> bool:
    if not _is_product(layer) or layer.transA:
        return False
    weights, dropped = _weights(layer.a)
    if weights is None:
        return False
    first, scores = _product_before(weights.x)
    if first is None:
        return False
    sources = (first.input(0), first.input(1), layer.input(1))
    shapes = [value.spec.shape for value in sources]
    masks = [value for value in (*scores.added, scores.kept, dropped) if value is not None]
    ranks = [None if shape is None else len(shape) for shape in shapes]
    if None in ranks or len(set(ranks)) != 1 or (rank := ranks[0]) is None or rank < 2:
        return False
    if any((shape := value.spec.shape) is None or len(shape) > rank for value in masks):
        return False
    turns = (first.transA, first.transB, layer.transB)
    found = [
        origin(value, rank, scales=index < 2, turns=bool(turned))
        for index, (value, turned) in enumerate(zip(sources, turns, strict=True))
    ]
    if not _cut_alike(found):
        return False
    sums = list[Layer]()
    while len(scores.added) > 1:
        one, other, *rest = scores.added
        name = f"{layer.name}/masks{len(rest)}"
        sums.append(Layer("Add", name, [one, other], [name]))
        scores.added = [*rest, sums[-1].output]
    inputs = [*(value for value, _, _ in found), scores.added[0] if scores.added else None, scores.kept, dropped]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {
        "views": tuple(view for _, view, _ in found),
        "scale": float(np.float32(scores.scale * found[0][2] * found[1][2])),
        "softcap": scores.softcap,
        "fill": scores.fill,
        "keeps": scores.keeps,
    }
    output, perm, gone = _result(layer, rank)
    made = Layer("DotProductAttention", layer.name, inputs, [output], attributes | perm)
    model.replace(layer, *sums, made)
    model.remove(*gone)
    return True


def _cut_alike(operands: Sequence[tuple[Value, Arrangement, float]]) -> bool:
    """Whether those operands that walk along a dim in several parts, as repeated heads do, have the same parts."""
    for dims in zip(*(view.parts(value.spec.shape or ()) for value, view, _ in operands), strict=True):
        if len({parts for parts in dims if len(parts) > 1}) > 1:
            return False
    return True


def _is_product(layer: Layer, any_epilogue: bool = False) -> bool:
    plain = layer.op == "MatMul" and (any_epilogue or not layer.epilogue) and not layer.inputs[2:]
    return plain and all_float32(layer)


def _before(value: Value, *ops: str) -> Layer | None:
    """Return the layer that makes a value if it has one of these operators and the value has one reader, else None."""
    layer = value.producer
    return layer if layer is not None and layer.op in ops and value.only_user else None


def _weights(value: Value) -> tuple[Layer | None, Value | None]:
    """Return the softmax that makes these weights (or None), and the mask of the rows that are dropped after it."""
    dropped: Value | None = None
    choice = _before(value, "Where")
    if choice is not None:
        mask, zero, value = choice.operands
        if scalar(zero.constant) != 0.0 or not _keeps_rank(value, choice.output):
            return None, None
        known, shape = mask.constant, mask.spec.shape
        if known is None or known.any():
            dropped = mask
            if not shape or shape[-1] != 1:
                return None, None
    layer = _before(value, "Softmax")
    shape = None if layer is None else layer.x.spec.shape
    if layer is None or layer.epilogue or layer.channels_last or not shape:
        return None, None
    last = normalize_axis(layer.axis, len(shape)) == len(shape) - 1
    return (layer, dropped) if last else (None, None)


def _keeps_rank(before: Value, after: Value) -> bool:
    """Whether two values have the same rank. A mask then only repeats the first one, and strides can express that."""
    shapes = [value.spec.shape for value in (before, after)]
    return None not in shapes and len(shapes[0] or ()) == len(shapes[1] or ())


def _product_before(value: Value) -> tuple[Layer | None, _Scores]:
    """Return the product that makes these scores (or None), and the operations after it."""
    scores = _Scores()
    choice = _before(value, "Where")
    if choice is not None:
        mask, *values = choice.operands
        for keeps in (1, 0):
            number = scalar(values[keeps].constant)
            if number is not None and _keeps_rank(values[1 - keeps], choice.output):
                scores.kept, scores.fill, scores.keeps, value = mask, number, keeps, values[1 - keeps]
                break
        else:
            return None, scores
    layer = _sum_before(value, scores)
    if layer is None or not _is_product(layer, any_epilogue=True) or not _capped(scores, layer.epilogue):
        return None, scores
    return layer, scores


def _sum_before(value: Value, scores: _Scores) -> Layer | None:
    """Return the product before any additions of masks; the masks are added to `scores`."""
    layer = _before(value, "Add", "MatMul")
    if layer is None or layer.op == "MatMul":
        return layer
    if layer.epilogue or layer.inputs[0] is layer.inputs[1] or not all_float32(layer):
        return None
    for side, other in (layer.operands, layer.operands[::-1]):
        if not _keeps_rank(side, layer.output):
            continue
        found = _sum_before(side, scores)
        if found is not None:
            known = other.constant
            if known is None or known.any() or not _repeats(other, side):
                scores.added.append(other)
            return found
    return None


def _repeats(mask: Value, scores: Value) -> bool:
    """Whether each dim of a mask is 1 or the dim of the scores."""
    small, large = mask.spec.shape, scores.spec.shape
    if small is None or large is None:
        return False
    return all(a == 1 or a == b for a, b in zip(reversed(small), reversed(large), strict=False))


def _capped(scores: _Scores, stages: Sequence[Stage]) -> bool:
    """Take factors and a cap from an epilogue; False if it has any other stage."""
    rest = list(stages)
    while rest:
        number = _number(rest[0], "Mul", "Div")
        cap = _number(rest[0], "Div")
        capped = len(rest) > 2 and rest[1].op == "Tanh" and cap and _number(rest[2], "Mul") == cap
        if capped and cap is not None:
            scores.softcap = cap
            return not rest[3:]
        if number is None or (rest[0].op == "Div" and not number):
            return False
        factor = number if rest[0].op == "Mul" else 1 / number
        if not may_fold(scores.scale, factor):
            return False
        scores.scale *= factor
        rest = rest[1:]
    return True


def _number(stage: Stage, *ops: str) -> float | None:
    """Return the number that a stage multiplies by, or divides by; None for any other stage."""
    if stage.op not in ops or len(stage.operands) != 2:
        return None
    one, other = stage.operands
    number = other if one is None else one if stage.op == "Mul" and other is None else None
    return number if isinstance(number, float | int) else None


def _result(layer: Layer, rank: int) -> tuple[Value, dict[str, tuple[int, ...]], Sequence[Layer]]:
    """Return the layer's output, its `perm` attribute if the transposition after it can be fused, and that one."""
    user = layer.output.only_user
    if user is None or user.op != "Transpose" or user.epilogue or user.channels_last:
        return layer.output, {}, ()
    perm = tuple(user.perm or range(rank)[::-1])
    if perm[-1] != rank - 1:
        return layer.output, {}, ()
    return user.output, {"perm": perm}, (user,)
