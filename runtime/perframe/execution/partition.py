"""Cutting a model into parts: at layers that run on the host, and where shapes depend on computed values."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence

from perframe.model import Layer, Model, Value
from perframe.sizes.partial import PartialTensor

_pieces: weakref.WeakKeyDictionary[Model, list[Model | Layer]] = weakref.WeakKeyDictionary()


def pieces_of(model: Model) -> list[Model | Layer]:
    """Cut a prepared model into models to plan and layers to run on the host. All workers of the model share them."""
    found = _pieces.get(model)
    return found or _pieces.setdefault(model, list(_cut(model)))


def _cut(model: Model) -> Iterator[Model | Layer]:
    """Cut a model where a layer runs on the host, and where shapes depend on values that the last piece computes."""
    if not any(layer.declaration.on_host for layer in model.layers) and not _cuts(model):
        # plans bind tensors only; a sequence that such a model gives back is one that it was given
        read, made = ([v for v in values if v.kind == "tensor"] for values in (model.inputs, model.outputs))
        yield Model(read, made, model.layers, model.constants, model.name)
        return
    cuts, specs, group = _cuts(model), model.infer(), list[Layer]()
    for index, layer in enumerate(model.layers):
        if group and (layer.declaration.on_host or layer.name in cuts):
            yield _sub_model(model, group, model.layers[index:], specs)
            group = []
        if layer.declaration.on_host:
            yield layer
        else:
            group.append(layer)
    if group:
        yield _sub_model(model, group, [], specs)


def _cuts(model: Model) -> set[str]:
    """Return the layers that need a value on the host that earlier layers compute from data rather than shapes."""
    cuts: set[str] = set()
    from_data = {value.name for value in model.inputs if value.dtype.is_float}
    made_here: set[str] = set()
    for layer in model.layers:
        needed = [name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index)]
        if any(name in from_data and name in made_here for name in needed):
            cuts.add(layer.name)
            from_data = {n for n in from_data | made_here if n in from_data}
            made_here = set()
        if layer.declaration.on_host:
            made_here = set()
        elif layer.declaration.reads_values and any(name in from_data for name in layer.inputs):
            from_data.update(layer.outputs)
            made_here.update(layer.outputs)
    return cuts


def _sub_model(
    model: Model, layers: Sequence[Layer], later: Sequence[Layer], specs: Mapping[str, PartialTensor]
) -> Model:
    """Make a model of some layers. Its outputs are the values that `later` layers read and the model's outputs."""
    made = {name for layer in layers for name in layer.outputs if name}
    read = dict.fromkeys(name for layer in layers for name in layer.inputs if name and name not in made)
    wanted = {name for layer in later for name in layer.inputs} | set(model.output_names)
    outputs = [name for layer in layers for name in layer.outputs if name in wanted]

    def value(name: str) -> Value:
        return Value(name, specs[name].dtype, specs[name].shape)

    constants = {name: model.constants[name] for name in read if name in model.constants}
    inputs = [value(name) for name in read if name not in constants]
    return Model(inputs, [value(name) for name in outputs], layers, constants, model.name)


def decisive_inputs(model: Model) -> list[str]:
    """Return the inputs whose values decide shapes: a layer must know these values before it can be planned."""
    needed: set[str] = set()
    for layer in reversed(model.layers):
        if needed & set(layer.outputs) and layer.declaration.reads_values:
            needed.update(layer.inputs)
        needed.update(name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index))
    return [value.name for value in model.inputs if value.name in needed]
