"""Reshape, Transpose and Reshape that move blocks of pixels become DepthToSpace or SpaceToDepth.

PyTorch's pixel_shuffle and pixel_unshuffle are exported that way (Shi et al., 2016).
"""

from __future__ import annotations

from perframe.model import Evaluate, Layer, Model
from perframe.model.report import refuse

# the order of the six dims, and which two of them are the block
SHUFFLES = {
    (0, 1, 4, 2, 5, 3): ("DepthToSpace", "CRD", (2, 3)),
    (0, 3, 4, 1, 5, 2): ("DepthToSpace", "DCR", (1, 2)),
    (0, 1, 3, 5, 2, 4): ("SpaceToDepth", "CRD", (3, 5)),
    (0, 3, 5, 1, 2, 4): ("SpaceToDepth", "DCR", (3, 5)),
}


def run(model: Model, evaluate: Evaluate) -> int:
    """Replace, and return the number of layers that were removed."""
    removed = 0
    for layer in model.walk():
        if layer.op == "Reshape" and not layer.epilogue and _replace(model, layer):
            removed += 2
    return removed


def _replace(model: Model, last: Layer) -> bool:
    moved = last.x.producer
    if moved is None or moved.op != "Transpose" or moved.epilogue or moved.channels_last:
        return False
    found = SHUFFLES.get(tuple(moved.perm or ()))
    first = moved.x.producer
    if found is None or first is None or first.op != "Reshape" or first.epilogue:
        return False
    given, dims, made = (value.spec.shape for value in (first.x, moved.x, last.output))
    if given is None or dims is None or made is None or len(given) != 4 or len(made) != 4:
        return False
    op, mode, (one, other) = found
    block = dims[one]
    if block != dims[other] or not isinstance(block, int):
        return False
    if any(layer.output.only_user is None for layer in (first, moved)):
        refuse(last, "other layers read the value on its way too")
        return False
    layer = Layer(op, last.name, [first.input(0)], last.outputs, {"blocksize": block, "mode": mode})
    expected = layer.infer([first.x.spec])[0].shape
    kept = [dims[0], dims[1 if mode == "CRD" or op == "SpaceToDepth" else 3]]  # the batch and the channels apart
    if expected != made or kept[0] != given[0] or None in made:
        return False
    rows, columns = (4, 5) if op == "DepthToSpace" else (2, 4)
    if op == "DepthToSpace" and (dims[rows], dims[columns]) != (given[2], given[3]):
        return False
    if op == "SpaceToDepth" and (dims[1], dims[rows], dims[columns]) != (given[1], made[2], made[3]):
        return False
    model.replace(last, layer)
    model.remove(moved, first)
    return True
