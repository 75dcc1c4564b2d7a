"""Inference of a model's shapes, again and again while passes change it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from perframe.ir.epilogue import Stage
from perframe.ir.equality import inference_key, signature
from perframe.ir.layer import Layer, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.tensor.background import in_turns, take_turns


class _Inferred(NamedTuple):
    """The inferred outputs of a layer, with the state of the layer and the inputs that they were inferred from."""

    given: list[PartialTensor | None]
    results: Sequence[PartialTensor]
    op: str
    names: tuple[str, ...]  # of its attributes
    attributes: tuple[Any, ...]
    epilogue: tuple[Stage, ...]
    channels_last: bool
    outputs: int
    is_fixed: bool  # whether no attribute can be changed in place

    def holds(self, layer: Layer, given: list[PartialTensor | None]) -> bool:
        """Whether the results still hold for this layer and these inputs. The inputs and attributes must be the same
        objects: partial tensors are equal only to themselves, and arrays cannot be compared.
        """
        attributes = layer.attributes
        return (
            self.given == given
            and self.epilogue is layer.epilogue
            and self.channels_last == layer.channels_last
            and self.op == layer.op
            and self.outputs == len(layer._outputs)
            and self.names == tuple(attributes)
            and all(map(is_, self.attributes, attributes.values()))
        )


class Inference:
    """Infers layers in run order, and reuses the results of layers that are alike.

    While it `remembers`, it also reuses the last result of each layer that did not change. No array may be changed in
    place meanwhile.
    """

    def __init__(self) -> None:
        self.remembers = False
        self._alike: dict[Hashable, tuple[PartialTensor, ...]] = {}  # outputs by `inference_key`
        self._last: dict[Layer, _Inferred] = {}

    def infer(self, layers: Iterable[Layer]) -> None:
        """Infer the specs of all values that layers make. Raises InferenceError."""
        for layer in in_turns(layers):
            given = [None if value is None else value._spec or value.spec for value in layer._inputs]
            for value, spec in zip(layer._outputs, self.outputs(layer, given), strict=False):
                if value is not None:
                    value._spec = spec

    def outputs(self, layer: Layer, given: list[PartialTensor | None]) -> Sequence[PartialTensor]:
        """Return a layer's outputs if its inputs are `given`. Raises InferenceError."""
        last = self._last.get(layer)
        return last.results if last is not None and last.holds(layer, given) else self._infer(layer, given)

    def specs(self, layers: Iterable[Layer], known: Mapping[Value, PartialTensor]) -> dict[Value, PartialTensor]:
        """Return the specs of all values if some values have the specs in `known`. Raises InferenceError."""
        found = dict(known)
        for layer in in_turns(layers):
            found.update((value, value.spec) for value in layer.operands if value not in found)
            given = [None if value is None else found[value] for value in layer.inputs]
            for value, spec in zip(layer.outputs, self.outputs(layer, given), strict=False):
                if value is not None:
                    found[value] = spec
        return found

    def forget(self, but: Iterable[Layer] = ()) -> None:
        """Remember no result of a layer any more, but those of some layers that no change in place can make wrong."""
        self.remembers = False
        kept = [layer for layer in but if layer in self._last and _is_settled(layer, self._last[layer])]
        self._last = {layer: self._last[layer] for layer in kept}

    def copied(self, copies: Iterable[tuple[Layer, Layer]]) -> Inference:
        """Return an inference that remembers the same results, for pairs of a layer and its copy."""
        made = Inference()
        made.remembers, made._alike = self.remembers, self._alike
        if self._last:
            made._last = {copy: self._last[layer] for layer, copy in copies if layer in self._last}
        return made

    def _infer(self, layer: Layer, given: list[PartialTensor | None]) -> Sequence[PartialTensor]:
        take_turns()
        same = signature(layer)
        key = None if same is None else inference_key(layer, same, given)
        results = None if key is None else self._alike.get(key)
        if results is None or len(results) < len(layer.outputs):
            results = layer.infer(given)
            if key is not None:
                self._alike[key] = results
        if self.remembers and (same is not None or "bodies" not in layer.attributes):  # passes change bodies in place
            names, attributes = tuple(layer.attributes), tuple(layer.attributes.values())
            made = (layer.op, names, attributes, layer.epilogue, layer.channels_last, len(layer.outputs))
            self._last[layer] = _Inferred(given, results, *made, same is not None)
        return results


def _is_settled(layer: Layer, last: _Inferred) -> bool:
    """Whether the last result holds for the specs that the inputs have now, and all arrays are read-only."""
    take_turns()
    constants = [value.constant for value in layer.operands]
    return (
        last.is_fixed
        and last.holds(layer, [None if value is None else value._spec or value.declared for value in layer.inputs])
        and not any(array is not None and array.flags.writeable for array in constants)
    )
