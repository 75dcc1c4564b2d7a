"""Finders of faces: what their files look like, what they want to see, and how their outputs become faces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

import perframe as pf
from perframe.errors import ModelError
from perframe.vision import Detections, best_boxes, decode_ssd, decode_ultraface, ssd_anchors, ultraface_priors

from ..common.models import listed, sides

Array = np.ndarray[Any, Any]
Outputs = dict[str, pf.FunctionalTensor]

SAME = 0.3  # boxes that overlap by so much of both are one face
MOST = 32  # faces that are shown
CANDIDATES = 512  # boxes that may be faces
_ANCHORS = 896
_WANTED = (
    "a BlazeFace has one float32 input (1, side, side, 3) and outputs (1, 896, 16) and (1, 896, 1); an UltraFace has "
    "one of 3 channels, and outputs (1, boxes, 4) and (1, boxes, 2)"
)


@dataclass(frozen=True)
class Found:
    """A face: its probability, its box (left, top, right, bottom), and its points (count, 2) if its finder has any."""

    sure: float
    box: Array
    points: Array


class Finder(Protocol):
    """A kind of file."""

    name: str
    sure: float
    """The probability from which on a box counts."""
    shape: tuple[int, int, int, int]
    """Of the input."""
    transform: pf.TextureTransform
    """From a picture to the input."""

    def detections(self, outputs: Outputs) -> Detections:
        """What may be faces, from the network's outputs."""
        ...


class BlazeFace:
    """MediaPipe's BlazeFace of short range, and our own file: boxes and six points from 896 anchors."""

    name = "BlazeFace"
    sure = 0.5

    def __init__(self, side: int) -> None:
        self.shape, self._side = (1, side, side, 3), side
        self.transform = pf.TextureTransform(resample="antialias", letterbox=0.0, range=(-1, 1), layout="NHWC")
        self.anchors = ssd_anchors(side, (side // 16, side // 8, side // 8, side // 8))

    def detections(self, outputs: Outputs) -> Detections:
        """A box's middle counts from its anchor, and so do the points."""
        return decode_ssd(_by_last_dim(outputs, 16), _by_last_dim(outputs, 1), self.anchors, self._side)


class UltraFace:
    """Linzaer's Ultra-Light-Fast-Generic-Face-Detector. In most files boxes are corners; in others they count from
    priors.
    """

    name = "UltraFace"
    sure = 0.75

    def __init__(self, shape: tuple[int, int, int, int], is_nhwc: bool) -> None:
        self.shape = shape
        self._size = (shape[2], shape[1]) if is_nhwc else (shape[3], shape[2])
        layout = "NHWC" if is_nhwc else "NCHW"
        self.transform = pf.TextureTransform(
            resample="antialias", letterbox=0.0, mean=127 / 255, std=128 / 255, layout=layout
        )

    def detections(self, outputs: Outputs) -> Detections:
        """Boxes are corners if the right is right of the left in each."""
        scores, boxes = _by_last_dim(outputs, 2), _by_last_dim(outputs, 4)
        found, priors = decode_ultraface(scores, boxes, self._size), ultraface_priors(self._size)
        if boxes.shape[-2] not in (None, len(priors)):
            return found
        counted = decode_ultraface(scores, boxes, self._size, priors=priors)
        is_corners = pf.functional.all(boxes[..., 2:] >= boxes[..., :2])
        return found._replace(boxes=pf.functional.where(is_corners, found.boxes, counted.boxes))


def finder_of(model: pf.Model, file: str) -> Finder:
    """What kind of finder a model is, by its inputs and outputs. Raises ModelError if it is none."""
    if len(model.inputs) == 1 and model.inputs[0].dtype == "float32":
        shape = [1, *sides(model.inputs[0])[1:]]
        outputs = [sides(output) for output in model.outputs if output.shape is not None]
        last = sorted(dims[-1] for dims in outputs if dims)
        is_nhwc = shape[3:] == [3]
        if len(shape) == 4 and min(shape) > 0 and 3 in (shape[1], shape[3]):
            counts = {prod(dims[:-1]) for dims in outputs}
            if is_nhwc and last == [1, 16] and counts == {_ANCHORS} and shape[1] == shape[2]:
                return BlazeFace(shape[1])
            if last == [2, 4]:
                return UltraFace((1, shape[1], shape[2], shape[3]), is_nhwc)
    raise ModelError(f"{file} is not a face detector this demo supports: it has {listed(model)}; {_WANTED}")


def with_faces(model: pf.Model, finder: Finder) -> pf.Model:
    """The model with faces as outputs, the surest first: boxes, scores, points if it has any, and the number found.

    Boxes that overlap are one face, at their mean, weighted by probability: BlazeFace's answer to jitter.
    """
    graph = pf.FunctionalGraph(model.name)
    outputs = pf.functional.forward(model, *graph.add_inputs(model))
    return _compiled(graph, finder, dict(zip(model.output_names, outputs, strict=True)))


def reader_of(finder: Finder, **shapes: tuple[int, ...]) -> Callable[[dict[str, Array]], list[Found]]:
    """A function from a network's outputs, of these shapes, to faces: for programs that run the network themselves."""
    graph = pf.FunctionalGraph(finder.name)
    inputs = {name: graph.add_input("float32", shape, name) for name, shape in shapes.items()}
    model = _compiled(graph, finder, inputs)
    return lambda outputs: faces_of(pf.run(model, outputs))


def _compiled(graph: pf.FunctionalGraph, finder: Finder, outputs: Outputs) -> pf.Model:
    found = finder.detections(outputs)
    best = best_boxes(found, MOST, iou_threshold=SAME, score_threshold=finder.sure, blend=True, candidates=CANDIDATES)
    graph.add_outputs(boxes=best.boxes[0], scores=best.scores[0], found=best.found[0])
    if best.points is not None:
        graph.add_output(best.points[0], "points")
    return graph.compile()


def faces_of(values: dict[str, Array]) -> list[Found]:
    """The faces in the outputs of a model `with_faces`, in elements of its input from the top left corner."""
    none = np.zeros((MOST, 0, 2), np.float32)
    rows = zip(values["scores"], values["boxes"], values.get("points", none), strict=True)
    return [Found(float(sure), box, points) for sure, box, points in list(rows)[: int(values["found"])]]


def _by_last_dim(outputs: Outputs, last: int) -> pf.FunctionalTensor:
    """The output whose last dim is this one."""
    return next(output for output in outputs.values() if output.shape[-1] == last)
