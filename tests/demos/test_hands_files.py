"""Hands: files with the shapes of MediaPipe's are read as its own graph reads them, and others are refused."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.command_line.commands.demo import load_demo
from perframe.errors import ModelError
from perframe.resources import resource

F = pf.functional
SIZE = (640, 360)
ANCHOR = 2 * (24 * 10 + 7)  # the first of two in column 7 of row 10, of 24 x 24: its middle is (60, 84)
PALM = np.array([0, 10, 20, 20, 0, 20, 9, 8, 0, 0, -5, 8, -9, 9, 5, 16, 9, 12], np.float32)  # upright, 20 pixels long


def part(name: str) -> Any:
    load_demo("hands")
    return import_module(f"perframe_demos.hands.{name}")


def constant_model(path: Path, shape: tuple[int, ...], **outputs: Any) -> Path:
    """Write a network that returns the same for every picture of this shape."""
    graph = pf.FunctionalGraph("constant")
    zero = F.mean(graph.add_input("float32", shape, "picture")) * 0.0
    made = {name: np.asarray(values, np.float32) + zero for name, values in outputs.items()}
    pf.save(graph.compile(**made), path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A palm detector that sees one palm, and a hand landmark network with MediaPipe's four outputs."""
    boxes, logits = np.zeros((1, 2016, 18), np.float32), np.full((1, 2016, 1), -9, np.float32)
    boxes[0, ANCHOR], logits[0, ANCHOR] = PALM, 9
    detector = constant_model(tmp_path / "palms.onnx", (1, 192, 192, 3), boxes=boxes, logits=logits)
    joints = np.random.default_rng(2).uniform(40, 180, (21, 3)).astype(np.float32)
    outputs = {"joints": joints.reshape(1, 63), "present": [[0.9]], "right": [[0.2]], "world": np.zeros((1, 63))}
    landmarks = constant_model(tmp_path / "hand.onnx", (1, 224, 224, 3), **outputs)
    np.save(tmp_path / "joints.npy", joints)
    return {"detector": detector, "landmarks": landmarks}


def test_mediapipes_layouts(files: dict[str, Path], tmp_path: Path, backend: str, backend_context: Any) -> None:
    """One palm of 20 pixels, upright at (60, 94 - 10) of 192: the crop's side is 2.6 palms, half a palm above it."""
    chain = part("chain").HandChain(backend, backend_context, SIZE, **files)
    blank: Any = np.zeros((360, 640, 3), np.uint8)
    texture = None if backend_context is None else backend_context.texture(SIZE, 3, blank.tobytes())
    given = blank if texture is None else texture
    regions = chain.regions(given)
    seen = chain.landmarks(given, regions, 1 / 30)
    found, points, scores = regions.numpy(), seen.points.numpy(), seen.scores.numpy()
    chain.release()
    if texture is not None:
        texture.release()
    by = 640 / 192
    region = np.array([60, 94 - 10, 52, 52]) * by - (0, 140, 0, 0)  # the letterbox has 140 pixels above the picture
    np.testing.assert_allclose(found[0], [*region, 0], rtol=1e-4, atol=1e-3)
    joints = np.load(tmp_path / "joints.npy")[:, :2]
    np.testing.assert_allclose(points[0], region[:2] + (joints / 224 - 0.5) * region[2:], rtol=1e-4)
    np.testing.assert_allclose(scores, [0.9, 0], rtol=1e-5)


@pytest.mark.slow  # two networks more
def test_the_demo_takes_them(files: dict[str, Path], tmp_path: Path, gl_context: Any) -> None:
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    out = tmp_path / "out.png"
    assert load_demo("hands")(["--headless", "--backend", "cpu", "--frames", "2", "--save", str(out), *options]) == 0
    assert out.exists()


REFUSED: list[tuple[str, tuple[int, ...], dict[str, tuple[int, ...]]]] = [
    ("detector", (1, 192, 192, 3), {"boxes": (1, 2016, 12), "logits": (1, 2016, 1)}),  # points of a pose
    ("detector", (1, 192, 192, 3), {"boxes": (1, 896, 18), "logits": (1, 896, 1)}),  # anchors of another side
    ("detector", (1, 3, 192, 192), {"boxes": (1, 2016, 18), "logits": (1, 2016, 1)}),
    ("landmarks", (1, 256, 256, 3), {"joints": (1, 195), "present": (1, 1)}),  # of a pose
    ("landmarks", (1, 224, 224, 3), {"joints": (1, 63)}),  # no score
    ("landmarks", (1, 3, 224, 224), {"joints": (1, 63), "present": (1, 1)}),
]


@pytest.mark.parametrize(("kind", "shape", "outputs"), REFUSED, ids=str)
def test_other_shapes_are_refused(
    kind: str, shape: tuple[int, ...], outputs: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    made = {name: np.zeros(dims) for name, dims in outputs.items()}
    path = constant_model(tmp_path / "other.onnx", shape, **made)
    networks = part("networks")
    readers: dict[str, Callable[[], Any]] = {
        "detector": lambda: networks.palm_detector(path, SIZE),
        "landmarks": lambda: networks.landmark_network(path),
    }
    with pytest.raises(ModelError, match=r"other\.onnx is not a .* it has input picture float32 .*MediaPipe"):
        readers[kind]()


@pytest.mark.quick(cases=0)
def test_files_of_other_demos_are_refused(tmp_path: Path, capsys: Any) -> None:
    digits = resource("assets", "digits", "digits.onnx")
    argv = ["--headless", "--backend", "cpu", "--frames", "2", "--save", str(tmp_path / "hands.png")]
    for option, kind in (("--detector", "palm detector"), ("--landmarks", "landmark network")):
        assert load_demo("hands")([*argv, option, str(digits)]) == 1
        assert f"digits.onnx is not a {kind}: it has input ink float32" in capsys.readouterr().err
        assert load_demo("hands")([*argv, option, str(tmp_path / "none.onnx")]) == 1
        assert "none.onnx" in capsys.readouterr().err
    assert load_demo("hands")([*argv, "--source", str(tmp_path / "film.mp4")]) == 1
    assert "does not exist" in capsys.readouterr().err and not list(tmp_path.iterdir())
