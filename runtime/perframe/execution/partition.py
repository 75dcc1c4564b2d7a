"""Where a model is cut into parts: at layers that run on the host, and where shapes depend on what was computed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence

from perframe.model import Layer, Model, Value
from perframe.tensor.partial import PartialTensor

_pieces: weakref.WeakKeyDictionary[Model, list[Model | Layer]] = weakref.WeakKeyDictionary()


def pieces_of(model: Model) -> list[Model | Layer]:
    """A prepared model cut into models that are planned and layers that run on the host. All its workers share them."""
    found = _pieces.get(model)
    return found or _pieces.setdefault(model, list(_cut(model)))


def _cut(model: Model) -> Iterator[Model | Layer]:
    """Cut a model where a layer runs on the host, and where shapes depend on what was just computed."""
    if not any(layer.declaration.on_host for layer in model.layers) and not _cuts(model):
        read = [value for value in model.inputs if value.kind == "tensor"]  # a plan has no place for others
        yield Model(read, model.outputs, model.layers, model.constants, model.name)
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
    """The layers that need a value on the host which the layers before them compute from data, and not from shapes."""
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
    """Some layers as a model of their own; its outputs are what later layers read, and the model's outputs."""
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
    """The inputs of the model whose values decide shapes: those that a layer must know before it can be planned."""
    needed: set[str] = set()
    for layer in reversed(model.layers):
        if needed & set(layer.outputs) and layer.declaration.reads_values:
            needed.update(layer.inputs)
        needed.update(name for index, name in enumerate(layer.inputs) if layer.declaration.is_host(index))
    return [value.name for value in model.inputs if value.name in needed]
