"""A Pad joins the convolutions and pools that read it; they skip positions outside their input, without a copy."""

from __future__ import annotations

import math

from perframe.layers.geometry import NOT_SET
from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse
from perframe.passes.match import Graph

OUTSIDE = {"Conv": 0.0, "AveragePool": 0.0, "MaxPool": -math.inf}  # the value that lies outside of an input


def run(model: Model, evaluate: Evaluate) -> int:
    """Fuse, and return the number of Pads that were removed."""
    graph, removed = Graph(model), set[int]()
    for layer in model.layers:
        if layer.op == "Pad" and layer.outputs[0] not in model.output_names:
            readers = graph.users.get(layer.outputs[0], [])
            pads = _spatial_pads(graph, layer)
            unable = [] if pads is None else [x for x in readers if not _takes(graph, x, layer, pads)]
            if pads is None:
                refuse(layer, "it pads other dims than those of pictures, or by amounts that are not known")
            elif unable:
                refuse(layer, f"{unable[0].name!r} ({unable[0].op}), which reads it, cannot pad in that way")
            elif readers:
                for reader in readers:
                    _add(reader, layer, pads)
                removed.add(id(layer))
    model.layers = [layer for layer in model.layers if id(layer) not in removed]
    return len(removed)


def _spatial_pads(graph: Graph, layer: Layer) -> list[int] | None:
    """The constant pads of the spatial dims, first all before and then all behind; None if there are others."""
    given, (_, amounts, _, axes) = graph.specs[layer.inputs[0]].shape, (*layer.inputs, "", "")[:4]
    pads, chosen = graph.constant(amounts), graph.constant(axes) if axes else None
    if (
        given is None
        or pads is None
        or (axes and chosen is None)
        or layer.attributes.get("mode", "constant") != "constant"
    ):
        return None
    rank = len(given)
    whole, indices = [0] * (2 * rank), range(rank) if chosen is None else [int(axis) % rank for axis in chosen]
    for position, axis in enumerate(indices):
        whole[axis], whole[rank + axis] = int(pads[position]), int(pads[position + len(indices)])
    others = (*whole[:2], *whole[rank : rank + 2])
    return None if min(whole) < 0 or any(others) else [*whole[2:rank], *whole[rank + 2 :]]


def _takes(graph: Graph, reader: Layer, layer: Layer, pads: list[int]) -> bool:
    """Whether a layer may pad for itself."""
    attributes, name = reader.attributes, layer.outputs[0]
    if reader.op not in OUTSIDE or reader.inputs.count(name) > 1 or reader.inputs[0] != name:
        return False
    if attributes.get("auto_pad", "NOTSET") not in (*NOT_SET, "VALID"):
        return False
    value = (*layer.inputs, "", "")[2]
    constant = graph.constant(value) if value else None
    if constant is not None and constant.size != 1:
        return False
    if (value and constant is None) or (0.0 if constant is None else float(constant.reshape(()))) != OUTSIDE[reader.op]:
        return False
    if reader.op == "Conv":
        return True
    if attributes.get("ceil_mode", 0) or len(reader.outputs) > 1:  # the last window, and indices, would be others
        return False
    own = _own_pads(reader, pads)
    if reader.op == "AveragePool" and any(own) and not attributes.get("count_include_pad", 0):
        return False
    both = [one + other for one, other in zip(own, pads, strict=True)]
    return all(pad < kernel for pad, kernel in zip(both, attributes["kernel_shape"] * 2, strict=True))


def _own_pads(reader: Layer, pads: list[int]) -> list[int]:
    attributes = reader.attributes
    counts = attributes.get("auto_pad", "NOTSET") in NOT_SET and attributes.get("pads")
    return list(attributes["pads"]) if counts else [0] * len(pads)


def _add(reader: Layer, layer: Layer, pads: list[int]) -> None:
    both = tuple(one + other for one, other in zip(_own_pads(reader, pads), pads, strict=True))
    counting = {"count_include_pad": 1} if reader.op == "AveragePool" else {}
    attributes = {name: value for name, value in reader.attributes.items() if name != "auto_pad"}
    reader.attributes = {**attributes, "pads": both, **counting}
    reader.inputs[0] = layer.inputs[0]
