"""Removes layers whose output equals their input."""

from __future__ import annotations

from perframe.ir import Evaluate, Layer, Model


def run(model: Model, evaluate: Evaluate) -> int:
    """Remove, and return the number of layers that were removed."""
    removed = list[Layer]()
    for layer in model.walk():
        if not layer.inputs or layer.declaration.on_host or layer.epilogue or not _is_noop(layer):
            continue
        source, output = layer.input(0), layer.output
        if not output.is_output:
            model.replace_uses(output, source)
        elif source.only_user is layer and source.producer is not None:  # its maker makes the model's output instead
            maker = source.producer
            layer.unlink()
            maker.outputs = [output if value is source else value for value in maker.outputs]
        else:
            continue
        removed.append(layer)
    model.remove(*removed)
    return len(removed)


def _is_noop(layer: Layer) -> bool:
    if any(value is not None and (value.users or value.is_output) for value in layer.outputs[1:]):
        return False
    if layer.op in ("Identity", "Dropout"):
        return True
    given, made = layer.input(0).spec, layer.output.spec
    if layer.op == "Cast":
        return given.dtype is made.dtype
    if given.shape is None or made.shape is None or given.dtype is not made.dtype:
        return False
    same = given.shape == made.shape and None not in given.shape
    if layer.op == "Transpose":
        return layer.perm is not None and list(layer.perm) == list(range(len(layer.perm)))
    if layer.op == "Pad":
        return layer.pads.constant is not None and not layer.pads.constant.any()
    if layer.op == "Concat":
        return len(layer.inputs) == 1
    if layer.op == "Slice" and same:  # all elements, in order
        return layer.steps is None or (layer.steps.constant is not None and bool((layer.steps.constant == 1).all()))
    return same and (layer.declaration.alias or layer.op in ("Expand", "Tile"))
