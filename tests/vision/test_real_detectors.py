"""Face detectors of others on a photograph: the faces that the host decodes, and crops that follow on the device."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.tensor import frames
from perframe.textures.regions import Warp
from perframe.vision import (
    best_boxes,
    decode_ssd,
    decode_ultraface,
    points_of_regions,
    regions_of_points,
    ssd_anchors,
    to_picture,
)
from vision.greedy import suppressed
from vision.running import close, sigmoid

COUNT = 4
BLAZE = pf.TextureTransform(resample="antialias", letterbox=0.0, range=(-1, 1), layout="NHWC")
ULTRA = pf.TextureTransform(resample="antialias", letterbox=0.0, mean=127 / 255, std=128 / 255)


@pytest.fixture
def photograph(shared: Path) -> Any:
    """Of an astronaut (H, W, 3)."""
    return np.asarray(Image.open(shared / "images" / "astronaut.png").convert("RGB"))


def blaze_finder(network: pf.Model, size: tuple[int, int]) -> pf.Model:
    graph = pf.FunctionalGraph()
    boxes, logits = pf.functional.forward(network, *graph.add_inputs(network))
    found = decode_ssd(boxes, logits, ssd_anchors(128, (8, 16, 16, 16)), 128)
    found = to_picture(found, BLAZE.mapping(size, (1, 128, 128, 3)))
    best = best_boxes(found, COUNT, iou_threshold=0.3, score_threshold=0.5, blend=True)
    assert best.points is not None
    regions = regions_of_points(best.points[0], 0, 1, boxes=best.boxes[0], scale=1.5)
    corners = np.tile(np.array([[0, 0], [1, 0], [0, 1], [0.5, 0.5]], np.float32), (COUNT, 1, 1))
    there = points_of_regions(corners, regions)
    return graph.compile(boxes=best.boxes, scores=best.scores, points=best.points, regions=regions, there=there)


def seen_on(picture: Any, how: pf.TextureTransform, shape: tuple[int, ...]) -> Any:
    return pf.TextureConverter().to_tensor(picture, pf.Tensor.empty(shape), how)


def test_blazeface(photograph: Any, shared: Path, backend: str, backend_context: Any) -> None:
    network = pf.load(shared / "models" / "blaze_face_short_range.onnx")
    size = photograph.shape[1], photograph.shape[0]
    x = seen_on(photograph, BLAZE, (1, 128, 128, 3))
    made = pf.run(blaze_finder(network, size), x, backend=backend, ctx=backend_context, strict=True)
    raw = pf.run(network, x)
    anchors = [
        ((i % cells + 0.5) * 128 / cells, (i // cells + 0.5) * 128 / cells)
        for cells, many in ((16, 2), (8, 6))
        for i in range(cells * cells)
        for _ in range(many)
    ]
    moved = raw["regressors"][0].astype(float).reshape(896, 8, 2)
    moved[:, [0, *range(2, 8)]] += np.array(anchors)[:, None]
    middle, half = moved[:, 0], moved[:, 1] / 2
    scale = max(size) / 128  # the photograph is square
    given = {
        "boxes": np.concatenate([middle - half, middle + half], 1) * scale,
        "scores": sigmoid(raw["classificators"][0, :, 0]),
        "points": moved[:, 2:] * scale,
    }
    boxes, scores, _, points, _, found = suppressed(given, COUNT, 0.3, 0.5, True, 256)
    assert size[0] == size[1] and found == 1
    np.testing.assert_allclose((boxes[0, :2] + boxes[0, 2:]) / 2, (224, 124), atol=15)
    for name, wanted in (("boxes", boxes), ("scores", scores), ("points", points)):
        close(made[name][0], wanted, 2e-3)
    warp = Warp.of(tuple(map(float, made["regions"][0])))
    assert warp is not None
    eyes = np.linalg.inv(warp.matrix) @ np.append(points[0, :2], np.ones((2, 1)), 1).T
    np.testing.assert_allclose(eyes[1, 0], eyes[1, 1], atol=1e-3)
    assert 0.1 < eyes[0, 0] < eyes[0, 1] < 0.9
    np.testing.assert_allclose(made["there"][0][:3], warp.corners.T[:3], atol=0.1)
    assert made["regions"][1:].tolist() == [[0, 0, 1, 1, made["regions"][1, 4]]] * (COUNT - 1)


def test_ultraface(photograph: Any, shared: Path, backend: str, backend_context: Any) -> None:
    network = pf.load(shared / "models" / "ultraface_rfb_320.onnx")
    graph = pf.FunctionalGraph()
    scores, boxes = pf.functional.forward(network, *graph.add_inputs(network))
    best = best_boxes(decode_ultraface(scores, boxes, (320, 240)), COUNT, iou_threshold=0.3, score_threshold=0.75)
    model = graph.compile(best=best.boxes, sure=best.scores, indices=best.indices)
    x = seen_on(photograph, ULTRA, (1, 3, 240, 320))
    made = pf.run(model, x, backend=backend, ctx=backend_context, strict=True)
    raw = pf.run(network, x)
    given = {"boxes": raw["boxes"][0] * (320, 240, 320, 240), "scores": raw["scores"][0, :, 1]}
    wanted = suppressed(given, COUNT, 0.3, 0.75, False, 256)
    assert wanted[5] == 1 and wanted[4][0] == made["indices"][0, 0]
    close(made["best"][0], wanted[0], 2e-3)
    close(made["sure"][0], wanted[1], 2e-3)


@pytest.mark.parametrize("gl_backend", ["gpu_compute", "gpu_pixel"])
def test_crops_follow_the_face_without_a_readback(
    gl_backend: str, photograph: Any, shared: Path, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if gl_backend == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    network = pf.load(shared / "models" / "blaze_face_short_range.onnx")
    size = photograph.shape[1], photograph.shape[0]
    texture = gl_context.texture(size, 3, photograph.tobytes())
    waits: list[str] = []
    with (
        pf.Worker(blaze_finder(network, size), gl_backend, gl_context, strict=True) as worker,  # type: ignore[arg-type]
        pf.TextureConverter(gl_context, gl_backend) as converter,  # type: ignore[arg-type]
    ):
        seen, crops = pf.Tensor.empty((1, 128, 128, 3)), pf.Tensor.empty((COUNT, 3, 48, 48))
        for _ in range(2):
            monkeypatch.setattr(type(frames.current_frame()), "blocking", lambda self, what, *rest: waits.append(what))
            converter.to_tensor(texture, seen, BLAZE)
            regions = worker.schedule(seen).peek_output("regions")
            converter.crop(texture, regions, crops)
            assert not waits and crops.backend_type == gl_backend
            monkeypatch.undo()
        region = regions.numpy()[0]
        assert abs(region[0] - 224) < 30 and abs(region[1] - 124) < 30 and abs(region[4]) < math.pi / 4
        turned = pf.TextureTransform(region=region.astype(float))
        wanted = seen_on(photograph, turned, (1, 3, 48, 48)).numpy()[0]
        np.testing.assert_allclose(crops.numpy()[0], wanted, atol=2e-3)
    texture.release()
