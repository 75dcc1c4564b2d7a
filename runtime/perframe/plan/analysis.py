"""The analysis before a plan: shapes, liveness, aliases and layers to run, for a model and a set of input shapes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from perframe.errors import InferenceError
from perframe.ir import Evaluate, Layer, Subgraph, Value
from perframe.ir.equality import inference_key
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import is_symbolic
from perframe.ir.sizes.tables import look_up
from perframe.tensor import TensorShape
from perframe.tensor.background import in_turns

_FILLS, _MOST_FILLED = ("ConstantOfShape", "Expand"), 1 << 18  # elements; to fill more in a run beats holding them
FEW = 64  # values that may be a shape, or floats that the host computes on the way to whole ones


class Analysis:
    """The shapes and lifetimes of one plan.

    `known` maps each value to its PartialTensor, and `shapes` to its shape. `layers` are the layers that must run: the
    analysis computes values that follow from shapes and constants alone. `roots` maps each alias, a value that is the
    data of another value with a different shape, to the root, the value that owns the data. `ends` lists for each
    layer the roots that no later layer reads.
    """

    def __init__(
        self,
        model: Subgraph,
        constants: Mapping[Value, PartialTensor],
        inputs: Mapping[Value, PartialTensor],
        evaluate: Evaluate,
        signatures: Mapping[Layer, Hashable],
        at: Callable[[str], None] | None = None,
    ) -> None:
        """Infer all shapes. `at` is called with the name of each layer before the layer is inferred."""
        self.known = {**constants, **inputs}
        self.shapes: dict[Value, TensorShape] = {}
        self.unused: dict[tuple[Layer, int], PartialTensor] = {}  # the outputs that layers leave out
        self._outputs, self._signatures, self._at = model.outputs, signatures, at
        self.layers = self._needed(self._infer(model.layers, evaluate))
        self.roots = self._aliases()
        self.ends = self._lifetimes()

    def root(self, value: Value) -> Value:
        """Return the value that owns the data of this value."""
        return self.roots.get(value, value)

    def is_alias(self, layer: Layer) -> bool:
        """Whether a layer changes only the shape of its data."""
        return layer.outputs[0] in self.roots

    def shape(self, value: Value) -> TensorShape:
        """Return a value's shape."""
        found = self.shapes.get(value)
        if found is None:
            spec = self.known[value]
            assert spec.shape is not None
            found = self.shapes[value] = spec.shape.to_shape()
        return found

    def _infer(self, layers: Sequence[Layer], evaluate: Evaluate) -> list[Layer]:
        """Infer all shapes, compute the values that follow from shapes and constants, and return the other layers."""
        known, remaining = self.known, []
        inferred: dict[Hashable, Sequence[PartialTensor]] = {}
        for layer in in_turns(layers):
            if self._at is not None:
                self._at(layer.name)
            given = [None if value is None else known[value] for value in layer.inputs]
            same = self._signatures.get(layer)
            key = None if same is None else inference_key(layer, same, given)
            key, results = (None, None) if key is None else look_up(inferred, key)
            if results is None:
                results = _results(layer, given, evaluate)
                if key is not None:
                    inferred[key] = results
            needed = False
            for index, (value, spec) in enumerate(zip(layer.outputs, results, strict=False)):
                if value is None:
                    self.unused[layer, index] = spec
                else:
                    if spec.shape is None or not spec.shape.is_static:
                        raise InferenceError(
                            f"layer {layer.name!r} ({layer.op}): the shape of {value.name!r} is {spec}, which depends "
                            "on data"
                        )
                    self.shapes[value] = spec.shape.to_shape()
                    needed = needed or not spec.is_known
                    known[value] = spec
            if needed:
                remaining.append(layer)
        return remaining

    def _needed(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the layers that an output still needs. Layers whose outputs are known are no longer needed."""
        wanted = {value for value in self._outputs if not self.known[value].is_known}
        kept = []
        for layer in reversed(layers):
            if not wanted.isdisjoint(layer.results):
                kept.append(layer)
                wanted.update([value for value in layer.operands if not self.known[value].is_known])
        return kept[::-1]

    def _aliases(self) -> dict[Value, Value]:
        roots: dict[Value, Value] = {}
        for layer in self.layers:
            if layer.declaration.alias and not any(layer.outputs[1:]):
                source = layer.input(0)
                roots[layer.output] = roots.get(source, source)
        return roots

    def _lifetimes(self) -> list[list[Value]]:
        last: dict[Value, int] = {}
        for index, layer in in_turns(enumerate(self.layers)):
            for value in (*layer.results, *layer.operands):
                last[self.roots.get(value, value)] = index
        for value in self._outputs:
            last.pop(self.roots.get(value, value), None)
        ends: list[list[Value]] = [[] for _ in self.layers]
        for value, index in last.items():
            ends[index].append(value)
        return ends


def _results(layer: Layer, given: Sequence[PartialTensor | None], evaluate: Evaluate) -> tuple[PartialTensor, ...]:
    """Infer a layer's outputs. If all inputs are known, compute the values of the outputs too, unless these hold for
    one size of a trace alone: they are as many as a size, or sizes choose them among many.
    """
    results = layer.infer(given)
    sizes = [(0 if spec.shape is None else spec.shape.size or 0) for spec in results]
    if any(map(is_symbolic, sizes)) or (layer.op in _FILLS and sizes[0] > _MOST_FILLED):
        return results
    if any([spec is not None and spec.is_known and spec.value is None for spec in given]) and any(map(_is_many, given)):
        return results
    if all([spec is None or spec.is_known for spec in given]) and layer.declaration.pure:
        exact = not layer.epilogue and not any(not spec.is_known or spec.dtype.is_float for spec in results)
        if not exact:
            values = [None if spec is None else spec.specialized_value() for spec in given]
            return tuple(PartialTensor.of(value) for value in evaluate(layer, values))
    return results


def _is_many(spec: PartialTensor | None) -> bool:
    size = None if spec is None or spec.shape is None else spec.shape.size
    return size is not None and not is_symbolic(size) and size > FEW  # not a shape, nor a step on the way to one


def wide_layers_on_host(layers: Sequence[Layer], analysis: Analysis, inputs: Sequence[Value]) -> frozenset[Layer]:
    """The layers with wide numbers whose operands are on the host or cheap to compute there, and of the
    layers that compute those operands. Nothing waits for them.
    """
    if not any(layer.is_wide for layer in layers):
        return frozenset()

    def is_cheap(value: Value) -> bool:
        return not analysis.known[value].dtype.is_float or analysis.shape(value).size <= FEW

    able = {value for value in inputs if is_cheap(value)}

    def is_able(layer: Layer) -> bool:
        given = able.union(inputs) if layer.is_wide else able
        return all(value in given or analysis.known[value].is_known for value in layer.operands)

    for layer in layers:
        if is_able(layer) and all(map(is_cheap, layer.results)):
            able.update(layer.results)
    chosen, wanted = set[Layer](), set[Value]()
    for layer in reversed(layers):
        if (layer.is_wide or not wanted.isdisjoint(layer.results)) and is_able(layer):
            chosen.add(layer)
            wanted.update(layer.operands)
    return frozenset(chosen)
