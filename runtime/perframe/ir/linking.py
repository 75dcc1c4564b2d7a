"""Layers that are written down by the names of their values become parts of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perframe.errors import ModelError
from perframe.ir.layer import Layer, Value
from perframe.tensor import Array
from perframe.tensor.background import in_turns


def linked(
    inputs: Sequence[Value], outputs: Sequence[Value], layers: Sequence[Layer], constants: Mapping[str, Array]
) -> tuple[list[Value], list[Value], list[Layer]]:
    """Return inputs, outputs and layers of one graph.

    Where a layer or an output has only a name, the value of that name is meant. What belongs to another model is
    copied. Raises ModelError if two values have one name, or if a name that is read is nowhere before.
    """
    own = [Value.of(value.name, value.spec) if value.is_live else value for value in inputs]
    made = [_unlinked(layer) if layer.is_linked else layer for layer in layers]
    known = {name: Value(name, constant=array) for name, array in constants.items()}
    for value in own:
        if known.setdefault(value.name, value) is not value:
            raise ModelError(f"two values are called {value.name!r:.200}")
    are_named = any([value.is_named_only for layer in made for value in layer.operands])
    for layer in in_turns(made):
        if are_named:
            layer.inputs = [None if value is None else _meant(value, known, layer) for value in layer.inputs]
        for value in layer.results:
            if known.setdefault(value.name, value) is not value and are_named:
                raise ModelError(f"{value.name!r:.200} is made twice, the second time by layer {layer.name!r:.200}")
    whole = {value for layer in made for value in (*layer.operands, *layer.results)}.union(own)
    return own, [value if value in whole else _output(value, known) for value in outputs], made


def _meant(value: Value, known: Mapping[str, Value], layer: Layer) -> Value:
    if not value.is_named_only:
        return value
    found = known.get(value.name)
    if found is None:
        raise ModelError(
            f"layer {layer.name!r:.200} ({layer.op}) reads {value.name!r:.200}, which no earlier layer makes"
        )
    return found


def _output(value: Value, known: Mapping[str, Value]) -> Value:
    found = known.get(value.name, value)
    if found is not value and found.producer is not None and value.declared is not None:
        found.declared = value.declared
    return found


def _unlinked(layer: Layer) -> Layer:
    """Return a copy of a layer of another model: its values are names, but for constants."""
    inputs = [value.name if value is not None and value.constant is None else value for value in layer.inputs]
    copy = layer.changed(inputs=[Value(value) if isinstance(value, str) else value for value in inputs], outputs=())
    copy.outputs = [None if value is None else Value(value.name) for value in layer.outputs]
    return copy
