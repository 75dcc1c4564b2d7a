"""Faces: files are recognised, faces are found on each backend, and lie over the picture in which they were found."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.errors import ModelError
from perframe.host import App, ManualClock
from perframe.resources import resource


def part(name: str, package: str = "faces") -> Any:
    load_demo("faces")
    return import_module(f"perframe_demos.{package}.{name}")


def found_in(file: Any, pixels: np.ndarray, backend: str = "cpu", ctx: Any = None) -> list[Any]:
    """The faces of a picture in its own pixels."""
    finders = part("finders")
    model = pf.load(file)
    finder = finders.finder_of(model, str(file))
    model = finders.with_faces(model, finder)
    given = pf.TextureConverter().to_tensor(pixels, pf.Tensor.empty(finder.shape), finder.transform)
    with pf.Worker(model, backend, ctx, strict=True) as worker:
        worker.schedule(given)
        outputs = {name: worker.peek_output(name).download_to_array() for name in model.output_names}
    mapping = finder.transform.mapping((pixels.shape[1], pixels.shape[0]), finder.shape)
    return [
        finders.Found(one.sure, mapping.boxes_to_picture(one.box), mapping.to_picture(one.points))
        for one in finders.faces_of(outputs)
    ]


def test_our_own_network_finds_the_friends(backend: str, backend_context: Any) -> None:
    party = part("party").Party((640, 360))
    there = right = 0
    for time in (0.5, 4.0, 8.5):
        faces = found_in(resource("assets", "faces", "faces.onnx"), party(time), backend, backend_context)
        there += len(party.faces)
        for face in faces:
            middle, width = (face.box[:2] + face.box[2:]) / 2, face.box[2] - face.box[0]
            off = [np.abs(np.add(one.box[:2], one.box[2:]) / 2 - middle).max() / width for one in party.faces]
            one = party.faces[int(np.argmin(off))]
            assert min(off) < 0.2, f"at {time} s there is no face at {middle}"  # a balloon is none
            right += np.linalg.norm(face.points - one.points, axis=1).mean() < 0.14 * width
    assert right >= 0.9 * there


def faces_from(finder: Any, **outputs: np.ndarray) -> list[Any]:
    """The faces in a network's outputs."""
    read = part("finders").reader_of(finder, **{name: values.shape for name, values in outputs.items()})
    return read(outputs)  # type: ignore[no-any-return]


def test_a_blazeface_counts_from_its_anchors() -> None:
    regressors, scores = np.zeros((1, 896, 16), np.float32), np.full((1, 896, 1), -9, np.float32)
    anchor = 2 * (16 * 3 + 5)  # the first of two in column 5 of row 3: its middle is (44, 28)
    regressors[0, anchor] = [4, -2, 20, 10, *range(12)]
    scores[0, anchor : anchor + 2, 0] = 5, -5
    (face,) = faces_from(part("finders").BlazeFace(128), a=scores, b=regressors)
    np.testing.assert_allclose(face.sure, 1 / (1 + np.exp(-5)), rtol=1e-6)
    np.testing.assert_allclose(face.box, [38, 21, 58, 31], rtol=1e-6)
    np.testing.assert_allclose(face.points, np.arange(12).reshape(6, 2) + np.array((44, 28)), rtol=1e-6)


def test_an_ultraface_gives_corners_or_counts_from_its_anchors() -> None:
    finder = part("finders").UltraFace((1, 3, 240, 320), False)
    scores, raw = np.zeros((1, 4420, 2), np.float32), np.zeros((1, 4420, 4), np.float32)
    anchor = 3 * (40 * 30) + 2 * (20 * 4 + 7) + 1  # the second of two in column 7 of row 4, cells of 16 pixels
    scores[0, anchor, 1] = 0.9
    raw[0, anchor] = [5, -5, 0, 5 * np.log(2)]
    raw[0, 0] = [1, 0, -1, 0]  # no corners
    middle, size = np.array([7.5 * 16 + 0.5 * 48, 4.5 * 16 - 0.5 * 48]), np.array([48, 96])
    wanted = np.concatenate([middle - size / 2, middle + size / 2])
    corners = np.tile(wanted / (320, 240, 320, 240), (1, 4420, 1)).astype(np.float32)
    for boxes in (raw, corners):
        (face,) = faces_from(finder, a=scores, b=boxes)
        np.testing.assert_allclose(face.box, wanted, atol=1e-3)
        assert face.sure == np.float32(0.9) and face.points.shape == (0, 2)


