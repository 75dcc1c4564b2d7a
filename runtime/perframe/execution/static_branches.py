"""Branches whose conditions follow from shapes, or from a few numbers that a run is given. Exporters write them where a
rank, a dim or a setting, such as a sample rate, decides how to continue.

One set of input shapes and numbers decides such a branch, and the layers of the chosen body replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from perframe.errors import InferenceError
from perframe.ir import Evaluate, Model, Value
from perframe.ir.sizes.arithmetic import SizeArithmetic
from perframe.ir.sizes.open_dims import OpenDims, Shapes
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.ir.sizes.trace import Trace
from perframe.passes.clean.inline_branches import inlined_body
from perframe.tensor import Array

Decisions = tuple[tuple[str, str], ...]  # (the branch's name, the name of the chosen body), in order

MAX_KNOWN = 64  # regions of sizes whose decisions are remembered
MAX_NUMBERS = 8  # sets of numbers: more come from a counter, and each would get plans of its own
MAX_ELEMENTS = 8  # of an input that decides

Numbers = tuple[bytes | None, ...]  # those of each deciding input; None for one whose values are not here
Kind = tuple[tuple[int, ...], Numbers]  # ranks of inputs, -1 for one without a shape, and numbers
Rule = tuple[Kind, SizeArithmetic]  # a decision holds for inputs of this kind whose sizes pass the guards


class Branches:
    """Decides branches from the shapes of a model's inputs, and from the values of those that are `deciding`. The
    decisions for one set of sizes hold for all sizes that satisfy the guards of its trace.
    """

    def __init__(self, model: Model, evaluate: Evaluate) -> None:
        self._model, self._evaluate = model, evaluate
        self._names = [value.name for value in model.inputs]
        self._dims = OpenDims([value.shape for value in model.inputs])
        self._known: list[tuple[Any, SizeArithmetic, Decisions, Model]] = []
        self.deciding = deciding_inputs(model)
        self._seen = set[Numbers]()
        self.rule: Rule | None = None  # of the last decision

    @property
    def may_decide(self) -> bool:
        """Whether any branch may be decided before a run."""
        return bool(self.deciding) or follow_shapes(self._model)

    def numbers(self, values: Mapping[str, Any]) -> Numbers:
        """Return the values of the deciding inputs of a run, where they are arrays."""
        given = [(values[value.name], value.dtype.numpy) for value in self.deciding]
        return tuple([np.asarray(x, dtype).tobytes() if type(x) is np.ndarray else None for x, dtype in given])

    def decide(self, given: Sequence[Sequence[int] | None], numbers: Numbers = ()) -> tuple[Decisions, Model]:
        """Return the decided branches, and the model with the chosen bodies in their place. If no branch is decided,
        this is the model itself. `given` holds the inputs' shapes, or None for an input without a shape.
        """
        self._seen.add(numbers)
        if len(self._seen) > MAX_NUMBERS:
            self.deciding, numbers = (), ()  # from now on shapes decide alone
        shapes = [() if shape is None else shape for shape in given]
        sizes = self._dims.sizes(shapes)
        self.rule = None
        if sizes is None:
            return (), self._model
        kind = _kind(given, numbers)
        found = self._find(kind, sizes)
        if found is None and kind not in [known[0] for known in self._known]:
            self._follow(kind, shapes, [2 * size for size in sizes])  # see plan/refit.py
            found = self._find(kind, sizes)
        return found or self._follow(kind, shapes, sizes)

    def repeats(self, given: Sequence[Sequence[int] | None], numbers: Numbers) -> bool:
        """Whether the last decision holds for these inputs too."""
        if self.rule is None or _kind(given, numbers) != self.rule[0]:
            return False
        sizes = self._dims.sizes([() if shape is None else shape for shape in given])
        return sizes is not None and self.rule[1].evaluate(sizes) is not None

    def _find(self, kind: Kind, sizes: Sequence[int]) -> tuple[Decisions, Model] | None:
        for index, (of_kind, arithmetic, decisions, model) in enumerate(self._known):
            if of_kind == kind and arithmetic.evaluate(sizes) is not None:
                if index:  # the next sizes are like these
                    self._known.insert(0, self._known.pop(index))
                self.rule = kind, arithmetic
                return decisions, model
        return None

    def _follow(self, kind: Kind, shapes: Shapes, sizes: Sequence[int]) -> tuple[Decisions, Model]:
        trace, (ranks, numbers) = Trace(sizes), kind
        followed = zip(self._names, ranks, self._dims.put(trace.sizes, shapes), strict=True)
        known = {name: shape for name, rank, shape in followed if rank >= 0}
        values = {
            value.name: np.frombuffer(data, value.dtype.numpy).reshape(known[value.name])
            for value, data in zip(self.deciding, numbers, strict=False)
            if data is not None
        }
        decisions, model = decide_branches(self._model, known, self._evaluate, values)
        self.rule = kind, trace.arithmetic([])
        self._known.insert(0, (kind, self.rule[1], decisions, model))
        del self._known[MAX_KNOWN:]
        return decisions, model


def _kind(given: Sequence[Sequence[int] | None], numbers: Numbers) -> Kind:
    return tuple([-1 if shape is None else len(shape) for shape in given]), numbers


def deciding_inputs(model: Model) -> Sequence[Value]:
    """Return the small inputs, of integers or truth values, that decide a branch without any other input."""
    found = dict[Value, None]()
    for layer in model.layers:
        needed = None if layer.declaration.body_for is None else _needed(model, layer.input(0))
        inputs = [value for value in model.inputs if needed and value in needed]
        if all(map(_may_decide, inputs)):
            found.update(dict.fromkeys(inputs))
    return tuple(found)


def _may_decide(value: Value) -> bool:
    is_small = value.shape is not None and value.shape.is_static and value.shape.to_shape().size <= MAX_ELEMENTS
    return is_small and value.kind == "tensor" and value.dtype.numpy.kind in "iub"


def _needed(model: Model, condition: Value) -> set[Value]:
    """Return the values that decide a condition. Values of which only the shape counts are left out."""
    needed = {condition}
    for layer in reversed(model.layers):
        if not needed.isdisjoint(layer.results) and layer.declaration.reads_values:
            needed.update(layer.operands)
    return needed


def follow_shapes(model: Model) -> bool:
    """Whether any of a model's branches may be decided without the values of its inputs."""
    return any(
        _follows_shapes(model, layer.input(0)) for layer in model.layers if layer.declaration.body_for is not None
    )


