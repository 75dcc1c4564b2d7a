"""Inference of a model's shapes, again and again while passes change it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perframe.ir.epilogue import Stage
from perframe.ir.equality import inference_key, signature
from perframe.ir.layer import Layer, Value
from perframe.ir.sizes.partial import PartialTensor


@dataclass(frozen=True)
class _Inferred:
    """The inferred outputs of a layer, with the state of the layer and the inputs that they were inferred from."""

    op: str
    attributes: dict[str, Any]
    epilogue: tuple[Stage, ...]
    channels_last: bool
    outputs: int
    given: list[PartialTensor | None]
    results: tuple[PartialTensor, ...]

    def holds(self, layer: Layer, given: list[PartialTensor | None]) -> bool:
        """Whether the results still hold for this layer and these inputs. The inputs must be the same objects."""
        return (
            len(self.given) == len(given)
            and all([one is other for one, other in zip(self.given, given, strict=True)])
            and self.epilogue is layer.epilogue
            and self.channels_last == layer.channels_last
            and self.op == layer.op
            and self.outputs == len(layer.outputs)
            and self._has(layer.attributes)
        )

    def _has(self, attributes: Mapping[str, Any]) -> bool:
        """Whether these are the same objects: arrays cannot be compared."""
        own = self.attributes
        return len(own) == len(attributes) and all([own.get(name, own) is value for name, value in attributes.items()])


class Inference:
    """Infers layers in run order, and reuses the results of layers that are alike.

    While it `remembers`, it also reuses the last result of each layer that did not change. No array may be changed in
    place meanwhile.
    """

    def __init__(self) -> None:
        self.remembers = False
        self._alike: dict[Hashable, tuple[PartialTensor, ...]] = {}  # outputs by `inference_key`
        self._last: dict[Layer, _Inferred] = {}

    def run(
        self,
        layers: Iterable[Layer],
        spec_of: Callable[[Value], PartialTensor],
        learn: Callable[[Value, PartialTensor], None],
    ) -> None:
        """Infer layers from the specs of values that `spec_of` knows, and let `learn` know the outputs' specs.

        Raises InferenceError.
        """
        for layer in layers:
            given = [None if value is None else spec_of(value) for value in layer.inputs]
            results = self.outputs(layer, given)
            for value, spec in zip(layer.outputs, results, strict=False):
                if value is not None:
                    learn(value, spec)

    def outputs(self, layer: Layer, given: list[PartialTensor | None]) -> Sequence[PartialTensor]:
        """Return a layer's outputs if its inputs are `given`. Raises InferenceError."""
        last = self._last.get(layer)
        return last.results if last is not None and last.holds(layer, given) else self._infer(layer, given)

    def specs(self, layers: Iterable[Layer], known: Mapping[Value, PartialTensor]) -> dict[Value, PartialTensor]:
        """Return the specs of all values if some values have the specs in `known`. Raises InferenceError."""
        found = dict(known)

        def spec_of(value: Value) -> PartialTensor:
            spec = found.get(value)
            if spec is None:
                spec = found[value] = value.spec
            return spec

        self.run(layers, spec_of, found.__setitem__)
        return found

    def forget(self) -> None:
        """Remember no result of a layer any more."""
        self.remembers = False
        self._last.clear()

    def copied(self, copies: Iterable[tuple[Layer, Layer]]) -> Inference:
        """Return an inference that remembers the same results, for pairs of a layer and its copy."""
        made = Inference()
        made.remembers, made._alike = self.remembers, self._alike
        if self._last:
            made._last = {copy: self._last[layer] for layer, copy in copies if layer in self._last}
        return made

    def _infer(self, layer: Layer, given: list[PartialTensor | None]) -> Sequence[PartialTensor]:
        same = signature(layer)
        key = None if same is None else inference_key(layer, same, given)
        results = None if key is None else self._alike.get(key)
        if results is None or len(results) < len(layer.outputs):
            results = layer.infer(given)
            if key is not None:
                self._alike[key] = results
        if self.remembers and (same is not None or "bodies" not in layer.attributes):  # passes change bodies in place
            made = (layer.op, dict(layer.attributes), layer.epilogue, layer.channels_last, len(layer.outputs))
            self._last[layer] = _Inferred(*made, given, tuple(results))
        return results
