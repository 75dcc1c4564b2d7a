"""The product of queries and keys, the softmax and the product with values become one attention layer.

Between the first product and the softmax there may be a factor, a cap (softcap * tanh(x / softcap)), masks that are
added, and one that chooses between scores and a number. After the softmax, a mask may drop rows without any key.
Strides express how queries, keys and values are cut out of other tensors, and how the heads of the result are joined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perframe.layers.base import normalize_axis
from perframe.layers.epilogue import Stage
from perframe.model import Evaluate, Layer, Model
from perframe.passes.arrange import origin
from perframe.passes.match import Graph, may_fold, scalar


@dataclass
class _Scores:
    """The operations on the scores between the product and the softmax."""

    scale: float = 1.0
    softcap: float = 0.0
    added: list[str] = field(default_factory=list)
    kept: str = ""
    fill: float = -math.inf
    keeps: int = 1


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of new layers."""
    graph, made = Graph(model), 0
    for layer in list(model.layers):
        if _fuse(graph, layer):
            graph.refresh()
            made += 1
    return made


def _fuse(graph: Graph, layer: Layer) -> bool:
    if not _is_product(graph, layer) or layer.attributes.get("transA"):
        return False
    weights, dropped = _weights(graph, layer.inputs[0])
    if weights is None:
        return False
    first, scores = _product_before(graph, weights.inputs[0])
    if first is None:
        return False
    names = [*first.inputs[:2], layer.inputs[1]]
    shapes = [graph.specs[name].shape for name in names]
    masks = [name for name in (*scores.added, scores.kept, dropped) if name]
    ranks = [None if shape is None else len(shape) for shape in shapes]
    if None in ranks or len(set(ranks)) != 1 or (rank := ranks[0]) is None or rank < 2:
        return False
    if any((shape := graph.specs[name].shape) is None or len(shape) > rank for name in masks):
        return False
    turns = [*(first.attributes.get(flag, 0) for flag in ("transA", "transB")), layer.attributes.get("transB", 0)]
    found = [
        origin(graph, name, rank, scales=index < 2, turns=bool(turned))
        for index, (name, turned) in enumerate(zip(names, turns, strict=True))
    ]
    position = graph.model.layers.index(layer)
    while len(scores.added) > 1:
        one, other, *rest = scores.added
        name = graph.model.names.free(f"{layer.name}/masks{len(rest)}")
        total = Layer("Add", name, [one, other], [name])
        graph.model.layers.insert(position, total)
        scores.added, position = [*rest, total.outputs[0]], position + 1
    inputs = [*(name for name, _, _ in found), "".join(scores.added), scores.kept, dropped]
    while not inputs[-1]:
        inputs.pop()
    scale = scores.scale * found[0][2] * found[1][2]
    attributes = {
        "views": tuple(view for _, view, _ in found),
        "scale": float(np.float32(scale)),
        "softcap": scores.softcap,
        "fill": scores.fill,
        "keeps": scores.keeps,
    }
    outputs, perm = _result(graph, layer, rank)
    graph.model.layers[position] = Layer("DotProductAttention", layer.name, inputs, [outputs], attributes | perm)
    return True


def _is_product(graph: Graph, layer: Layer) -> bool:
    plain = layer.op == "MatMul" and not layer.epilogue and not layer.inputs[2:]
    return plain and graph.all_float32(layer)


def _before(graph: Graph, name: str, *ops: str) -> Layer | None:
    """Return the layer that makes a value if it has one of these operators and the value has one reader, else None."""
    layer = graph.producers.get(name)
    return layer if layer is not None and layer.op in ops and graph.only_user(name) else None


def _weights(graph: Graph, name: str) -> tuple[Layer | None, str]:
    """Return the softmax that makes these weights (or None), and the mask of the rows that are dropped after it."""
    dropped = ""
    choice = _before(graph, name, "Where")
    if choice is not None:
        mask, value, name = choice.inputs
        if scalar(graph.constant(value)) != 0.0 or not _keeps_rank(graph, name, choice.outputs[0]):
            return None, ""
        known = graph.constant(mask)
        dropped = "" if known is not None and not known.any() else mask
        spec = graph.specs[mask].shape
        if dropped and (spec is None or not spec or spec[-1] != 1):
            return None, ""
    layer = _before(graph, name, "Softmax")
    shape = None if layer is None else graph.specs[layer.inputs[0]].shape
    if layer is None or layer.epilogue or layer.channels_last or not shape:
        return None, ""
    last = normalize_axis(layer.attributes.get("axis", -1), len(shape)) == len(shape) - 1
    return (layer, dropped) if last else (None, "")


def _keeps_rank(graph: Graph, before: str, after: str) -> bool:
    """Whether two values have the same rank. A mask then only repeats the first one, and strides can express that."""
    shapes = [graph.specs[name].shape for name in (before, after)]
    return None not in shapes and len(shapes[0] or ()) == len(shapes[1] or ())


def _product_before(graph: Graph, name: str) -> tuple[Layer | None, _Scores]:
    """Return the product that makes these scores (or None), and the operations after it."""
    scores = _Scores()
    choice = _before(graph, name, "Where")
    if choice is not None:
        mask, *values = choice.inputs
        for keeps in (1, 0):
            number = scalar(graph.constant(values[keeps]))
            if number is not None and _keeps_rank(graph, values[1 - keeps], choice.outputs[0]):
                scores.kept, scores.fill, scores.keeps, name = mask, number, keeps, values[1 - keeps]
                break
        else:
            return None, scores
    layer = _sum_before(graph, name, scores)
    if layer is None or not _is_product(graph, replace(layer, epilogue=())) or not _capped(scores, layer.epilogue):
        return None, scores
    return layer, scores


def _sum_before(graph: Graph, name: str, scores: _Scores) -> Layer | None:
    """Return the product before any additions of masks; the masks are added to `scores`."""
    layer = _before(graph, name, "Add", "MatMul")
    if layer is None or layer.op == "MatMul":
        return layer
    if layer.epilogue or layer.inputs[0] == layer.inputs[1] or not graph.all_float32(layer):
        return None
    for side, other in (layer.inputs, layer.inputs[::-1]):
        if not _keeps_rank(graph, side, layer.outputs[0]):
            continue
        found = _sum_before(graph, side, scores)
        if found is not None:
            known = graph.constant(other)
            if known is None or known.any() or not _repeats(graph, other, side):
                scores.added.append(other)
            return found
    return None


def _repeats(graph: Graph, mask: str, scores: str) -> bool:
    """Whether each dim of a mask is 1 or the dim of the scores."""
    small, large = graph.specs[mask].shape, graph.specs[scores].shape
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


def _result(graph: Graph, layer: Layer, rank: int) -> tuple[str, dict[str, tuple[int, ...]]]:
    """Return the name of the layer's output, and its `perm` attribute if the transposition after it can be fused."""
    user = graph.only_user(layer.outputs[0])
    if user is None or user.op != "Transpose" or user.epilogue or user.channels_last:
        return layer.outputs[0], {}
    perm = tuple(user.attributes.get("perm") or range(rank)[::-1])
    if perm[-1] != rank - 1:
        return layer.outputs[0], {}
    graph.model.layers.remove(user)
    return user.outputs[0], {"perm": perm}
