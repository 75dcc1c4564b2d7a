"""Layers that are written down by the names of their values become parts of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perframe.ir.layer import Layer
from perframe.ir.value import Array, Value


def linked(
    inputs: Sequence[Value], outputs: Sequence[Value], layers: Sequence[Layer], constants: Mapping[str, Array]
) -> tuple[list[Value], list[Value], list[Layer]]:
    """Return inputs, outputs and layers of one graph.

    Where a layer or an output has only a name, the value of that name is meant. What belongs to another model is
    copied.
    """
    own = [Value.of(value.name, value.spec) if value.is_live else value for value in inputs]
    known = {name: Value(name, constant=array) for name, array in constants.items()}
    known.update((value.name, value) for value in own)
    made = [_unlinked(layer) if layer.is_linked else layer for layer in layers]
    for layer in made:
        if any([value is not None and value.is_named_only for value in layer.inputs]):
            layer.inputs = [
                known.get(value.name, value) if value is not None and value.is_named_only else value
                for value in layer.inputs
            ]
        known.update((value.name, value) for value in layer.results)
    return own, [_output(value, known) for value in outputs], made


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