def _follows_shapes(model: Model, condition: Value) -> bool:
    needed = _needed(model, condition)
    makers = [layer for layer in model.layers if not needed.isdisjoint(layer.results)]
    return needed.isdisjoint(model.inputs) or not all(layer.declaration.reads_values for layer in makers)


def decide_branches(
    model: Model,
    shapes: Mapping[str, Sequence[int]],
    evaluate: Evaluate,
    values: Mapping[str, Array] = MappingProxyType({}),
) -> tuple[Decisions, Model]:
    """Return the branches that these input shapes and values decide, and the model with the chosen bodies in their
    place. If they decide no branch, this is the model itself.
    """
    made = model.copy()
    known = {
        value: PartialTensor(value.dtype, DynamicTensorShape(shapes[value.name]), values.get(value.name))
        for value in made.inputs
        if value.name in shapes
    }
    try:
        decided = _decide(made, known, evaluate)
    except InferenceError:  # planning raises it again, with the layer's name
        return (), model
    return (decided, made) if decided else ((), model)


def _decide(model: Model, known: dict[Value, PartialTensor], evaluate: Evaluate) -> Decisions:
    """Put the chosen bodies in the place of the branches that are decided, and return the decisions."""
    decided = list[tuple[str, str]]()
    waiting = list(model.layers[::-1])
    while waiting:
        layer = waiting.pop()
        given = [None if value is None else _spec(value, known) for value in layer.inputs]
        body_for, condition = layer.declaration.body_for, given[0].value if given and given[0] is not None else None
        if body_for is not None and condition is not None and condition.size == 1:
            which = body_for(condition)
            decided.append((layer.name, which))
            inside = inlined_body(layer, layer.inner_models[which])
            model.replace(layer, *inside)
            waiting += inside[::-1]
            continue
        values = [None if spec is None else spec.value for spec in given]
        whole = all(value is not None or spec is None for value, spec in zip(values, given, strict=True))
        if whole and layer.declaration.pure and not layer.declaration.on_host:
            results = [PartialTensor.of(value) for value in evaluate(layer, values)]
        else:
            results = list(layer.infer(given))
        known.update((v, spec) for v, spec in zip(layer.outputs, results, strict=False) if v is not None)
    return tuple(decided)


def _spec(value: Value, known: Mapping[Value, PartialTensor]) -> PartialTensor:
    found = known.get(value)
    return value.spec if found is None else found
