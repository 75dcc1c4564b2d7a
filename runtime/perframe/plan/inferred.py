"""The outline of a plan: the shapes, the lifetimes and the layers to run, for a model and a set of input shapes. It
exists before any value has storage.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from perframe.errors import InferenceError
from perframe.layers.twins import inference_key
from perframe.model import Evaluate, Layer, Model
from perframe.sizes.partial import PartialTensor
from perframe.sizes.tables import look_up
from perframe.tensor import TensorShape


class Outline:
    """The shapes and lifetimes of one plan.

    `known` maps each value to its PartialTensor, and `shapes` to its shape. `layers` are the layers that must run: the
    outline itself computes values that follow from shapes and constants alone. `roots` maps each alias, a value that is
    the data of another value with a different shape, to the root, the value that owns the data. `ends` lists for each
    layer the roots that no later layer reads.
    """

    def __init__(
        self,
        model: Model,
        constants: Mapping[str, PartialTensor],
        inputs: Mapping[str, PartialTensor],
        evaluate: Evaluate,
        signatures: Mapping[int, Hashable],
        at: Callable[[str], None] | None = None,
    ) -> None:
        """Infer the outline. `at` is called with the name of each layer before the layer is inferred."""
        self.known = {**constants, **inputs}
        self.shapes: dict[str, TensorShape] = {}
        self._outputs, self._signatures, self._at = model.output_names, signatures, at
        self.layers = self._needed(self._infer(model.layers, evaluate))
        self.roots = self._aliases()
        self.ends = self._lifetimes()

    def root(self, name: str) -> str:
        """Return the value that owns the data of this value."""
        return self.roots.get(name, name)

    def is_alias(self, layer: Layer) -> bool:
        """Whether a layer changes only the shape of its data."""
        return layer.outputs[0] in self.roots

    def shape(self, name: str) -> TensorShape:
        """Return a value's shape."""
        found = self.shapes.get(name)
        if found is None:
            spec = self.known[name]
            assert spec.shape is not None
            found = self.shapes[name] = spec.shape.to_shape()
        return found

    def _infer(self, layers: Sequence[Layer], evaluate: Evaluate) -> list[Layer]:
        """Infer all shapes, compute the values that follow from shapes and constants, and return the other layers."""
        known, remaining = self.known, []
        inferred: dict[Hashable, Sequence[PartialTensor]] = {}
        for layer in layers:
            if self._at is not None:
                self._at(layer.name)
            given = [known[name] if name else None for name in layer.inputs]
            same = self._signatures.get(id(layer))
            key = None if same is None else inference_key(layer, same, given)
            key, results = (None, None) if key is None else look_up(inferred, key)
            if results is None:
                results = _results(layer, given, evaluate)
                if key is not None:
                    inferred[key] = results
            needed = False
            for name, spec in zip(layer.outputs, results, strict=False):
                if name:
                    if spec.shape is None or not spec.shape.is_static:
                        raise InferenceError(
                            f"layer {layer.name!r} ({layer.op}): the shape of {name!r} is {spec}, which depends on data"
                        )
                    self.shapes[name] = spec.shape.to_shape()
                    needed = needed or not spec.is_known
                known[name] = spec
            if needed:
                remaining.append(layer)
        return remaining

    def _needed(self, layers: Sequence[Layer]) -> list[Layer]:
        """Return the layers that an output still needs. Layers whose outputs are known are no longer needed."""
        wanted = {name for name in self._outputs if not self.known[name].is_known}
        kept = []
        for layer in reversed(layers):
            if not wanted.isdisjoint(layer.outputs):
                kept.append(layer)
                wanted.update([name for name in layer.inputs if name and not self.known[name].is_known])
        return kept[::-1]

    def _aliases(self) -> dict[str, str]:
        roots: dict[str, str] = {}
        for layer in self.layers:
            if layer.declaration.alias and not any(layer.outputs[1:]):
                roots[layer.outputs[0]] = roots.get(layer.inputs[0], layer.inputs[0])
        return roots

    def _lifetimes(self) -> list[list[str]]:
        last: dict[str, int] = {}
        for index, layer in enumerate(self.layers):
            for name in (*layer.outputs, *layer.inputs):
                last[self.roots.get(name, name)] = index
        for name in self._outputs:
            last.pop(self.roots.get(name, name), None)
        ends: list[list[str]] = [[] for _ in self.layers]
        for name, index in last.items():
            ends[index].append(name)
        return ends


def _results(layer: Layer, given: Sequence[PartialTensor | None], evaluate: Evaluate) -> tuple[PartialTensor, ...]:
    """Infer a layer's outputs. If all inputs are known, compute the values of the outputs too."""
    results = layer.infer(given)
    if all([spec is None or spec.is_known for spec in given]) and layer.declaration.pure:
        exact = not layer.epilogue and not any(not spec.is_known or spec.dtype.is_float for spec in results)
        if not exact:
            values = [None if spec is None else spec.specialized_value() for spec in given]
            return tuple(PartialTensor.of(value) for value in evaluate(layer, values))
    return results
