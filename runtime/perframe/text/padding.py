"""Decoders that read one text without padding."""

from __future__ import annotations

import numpy as np

from perframe.backends import evaluator
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import Dim
from perframe.passes import optimize
from perframe.passes.layout.lay_out_states import state_layouts
from perframe.passes.prepared import freeze
from perframe.text.names import LENGTH, names_of


def without_mask(model: Model) -> Model:
    """Return a copy of a decoder that takes no attention mask: it reads one text, and each token counts.

    The caches of `GroupQueryAttention` then grow in place. If the model has no mask, or if no further cache would grow,
    it is returned unchanged. Raises InputError for a model that is not a decoder.
    """
    names, made = names_of(model), model.copy(with_bodies=True)
    inputs = {value.name: value for value in made.inputs}
    mask, ids = inputs.get(names.mask), inputs[names.ids]
    if mask is None or mask.shape is None or len(mask.shape) != 2 or ids.shape is None or _in_bodies(mask):
        return model
    total = mask.shape[1]
    whole = [inputs[source] for output, source in names.carry.items() if _length(made.value(output)) == total]
    cache = next((value for value in whole if isinstance(_length(value), str)), None)
    if cache is None or not isinstance(total, str):
        return model
    _replace(made, mask, ids, cache)
    made.inputs = [value for value in made.inputs if value is not mask]
    if isinstance(ids.shape[0], str):
        made.fix_dims({ids.shape[0]: 1})
    optimize(made, evaluator())
    freeze(made, besides=model)
    before, after = ({one.source for one in state_layouts(graph, names.carry) if one.grows} for graph in (model, made))
    return made if cache.name in after and before < after else model  # the cache counts all tokens, since it grows


def _in_bodies(value: Value) -> bool:
    """Whether branches or loops read it."""
    return any(layer.inner_models for layer in value.users)


def _length(cache: Value) -> Dim:
    """Return the number of tokens in a cache."""
    spec = cache.declared or cache.spec
    return spec.shape[LENGTH] if spec.shape is not None and len(spec.shape) == 4 else None


def _replace(model: Model, mask: Value, ids: Value, cache: Value) -> None:
    """Compute the mask from the number of tokens; its sum is that number."""
    assert cache.shape is not None
    axis, name = len(cache.shape) + LENGTH, mask.name
    one = model.add_constant(f"{name} batch", np.array([1], np.int64))
    each = model.add_constant(f"{name} number", np.array([1], mask.dtype.numpy))
    cached, new, count, shape, ones = (Value(f"{name} {what}") for what in ("cached", "new", "count", "shape", "ones"))
    model.insert(
        Layer("Shape", cached.name, [cache], [cached], {"start": axis, "end": axis + 1}),
        Layer("Shape", new.name, [ids], [new], {"start": 1, "end": 2}),
        Layer("Add", count.name, [cached, new], [count]),
        Layer("Concat", shape.name, [one, count], [shape], {"axis": 0}),
        Layer("Expand", ones.name, [each, shape], [ones]),
        before=model.layers[0],
    )
    for layer in tuple(mask.users):
        axes = layer.inputs[1] if layer.op == "ReduceSum" and layer.inputs[1:] else None
        if axes is not None and axes.constant is not None and list(axes.constant) in ([1], [-1]):
            dims = model.add_constant(f"{layer.name} dims", np.ones(1 + bool(layer.keepdims), np.int64))
            shaped = Value(f"{layer.name} count")
            model.replace(
                layer,
                Layer("Reshape", shaped.name, [count, dims], [shaped]),
                Layer("Cast", layer.name, [shaped], layer.outputs, {"to": mask.dtype}),
            )
    model.replace_uses(mask, ones)
