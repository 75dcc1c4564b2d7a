"""A Pad joins the convolutions and pools that read it; they skip positions outside their input, without a copy."""

from __future__ import annotations

import math

from perframe.ir import Evaluate, Layer, Model
from perframe.ir.geometry import NOT_SET
from perframe.ir.report import refuse
from perframe.passes.match import constant_of

OUTSIDE = {"Conv": 0.0, "AveragePool": 0.0, "MaxPool": -math.inf}  # the value that lies outside of an input


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of Pads that were removed."""
    removed = list[Layer]()
    for layer in model.walk():
        if layer.op == "Pad" and not layer.output.is_output:
            readers = list(layer.output.users)
            pads = _spatial_pads(layer)
            unable = [] if pads is None else [x for x in readers if not _takes(x, layer, pads)]
            if pads is None:
                refuse(layer, "it pads other dims than those of pictures, or by amounts that are not known")
            elif unable:
                refuse(layer, f"{unable[0].name!r} ({unable[0].op}), which reads it, cannot pad in that way")
            elif readers:
                for reader in readers:
                    _add(reader, layer, pads)
                removed.append(layer)
    model.remove(*removed)
    return len(removed)


def _spatial_pads(layer: Layer) -> list[int] | None:
    """The constant pads of the spatial dims, first all before and then all behind; None if there are others."""
    given, pads, chosen = layer.x.spec.shape, layer.pads.constant, constant_of(layer.axes)
    if given is None or pads is None or (layer.axes is not None and chosen is None) or layer.mode != "constant":
        return None
    rank = len(given)
    whole, indices = [0] * (2 * rank), range(rank) if chosen is None else [int(axis) % rank for axis in chosen]
    for position, axis in enumerate(indices):
        whole[axis], whole[rank + axis] = int(pads[position]), int(pads[position + len(indices)])
    others = (*whole[:2], *whole[rank : rank + 2])
    return None if min(whole) < 0 or any(others) else [*whole[2:rank], *whole[rank + 2 :]]


def _takes(reader: Layer, layer: Layer, pads: list[int]) -> bool:
    """Whether a layer may pad for itself."""
    padded = layer.output
    if reader.op not in OUTSIDE or reader.inputs.count(padded) > 1 or reader.inputs[0] is not padded:
        return False
    if reader.auto_pad not in (*NOT_SET, "VALID"):
        return False
    constant = constant_of(layer.value)
    if constant is not None and constant.size != 1:
        return False
    value = 0.0 if constant is None else float(constant.reshape(()))
    if (layer.value is not None and constant is None) or value != OUTSIDE[reader.op]:
        return False
    if reader.op == "Conv":
        return True
    if reader.ceil_mode or len(reader.outputs) > 1:  # the last window, and indices, would be others
        return False
    own = _own_pads(reader, pads)
    if reader.op == "AveragePool" and any(own) and not reader.count_include_pad:
        return False
    both = [one + other for one, other in zip(own, pads, strict=True)]
    return all(pad < kernel for pad, kernel in zip(both, reader.kernel_shape * 2, strict=True))


def _own_pads(reader: Layer, pads: list[int]) -> list[int]:
    return list(reader.pads) if reader.auto_pad in NOT_SET and reader.pads else [0] * len(pads)


def _add(reader: Layer, layer: Layer, pads: list[int]) -> None:
    both = tuple(one + other for one, other in zip(_own_pads(reader, pads), pads, strict=True))
    counting = {"count_include_pad": 1} if reader.op == "AveragePool" else {}
    attributes = {name: value for name, value in reader.attributes.items() if name != "auto_pad"}
    reader.attributes = {**attributes, "pads": both, **counting}
    reader.set_input(0, layer.input(0))