def test_boxes_that_overlap_are_one_face() -> None:
    size, shares = np.array((320, 240, 320, 240)), np.zeros((1, 3, 4), np.float32)
    shares[0] = np.array([[0, 0, 10, 10], [2, 0, 12, 10], [30, 0, 40, 10]]) / size
    scores = np.zeros((1, 3, 2), np.float32)
    scores[0, :, 1] = 0.9, 0.8, 0.95
    faces = faces_from(part("finders").UltraFace((1, 3, 240, 320), False), a=scores, b=shares)
    np.testing.assert_allclose([face.sure for face in faces], [0.95, 0.9])
    np.testing.assert_allclose(faces[1].box, [2 * 0.8 / 1.7, 0, 10 + 2 * 0.8 / 1.7, 10], rtol=1e-5, atol=1e-4)


def test_other_files_are_refused(tmp_path: Path, capsys: Any) -> None:
    digits = resource("assets", "digits", "digits.onnx")
    with pytest.raises(
        ModelError, match=r"digits\.onnx is not a face detector .* input ink float32 .* a BlazeFace has"
    ):
        part("finders").finder_of(pf.load(digits), str(digits))
    argv = ["--headless", "--backend", "cpu", "--save", str(tmp_path / "faces.png")]
    assert load_demo("faces")([*argv, "--model", str(digits)]) == 1
    assert load_demo("faces")([*argv, "--source", str(tmp_path / "film.mp4")]) == 1
    errors = capsys.readouterr().err
    assert "is not a face detector" in errors and "does not exist" in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "points"),
    [("blaze_face_short_range.onnx", 6), ("ultraface_rfb_320.onnx", 0), ("ultraface_rfb_320.tflite", 0)],
)
def test_files_of_others_find_a_real_face(name: str, points: int, shared: Path) -> None:
    pixels = np.asarray(Image.open(shared / "images" / "astronaut.png").convert("RGB"))
    faces = found_in(shared / "models" / name, pixels)
    assert len(faces) == 1 and faces[0].points.shape == (points, 2)
    np.testing.assert_allclose((faces[0].box[:2] + faces[0].box[2:]) / 2, (224, 124), atol=15)


@pytest.mark.slow
def test_faces_lie_over_the_picture_in_which_they_were_found(gl_context: Any) -> None:
    """A run of many frames: what is on show stays that of the run before, and then belongs to this one."""
    stage = part("stage", "common").Stage
    options = Namespace(model=None, source=None, budget=0.2, scores=True)
    with App((320, 180), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        script = app.add(part("view").FacesView(stage(pf.BackendType.CPU, app.ctx, False, options)))
        runs: dict[int, pf.Run] = {}
        for _ in range(400):
            app.loop_once()
            run = script.shown.run
            if run is not None:
                runs[id(run)] = run
                assert script.shown.picture.pixels is run.source.pixels and run.done
            if len(runs) == 3:
                break
        assert len(runs) == 3 and max(run.frames for run in runs.values()) > 1
        assert len(script.shown.faces) >= 6 and len({run.source.index for run in runs.values()}) == 3


@pytest.mark.quick(cases=0)
def test_it_writes_a_picture_of_a_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    Image.fromarray(part("party").Party((480, 270))(1.0)).save(tmp_path / "party.png")
    out = tmp_path / "faces.png"
    argv = [
        "--headless",
        "--backend",
        backend,
        "--frames",
        "6",
        "--save",
        str(out),
        "--source",
        str(tmp_path / "party.png"),
    ]
    assert load_demo("faces")(argv) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    plain = np.asarray(Image.open(tmp_path / "party.png").resize((1280, 720))).astype(int)
    marked = np.abs(drawn - plain).sum(2)[100:] > 200
    assert 0.003 < marked.mean() < 0.1  # corners, dots and figures


@pytest.mark.parametrize("budget", ["-1", "nan", "inf", "much"])
def test_a_budget_is_a_number_of_milliseconds(budget: str, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        load_demo("faces")([f"--budget={budget}"])
    assert ended.value.code == 2 and "--budget" in capsys.readouterr().err
