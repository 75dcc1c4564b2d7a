"""Models that estimate depth: what their files look like, what they want to see, and nearness from their output."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path

import perframe as pf
from perframe.errors import InputError, ModelError

from ..common.models import listed, sides

F = pf.functional
Size = tuple[int, int]

NORMALIZATIONS = {
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
}
STEP = 32  # open sides are multiples of it: most networks halve a picture five times or less
MOST = 640  # elements of an open side
ELEMENTS = 160 * 96  # of an input whose sizes are open: as our network saw in its training
FLAT = 1e-6  # a smaller range of depth is noise
FOLLOWED = 0.15  # of the way from a film's range of depths to that of the next picture
CARRY = {"next_nearness_range": "nearness_range"}
"""What a worker carries from one picture of a film to the next. Reset it before a picture that stands for itself."""


@dataclass(frozen=True)
class Estimator:
    """A model from a picture to `nearness` (1, 1, height, width), 1 for the nearest and 0 for the farthest.

    Its worker needs CARRY.
    """

    model: pf.Model
    transform: pf.TextureTransform
    """From a picture to the first input."""
    size: tuple[int, int]
    """Width and height of the first input; -1 for one that is open."""

    def shape_for(self, picture: Size) -> tuple[int, int, int, int]:
        """The first input's shape for a picture of this width and height. Open sides keep the picture's proportions."""
        scale = sqrt(ELEMENTS / (picture[0] * picture[1]))
        width, height = (
            side if side > 0 else min(MOST, max(STEP, STEP * round(pixels * scale / STEP)))
            for side, pixels in zip(self.size, picture, strict=True)
        )
        return (1, height, width, 3) if self.transform.layout == "NHWC" else (1, 3, height, width)


def estimator_of(file: Path, options: Namespace) -> Estimator:
    """The estimator in a file: a network from a picture to inverse depth, as MiDaS is one.

    Channels may be first or last, and sizes may be open. Raises ModelError for any other file, and InputError for
    options that do not fit it.
    """
    model = pf.load(file)
    shape = sides(model.inputs[0]) if len(model.inputs) == 1 else []
    layout = "NHWC" if shape[3:] == [3] and shape[1:2] != [3] else "NCHW"
    rows, columns = (shape[1:3] if layout == "NHWC" else shape[2:]) if len(shape) == 4 else (0, 0)
    fits = len(shape) == 4 and 3 in (shape[1], shape[3]) and shape[0] in (1, -1)
    if not fits or model.inputs[0].dtype != "float32" or not _is_depth(model, rows, columns):
        raise ModelError(
            f"{file} is not a depth model this demo supports: it has {listed(model)}; it wants one float32 input "
            "(1, 3, height, width) or (1, height, width, 3), and one float32 output (1, height, width) or "
            "(1, 1, height, width) of that size"
        )
    size = (columns, rows)
    if options.size is not None:
        if any(side not in (-1, asked) for side, asked in zip(size, options.size, strict=True)):
            raise InputError(f"--size: {file} takes pictures of {columns} x {rows} only; leave the option out")
        size = options.size
    mean, std = NORMALIZATIONS[options.normalize] if options.normalize else _normalization(model, file)
    transform = pf.TextureTransform(resample="antialias", mean=mean, std=std, layout=layout)
    return Estimator(_with_nearness(model, is_distance=options.distance), transform, size)


def _is_depth(model: pf.Model, rows: int, columns: int) -> bool:
    """Whether the only output is one number for each pixel. Open sides fit anything."""
    if len(model.outputs) != 1 or model.outputs[0].dtype != "float32":
        return False
    out = sides(model.outputs[0])
    if len(out) == 4 and 1 in (out[1], out[3]):
        out = [out[0], *(out[2:] if out[1] == 1 else out[1:3])]
    pairs = zip(out[1:], (rows, columns), strict=False)
    return len(out) == 3 and out[0] in (1, -1) and all(-1 in pair or pair[0] == pair[1] for pair in pairs)


def _normalization(model: pf.Model, file: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation by the metadata of the file, "0.5, 0.5, 0.5"; ImageNet's without."""
    given = [model.metadata.get(name) for name in ("mean", "std")]
    if given == [None, None]:
        return NORMALIZATIONS["imagenet"]
    try:
        mean, std = (tuple(float(part) for part in (text or "").split(",")) for text in given)
        if (len(mean), len(std)) != (3, 3) or not all(map(isfinite, mean + std)) or min(std) <= 0:
            raise ValueError
    except ValueError:
        raise ModelError(
            f"{file}: its metadata has mean {given[0]!r} and std {given[1]!r}, and not three numbers each, such as "
            "'0.5, 0.5, 0.5'; --normalize replaces them"
        ) from None
    return mean, std


def _with_nearness(model: pf.Model, is_distance: bool) -> pf.Model:
    """The model, whose output is brought to 0..1 on the device: scale and shift of depth are not known anyway.

    The range of depths follows that of a film's pictures slowly, so that noise does not make the relief flicker.
    """
    graph = pf.FunctionalGraph("depth")
    (depth,) = F.forward(model, *graph.add_inputs(model))
    before = graph.add_input("float32", (2,), "nearness_range")
    if depth.ndim == 3:
        depth = F.unsqueeze(depth, 1)
    elif sides(model.outputs[0])[1] != 1:  # channels last
        depth = F.permute(depth, (0, 3, 1, 2))
    if is_distance:
        depth = 1 / F.clamp(depth, min=1e-3)
    now = F.concat([F.reshape(extreme(depth), (1,)) for extreme in (F.amin, F.amax)])
    ranges = F.where(before[1:] > before[:1], before + FOLLOWED * (now - before), now)  # zeros: the first picture
    nearness = F.clamp((depth - ranges[:1]) / F.clamp(ranges[1:] - ranges[:1], min=FLAT), 0, 1)
    return graph.compile(nearness=nearness, next_nearness_range=ranges)
