"""Models that make masks: what their files look like, and how a picture goes in."""

from __future__ import annotations

from pathlib import Path

import perframe as pf
from perframe.errors import ModelError

from ..common.models import listed, sides

F = pf.functional


def mask_model(file: Path) -> tuple[pf.Model, pf.TextureTransform]:
    """A model from `image` to `mask` (1, 1, height, width) in 0..1, and how a picture becomes its `image`.

    The file's channels may be first or last. Raises ModelError if it is no such file.
    """
    model = pf.load(file)
    shape = sides(model.inputs[0]) if len(model.inputs) == 1 else []
    out = sides(model.outputs[0]) if len(model.outputs) == 1 else []
    layout = "NHWC" if shape[3:] == [3] else "NCHW"
    size = shape[1:3] if layout == "NHWC" else shape[2:]
    fits = len(shape) == 4 and 3 in (shape[1], shape[3]) and min(size) > 0 and len(out) == 4
    if not fits or model.inputs[0].dtype != "float32" or out[1:] not in ([*size, 1], [1, *size]):
        raise ModelError(
            f"{file} is not a segmentation model this demo supports: it has {listed(model)}; it wants one "
            "float32 input (1, height, width, 3) or (1, 3, height, width) of RGB in 0..1, and one output "
            "of that size with one channel"
        )
    graph = pf.FunctionalGraph("segment")
    image = graph.add_input("float32", (1, *shape[1:]), "image")
    (mask,) = F.forward(model, image)
    transform = pf.TextureTransform(resample="antialias", layout=layout)
    return graph.compile(mask=F.clamp(mask.reshape(1, 1, *size), 0, 1)), transform
