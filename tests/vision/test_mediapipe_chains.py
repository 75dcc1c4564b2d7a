"""Chains of networks shaped like MediaPipe's hands and poses: each number as NumPy has it, on each backend."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.vision import best_boxes, decode_ssd, points_of_regions, regions_of_points, ssd_anchors, to_picture
from vision.mediapipe import (
    BODY,
    HAND,
    PALM,
    POSE,
    DetectorForm,
    ReaderForm,
    cropped,
    detector_model,
    found_regions,
    points_there,
    reader_model,
    region_of,
)

F = pf.functional
SIZE, COUNT = (480, 270), 2
WHOLE = pf.TextureTransform(resample="antialias", letterbox=0.0, layout="NHWC")
PART = pf.TextureTransform(layout="NHWC")


def finder(of: DetectorForm, network: pf.Model) -> pf.Model:
    graph = pf.FunctionalGraph("finder")
    raw, logits = F.forward(network, *graph.add_inputs(network))
    found = decode_ssd(raw, logits, ssd_anchors(of.side, of.strides), of.side)
    found = to_picture(found, WHOLE.mapping(SIZE, (1, of.side, of.side, 3)))
    best = best_boxes(found, COUNT, iou_threshold=0.3, score_threshold=0.5, blend=True)
    assert best.points is not None
    boxes = {} if of is POSE else {"boxes": best.boxes[0]}
    regions = regions_of_points(best.points[0], 0, 2 if of is PALM else 1, target_angle=pi / 2, **of.rule, **boxes)
    return graph.compile(raw=raw, logits=logits, regions=regions, scores=best.scores[0])


def reader(of: ReaderForm, network: pf.Model) -> pf.Model:
    graph = pf.FunctionalGraph("reader")
    crops = graph.add_input("float32", (COUNT, of.side, of.side, 3), "crops")
    regions = graph.add_input("float32", (COUNT, 5), "regions")
    runs = [F.forward(network, part) for part in F.split(crops, 1)]
    raw, scores = (F.cat([run[index] for run in runs], 0) for index in range(2))
    points = points_of_regions(F.reshape(raw, (COUNT, of.points, of.numbers))[..., :3], regions, of.side)
    following = regions_of_points(points, *of.span, target_angle=pi / 2, **of.rule)
    return graph.compile(raw=raw, points=points, scores=scores, following=following)


def agrees(found: Any, wanted: Any) -> None:
    """Within 1e-3 of the largest number."""
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize(("detector", "landmarks"), [(PALM, HAND), (POSE, BODY)], ids=["hands", "poses"])
def test_a_chain_is_that_of_numpy(
    detector: DetectorForm, landmarks: ReaderForm, backend: str, backend_context: Any
) -> None:
    random = np.random.default_rng(4)
    small = random.integers(0, 256, (18, 32, 3)).astype(np.uint8)
    picture = np.ascontiguousarray(np.kron(small, np.ones((15, 15, 1), np.uint8)))
    networks = detector_model(detector, random), reader_model(landmarks, random)
    assert [tuple(output.shape or ()) for output in networks[0].outputs] == [
        (1, len(ssd_anchors(detector.side, detector.strides)), 4 + 2 * detector.points),
        (1, 2016 if detector is PALM else 2254, 1),
    ]
    converter = pf.TextureConverter(backend_context, None if backend == "cpu" else backend)
    given: Any = picture if backend_context is None else backend_context.texture(SIZE, 3, picture.tobytes())
    seen, crops = (pf.Tensor.empty((n, of.side, of.side, 3)) for n, of in ((1, detector), (COUNT, landmarks)))
    with (
        pf.Worker(finder(detector, networks[0]), backend, backend_context, strict=True) as first,
        pf.Worker(reader(landmarks, networks[1]), backend, backend_context, strict=True) as second,
    ):
        regions = first.schedule(converter.to_tensor(given, seen, WHOLE)).peek_output("regions")
        second.schedule({"crops": converter.crop(given, regions, crops, PART), "regions": regions})
        found = {name: first.peek_output(name).numpy() for name in ("raw", "logits", "scores", "regions")}
        read = {name: second.peek_output(name).numpy() for name in ("raw", "points", "following")}
        pixels = crops.numpy()
    converter.release()
    if backend_context is not None:
        given.release()
    wanted, scores = found_regions(detector, found["raw"][0], found["logits"][0], SIZE, COUNT)
    agrees(found["scores"], scores)
    agrees(found["regions"], wanted)
    for row, region in enumerate(found["regions"].astype(float)):
        agrees(pixels[row], cropped(picture / 255, region, landmarks.side))
        there = points_there(landmarks, read["raw"][row], region)
        agrees(read["points"][row], there)
        agrees(read["following"][row], region_of(there, None, *landmarks.span, landmarks.rule))
