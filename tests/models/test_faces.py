"""Face detectors find the astronaut's face: picture → TextureConverter → network → box, on every backend."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import perframe as pf
from models.faces import DETECTORS, Box, Detector, anchors, overlap

FACE = (176, 72, 272, 184)  # seen by eye: from the fringe to the chin, from ear to ear
REGIONS = {  # x, y, width, height of the picture's 512 x 512 pixels; the models want 1:1 and 4:3
    "blaze_face_short_range": {"whole": (0, 0, 512, 512), "part": (100, 20, 260, 260), "beyond": (-60, -80, 480, 480)},
    "ultraface_rfb_320": {"whole": (-85, 0, 682, 512), "part": (40, 10, 400, 300), "beyond": (-100, -60, 640, 480)},
}


@pytest.fixture(scope="module")
def picture(shared: Path) -> Any:
    with Image.open(shared / "images" / "astronaut.png") as image:
        return np.asarray(image.convert("RGB"))


def keep(picture: Any, box: Box, name: str, folder: Path) -> Path:
    """The picture with the box drawn into it, in the test's folder and in PERFRAME_PICTURES."""
    drawn = Image.fromarray(picture)
    ImageDraw.Draw(drawn).rectangle(box, outline=(0, 255, 64), width=3)
    for place in (folder, *map(Path, filter(None, [os.environ.get("PERFRAME_PICTURES")]))):
        place.mkdir(parents=True, exist_ok=True)
        drawn.save(place / f"{name}.png")
    return folder / f"{name}.png"


def check(detector: Detector, outputs: dict[str, Any], picture: Any, region: Box, name: str, folder: Path) -> None:
    """The box lies on the face, and is in the picture that is kept."""
    box, score = detector.box(outputs, region)
    path = keep(picture, box, name, folder)
    assert score > 0.9
    assert overlap(box, FACE) > 0.5, f"the box is {np.round(box)}, the face {FACE}: see {path}"
    with Image.open(path) as drawn:
        green = (np.asarray(drawn) == (0, 255, 64)).all(-1)
    rows, columns = np.nonzero(green)
    edges = (columns.min(), rows.min(), columns.max(), rows.max())
    assert np.abs(np.subtract(edges, box)).max() < 2, "the box is drawn where it is"


def run(worker: pf.Worker, x: pf.Tensor) -> dict[str, Any]:
    worker.schedule(x)
    requests = {name: worker.peek_output(name).readback_request() for name in worker.model.output_names}
    return {name: request.result(wait=True) for name, request in requests.items()}


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_in_a_texture(
    detector: Detector, backend: str, backend_context: Any, gl_context: Any, picture: Any, shared: Path, tmp_path: Path
) -> None:
    """For the CPU the texture's values come over; on a GPU nothing leaves it but the boxes."""
    texture = gl_context.texture(picture.shape[1::-1], 3, picture.tobytes())
    model = pf.load(shared / "models" / f"{detector.name}.onnx")
    with (
        pf.TextureConverter(gl_context, backend) as converter,
        pf.Worker(model, backend, backend_context, strict=backend != "cpu") as worker,
    ):
        x = pf.Tensor.empty(detector.shape)
        for name, region in REGIONS[detector.name].items():
            converter.to_tensor(texture, x, detector.transform.replace(region=region))
            assert x.backend_type == backend
            check(detector, run(worker, x), picture, region, f"{detector}-{backend}-{name}", tmp_path)


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_in_a_texture_that_gl_drew(
    detector: Detector, backend: str, backend_context: Any, gl_context: Any, picture: Any, shared: Path, tmp_path: Path
) -> None:
    """Upside down, blue before red: as cameras and framebuffers have it."""
    texels = np.zeros((512, 512, 4), np.uint8)
    texels[..., :3] = picture[::-1, :, ::-1]
    texture = gl_context.texture((512, 512), 4, texels.tobytes())
    region = REGIONS[detector.name]["whole"]
    how = detector.transform.replace(swizzle="bgr", coord_origin="bottom_left", region=region)
    model = pf.load(shared / "models" / f"{detector.name}.onnx")
    with (
        pf.TextureConverter(gl_context) as converter,
        pf.Worker(model, backend, backend_context, strict=backend != "cpu") as worker,
    ):
        x = converter.to_tensor(texture, worker.empty_input(0), how)
        check(detector, run(worker, x), picture, region, f"{detector}-{backend}-drawn", tmp_path)


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_in_an_array(
    detector: Detector, backend: str, backend_context: Any, picture: Any, shared: Path, tmp_path: Path
) -> None:
    """Without a GL context for the picture."""
    model = pf.load(shared / "models" / f"{detector.name}.onnx")
    with pf.Worker(model, backend, backend_context, strict=backend != "cpu") as worker:
        x = worker.empty_input(0)
        for name, region in REGIONS[detector.name].items():
            pf.TextureConverter().to_tensor(picture, x, detector.transform.replace(region=region))
            check(detector, run(worker, x), picture, region, f"{detector}-{backend}-array-{name}", tmp_path)


@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_no_face_in_a_picture_without_one(detector: Detector, picture: Any, shared: Path) -> None:
    """The score means something: the helmet and the shuttle are no faces."""
    model = pf.load(shared / "models" / f"{detector.name}.onnx")
    with pf.Worker(model) as worker:
        x = worker.empty_input(0)
        how = detector.transform.replace(region=(300, 20, 200, 200 * detector.size[1] / detector.size[0]))
        pf.TextureConverter().to_tensor(picture, x, how)
        _, score = detector.decode(run(worker, x))
    assert score < 0.5


def test_the_anchors_are_mediapipes() -> None:
    points = anchors()
    assert points.shape == (896, 2)
    np.testing.assert_allclose(
        points[[0, 1, 2, 33]], [[1 / 32, 1 / 32], [1 / 32, 1 / 32], [3 / 32, 1 / 32], [1 / 32, 3 / 32]]
    )
    np.testing.assert_allclose(
        points[[512, 517, 518, 895]], [[1 / 16, 1 / 16], [1 / 16, 1 / 16], [3 / 16, 1 / 16], [15 / 16, 15 / 16]]
    )


def test_overlap() -> None:
    assert overlap((0, 0, 2, 2), (0, 0, 2, 2)) == 1
    assert overlap((0, 0, 2, 2), (1, 0, 3, 2)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 2, 2), (2, 0, 3, 2)) == 0
