"""Cutting a model into parts: at layers that run on the host, and where shapes depend on computed values."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence

from perframe.ir import Layer, Model, Subgraph, Value

_partitions: weakref.WeakKeyDictionary[Model, list[Subgraph | Layer]] = weakref.WeakKeyDictionary()


def partition(model: Model) -> list[Subgraph | Layer]:
    """Cut a prepared model into subgraphs to plan and layers to run on the host. All its workers share them."""
    found = _partitions.get(model)
    return found or _partitions.setdefault(model, list(_cut(model)))


def _cut(model: Model) -> Iterator[Subgraph | Layer]:
    """Cut a model where a layer runs on the host, and where shapes depend on values that the last subgraph computes."""
    cuts, group = _cuts(model), list[Layer]()
    if not cuts and not any(layer.declaration.on_host for layer in model.layers):
        yield Subgraph.of(model)
        return
    model.infer()
    for index, layer in enumerate(model.layers):
        if group and (layer.declaration.on_host or layer in cuts):
            yield _subgraph(model, group, model.layers[index:])
            group = []
        if layer.declaration.on_host:
            yield layer
        else:
            group.append(layer)
    if group:
        yield _subgraph(model, group, [])


def _cuts(model: Model) -> set[Layer]:
    """Return the layers that need a value on the host that earlier layers compute from data rather than shapes."""
    cuts: set[Layer] = set()
    from_data = {value for value in model.inputs if value.dtype.is_float}
    made_here: set[Value] = set()
    for layer in model.layers:
        needed = [value for index, value in enumerate(layer.inputs) if layer.declaration.is_host(index)]
        if any(value in from_data and value in made_here for value in needed):
            cuts.add(layer)
            made_here = set()
        if layer.declaration.on_host:
            made_here = set()
        elif layer.declaration.reads_values and any(value in from_data for value in layer.operands):
            from_data.update(layer.results)
            made_here.update(layer.results)
    return cuts


def _subgraph(model: Model, layers: Sequence[Layer], later: Sequence[Layer]) -> Subgraph:
    """Return some layers. The outputs are the values that `later` layers read and the model's outputs."""
    made = {value for layer in layers for value in layer.results}
    read = dict.fromkeys(value for layer in layers for value in layer.operands if value not in made)
    wanted = {value for layer in later for value in layer.operands}
    inputs = [value for value in read if value.constant is None]
    outputs = [value for layer in layers for value in layer.results if value in wanted or value.is_output]
    return Subgraph(model.name, inputs, outputs, layers)


def decisive_inputs(part: Subgraph) -> list[Value]:
    """Return the inputs whose values decide shapes: a layer must know these values before it can be planned."""
    needed: set[Value] = set()
    for layer in reversed(part.layers):
        if not needed.isdisjoint(layer.results) and layer.declaration.reads_values:
            needed.update(layer.operands)
        host = (value for index, value in enumerate(layer.inputs) if layer.declaration.is_host(index))
        needed.update(value for value in host if value is not None)
    return [value for value in part.inputs if value in needed]
