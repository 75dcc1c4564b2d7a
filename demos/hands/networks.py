"""The networks of the chain: what their files look like, and the models made of them that stay on the device."""

from __future__ import annotations

from math import pi, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import perframe as pf
from perframe import functional as F
from perframe.errors import ModelError
from perframe.resources import resource
from perframe.vision import (
    best_boxes,
    decode_ssd,
    follow_regions,
    one_euro,
    points_of_regions,
    regions_of_points,
    ssd_anchors,
    to_picture,
)

from ..common.models import listed, sides
from .drawn import JOINTS

HANDS, FOUND = 2, 3  # hands that are followed, and palms that a look at the whole picture returns
SURE = 0.5  # the score from which on a palm or a hand counts
TWINS = 0.5  # two regions that overlap by so much of both are one hand
STRIDES = (8, 16, 16, 16)
PALM_NUMBERS = 18  # of an anchor: a box and seven points
WRIST, MIDDLE = 0, 9  # joints that span the palm
STEADY, QUICK = 1.0, 0.5  # of the One-Euro filter: Hz at rest, and Hz more for each pixel a second

_PALMS = (
    "a palm detector has one float32 input (1, side, side, 3), and outputs (1, anchors, 18) and (1, anchors, 1), as "
    "MediaPipe's palm_detection"
)
_LANDMARKS = (
    "a landmark network has one float32 input (hands, side, side, 3), and outputs (hands, 63 or 42) and (hands, 1), as "
    "MediaPipe's hand_landmark"
)


class ChainNetwork(NamedTuple):
    """A model of the chain, and the shape and the values of its picture."""

    model: pf.Model
    shape: tuple[int, int, int, int]
    transform: pf.TextureTransform


def palm_detector(file: Path | None, picture: tuple[int, int]) -> ChainNetwork:
    """Picture → `regions` (FOUND, 5) of hands and their `scores` (FOUND,), for pictures of this width and height.

    Raises ModelError for a file that is no palm detector.
    """
    path = file or resource("assets", "hands", "palms.onnx")
    network = pf.load(path)
    side = _side(network)
    anchors = ssd_anchors(side, STRIDES) if side >= 16 and side % 16 == 0 else np.zeros((0, 4))
    wanted = sorted([(1, len(anchors), PALM_NUMBERS), (1, len(anchors), 1)])
    if not len(anchors) or sorted(tuple(sides(output)) for output in network.outputs) != wanted:
        raise ModelError(f"{path} is not a palm detector: it has {listed(network)}; {_PALMS}")
    shape = (1, side, side, 3)
    how = pf.TextureTransform(resample="antialias", letterbox=0.0, layout="NHWC")
    graph = pf.FunctionalGraph("palms")
    outputs = F.forward(network, *graph.add_inputs(network))
    boxes, logits = sorted(outputs, key=lambda output: -int(output.shape[-1] or 0))
    found = to_picture(decode_ssd(boxes, logits, anchors, side), how.mapping(picture, shape))
    best = best_boxes(found, FOUND, iou_threshold=0.3, score_threshold=SURE, blend=True)
    assert best.points is not None
    regions = regions_of_hands(best.points[0], 0, 2, boxes=best.boxes[0])
    return ChainNetwork(graph.compile(regions=regions, scores=best.scores[0]), shape, how)


def regions_of_hands(
    points: pf.FunctionalTensor, wrist: int, middle: int, boxes: pf.FunctionalTensor | None = None
) -> pf.FunctionalTensor:
    """The regions (n, 5) of hands, upright, from a palm's points (n, k, 2) and its box: those of MediaPipe."""
    around: Any = "points" if boxes is not None else "turned points"
    return regions_of_points(
        points, wrist, middle, target_angle=pi / 2, around=around, boxes=boxes, scale=2.6, shift=(0, -0.5)
    )


