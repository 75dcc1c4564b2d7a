"""Reshape, Transpose and Reshape that move blocks of pixels become DepthToSpace or SpaceToDepth.

PyTorch's pixel_shuffle and pixel_unshuffle are exported that way (Shi et al., 2016).
"""

from __future__ import annotations

from perframe.ir import Layer, Model, Value
from perframe.passes.patterns import AnyValue, Op, Rules

# the order of the six dims, and which two of them are the block
SHUFFLES = {
    (0, 1, 4, 2, 5, 3): ("DepthToSpace", "CRD", (2, 3)),
    (0, 3, 4, 1, 5, 2): ("DepthToSpace", "DCR", (1, 2)),
    (0, 1, 3, 5, 2, 4): ("SpaceToDepth", "CRD", (3, 5)),
    (0, 3, 5, 1, 2, 4): ("SpaceToDepth", "DCR", (3, 5)),
}


run = Rules()


@run.rule(Op("Reshape", Op("Transpose", Op("Reshape", AnyValue("x"), name="first"), name="moved")))
def _replace(model: Model, root: Layer, moved: Layer, first: Layer, x: Value) -> int:
    found = SHUFFLES.get(tuple(moved.perm or ()))
    given, dims, made = (value.spec.shape for value in (x, moved.x, root.output))
    if found is None or moved.channels_last or given is None or dims is None or made is None:
        return 0
    if len(given) != 4 or len(made) != 4:
        return 0
    op, mode, (one, other) = found
    block = dims[one]
    if block != dims[other] or not isinstance(block, int):
        return 0
    layer = Layer(op, root.name, [x], root.outputs, {"blocksize": block, "mode": mode})
    expected = layer.infer([x.spec])[0].shape
    kept = [dims[0], dims[1 if mode == "CRD" or op == "SpaceToDepth" else 3]]  # the batch and the channels apart
    if expected != made or kept[0] != given[0] or None in made:
        return 0
    rows, columns = (4, 5) if op == "DepthToSpace" else (2, 4)
    if op == "DepthToSpace" and (dims[rows], dims[columns]) != (given[2], given[3]):
        return 0
    if op == "SpaceToDepth" and (dims[1], dims[rows], dims[columns]) != (given[1], made[2], made[3]):
        return 0
    model.replace(root, layer)
    model.remove(moved, first)
    return 2