def follower() -> pf.Model:
    """The regions to read next: those of hands that are still there, and of hands that the detector found anew.

    `fresh` is 1 in a frame with a look at the whole picture, and 0 in others.
    """
    graph = pf.FunctionalGraph("follow")
    regions, scores = graph.add_input("float32", (HANDS, 5), "regions"), graph.add_input("float32", (HANDS,), "scores")
    found, sure = graph.add_input("float32", (FOUND, 5), "found"), graph.add_input("float32", (FOUND,), "sure")
    fresh = graph.add_input("float32", (1,), "fresh")
    chosen, kept = follow_regions(regions, scores, found, sure * fresh, threshold=SURE)
    return graph.compile(chosen=chosen, kept=kept)


def landmark_network(file: Path | None) -> ChainNetwork:
    """Crops → `points` (HANDS, 21, 2) in pixels of the picture, `scores` (HANDS,), and the `regions` (HANDS, 5) to
    read next. Inputs are `crops`, their `regions`, and of the filter `kept`, `seconds` and `state`.

    Raises ModelError for a file that is no landmark network.
    """
    path = file or resource("assets", "hands", "landmarks.onnx")
    network = pf.load(path)
    side, at, sure = _side(network), *_outputs(network, str(path))
    graph = pf.FunctionalGraph("landmarks")
    crops = graph.add_input("float32", (HANDS, side, side, 3), "crops")
    regions = graph.add_input("float32", (HANDS, 5), "regions")
    kept, seconds = graph.add_input("float32", (HANDS,), "kept"), graph.add_input("float32", (1,), "seconds")
    state = graph.add_input("float32", (3, HANDS, JOINTS, 2), "state")
    is_single = sides(network.inputs[0])[0] == 1
    runs = [F.forward(network, part) for part in (F.split(crops, 1) if is_single else [crops])]
    flat, scores = (F.cat([F.flatten(run[index], 1) for run in runs], 0) for index in (at, sure))
    joints = points_of_regions(F.reshape(flat, (HANDS, JOINTS, -1))[..., :2], regions, side)
    following = regions_of_hands(joints[:, [WRIST, MIDDLE]], 0, 1)
    present = alone(following, scores[:, 0] * F.to(regions[:, 2] > 0.0, "float32"))
    points, next_state = one_euro(joints, state, seconds, kept, min_cutoff=STEADY, beta=QUICK)
    model = graph.compile(points=points, scores=present, following=following, next_state=next_state)
    return ChainNetwork(model, (HANDS, side, side, 3), pf.TextureTransform(layout="NHWC"))


def alone(regions: pf.FunctionalTensor, scores: pf.FunctionalTensor) -> pf.FunctionalTensor:
    """The scores, but 0 for a row that came upon the hand of a row before it."""
    middle, half = regions[:, :2], regions[:, 2:4] / 2
    boxes = F.cat([middle - half, middle + half], 1)
    before = F.to(F.box_iou(boxes, boxes) > TWINS, "float32") * np.tril(np.ones((HANDS, HANDS), np.float32), -1)
    taken = F.matmul(before, F.to(scores > SURE, "float32"))
    left: pf.FunctionalTensor = F.where(taken > 0, F.zeros_like(scores), scores)
    return left


def _side(network: pf.Model) -> int:
    """The side of a network's square input (n, side, side, 3), or 0."""
    if len(network.inputs) != 1 or network.inputs[0].dtype != "float32":
        return 0
    shape = sides(network.inputs[0])
    return shape[1] if len(shape) == 4 and shape[1] == shape[2] and shape[3] == 3 else 0


def _outputs(network: pf.Model, path: str) -> tuple[int, int]:
    """Which outputs are the joints and the score: the first of each form, as MediaPipe has them. Raises ModelError."""
    numbers = [prod(sides(output)[1:]) if output.shape is not None else 0 for output in network.outputs]
    joints = [index for index, count in enumerate(numbers) if count in (2 * JOINTS, 3 * JOINTS)]
    scores = [index for index, count in enumerate(numbers) if count == 1]
    if not (_side(network) > 0 and joints and scores):
        raise ModelError(f"{path} is not a landmark network: it has {listed(network)}; {_LANDMARKS}")
    return joints[0], scores[0]
