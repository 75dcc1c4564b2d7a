"""Depth: estimated on each backend, without leaving the device, and lit by a lamp that follows the mouse."""

from __future__ import annotations

from argparse import Namespace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.backends.gl.compute import BufferStorage
from perframe.backends.gl.pixel import TextureStorage
from perframe.command_line.commands.demo import load_demo
from perframe.errors import InputError, ModelError
from perframe.host import App, KeyEvent, ManualClock, MouseMoveEvent, ScrollEvent
from perframe.resources import resource

F = pf.functional
UNSEEN, SCENES = 1_000_000, 12  # seeds of scenes that training never saw
ERROR = 0.37
"""The most that the mean error of these scenes may be, of the error of a constant."""


def part(name: str, package: str = "depth") -> Any:
    load_demo("depth")
    return import_module(f"perframe_demos.{package}.{name}")


def options(**given: Any) -> Namespace:
    base = {"model": None, "source": None, "normalize": None, "size": None, "distance": False, "budget": 4.0}
    return Namespace(**{**base, **given})


def asset(name: str) -> Any:
    """A module beside the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(resource("assets", "depth", "scenes.py").parents[2]))
        return import_module(f"assets.depth.{name}")


@cache
def scenes() -> list[tuple[np.ndarray, np.ndarray]]:
    """Pictures of uint8, and their inverse distances."""
    draw = asset("scenes").scene
    drawn = [draw(np.random.default_rng(UNSEEN + index), (160, 96)) for index in range(SCENES)]
    return [(np.rint(pixels * 255).astype(np.uint8), inverse) for pixels, inverse in drawn]


def nearness_of(file: Any, pixels: list[np.ndarray], backend: str = "cpu", ctx: Any = None, **given: Any) -> Any:
    """The nearness of pictures of one size, each (height, width)."""
    estimator = part("estimators").estimator_of(file, options(**given))
    shape = estimator.shape_for((pixels[0].shape[1], pixels[0].shape[0]))
    found = []
    with pf.Worker(estimator.model, backend, ctx, strict=True, carry=part("estimators").CARRY) as worker:
        for picture in pixels:
            worker.reset()
            seen = pf.TextureConverter().to_tensor(picture, pf.Tensor.empty(shape), estimator.transform)
            found.append(worker.schedule(seen).peek_output("nearness").download_to_array()[0, 0])
    return found


@cache
def on_cpu() -> Any:
    return nearness_of(resource("assets", "depth", "depth.onnx"), [pixels for pixels, _ in scenes()])


@pytest.mark.slow
def test_unseen_scenes_have_depth(backend: str, backend_context: Any) -> None:
    measures = asset("measures")
    file = resource("assets", "depth", "depth.onnx")
    found = nearness_of(file, [pixels for pixels, _ in scenes()], backend, backend_context)
    errors = [measures.relative_error(near, wanted) for near, (_, wanted) in zip(found, scenes(), strict=True)]
    planes = [measures.relative_error(measures.sloped(wanted), wanted) for _, wanted in scenes()]
    pairs = zip(found, scenes(), strict=True)
    orders = [measures.disorder(near, wanted, np.random.default_rng(0)) for near, (_, wanted) in pairs]
    assert np.mean(errors) < min(ERROR, 0.7 * np.mean(planes)), errors
    assert np.mean(orders) < 0.10, orders
    for near, reference in zip(found, on_cpu(), strict=True):
        assert near.min() == 0 and abs(near.max() - 1) < 1e-5
        np.testing.assert_allclose(near, reference, atol=2e-4)


def written(folder: Path, shape: tuple[Any, ...], out: str, **metadata: str) -> Path:
    """A file of MiDaS's form: the mean of the channels, as (1, h, w), (1, 1, h, w) or (1, h, w, 1)."""
    graph = pf.FunctionalGraph()
    image = graph.add_input("float32", shape, "image")
    gray = F.mean(image, 3 if shape[3] == 3 else 1, keepdim=out != "1hw")
    if out == "hw1" and shape[3] != 3:
        gray = F.permute(gray, (0, 2, 3, 1))
    model = graph.compile(depth=gray * 7 + 2)
    model.metadata = metadata
    pf.save(model, folder / "stand_in.onnx")
    return folder / "stand_in.onnx"


def leveled(values: np.ndarray) -> np.ndarray:
    return (values - values.min()) / (values.max() - values.min())


@pytest.mark.parametrize(
    ("shape", "out"),
    [
        ((1, 3, 24, 40), "1hw"),
        ((1, 3, 24, 40), "11hw"),
        ((1, 24, 40, 3), "1hw"),
        ((1, 24, 40, 3), "hw1"),
        ((1, 3, "h", "w"), "1hw"),
        (("n", 3, "h", "w"), "11hw"),
    ],
)
def test_files_of_others_are_understood(
    shape: tuple[Any, ...], out: str, backend: str, backend_context: Any, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    mean, std = np.array((0.485, 0.456, 0.406)), np.array((0.229, 0.224, 0.225))
    wanted = leveled(((pixels / 255 - mean) / std).mean(2))
    size = (40, 24) if "h" in shape else None
    (found,) = nearness_of(written(tmp_path, shape, out), [pixels], backend, backend_context, size=size)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_normalization_is_an_option_or_metadata_and_distance_is_inverted(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (24, 40, 3), np.uint8)
    gray = pixels.mean(2) / 255
    shape = (1, 3, 24, 40)
    uneven = {"mean": "0.1,0.2,0.3", "std": "1,2,4"}
    by_channel = leveled(((pixels / 255 - (0.1, 0.2, 0.3)) / (1, 2, 4)).mean(2))
    (found,) = nearness_of(written(tmp_path, shape, "1hw", **uneven), [pixels])
    np.testing.assert_allclose(found, by_channel, atol=1e-4)
    (found,) = nearness_of(written(tmp_path, shape, "1hw", **uneven), [pixels], normalize="half")
    np.testing.assert_allclose(found, leveled(gray), atol=1e-4)
    (found,) = nearness_of(written(tmp_path, shape, "1hw"), [pixels], normalize="unit", distance=True)
    np.testing.assert_allclose(found, leveled(1 / (gray * 7 + 2)), atol=1e-4)
    for wrong in (
        {"mean": "0.5"},
        {"mean": "0,0,nan", "std": "1,1,1"},
        {"mean": "0,0,0", "std": "1,1,none"},
        {"mean": "0,0,0", "std": "1,0,1"},
    ):
        with pytest.raises(ModelError, match=r"stand_in\.onnx: its metadata has mean .* --normalize replaces them"):
            nearness_of(written(tmp_path, shape, "1hw", **wrong), [pixels])
    with pytest.raises(InputError, match=r"--size: .* takes pictures of 40 x 24 only"):
        nearness_of(written(tmp_path, shape, "1hw"), [pixels], size=(64, 64))


def test_the_range_of_a_film_follows_slowly(backend: str, backend_context: Any, tmp_path: Path) -> None:
    """A picture of other depths keeps its place in the range, and fills the range after a while."""
    estimators = part("estimators")
    model = estimators.estimator_of(written(tmp_path, (1, 3, 24, 40), "11hw"), options()).model
    ramp = np.broadcast_to(np.linspace(0, 1, 40, dtype=np.float32), (1, 3, 24, 40))
    highest = []
    with pf.Worker(model, backend, backend_context, strict=True, carry=estimators.CARRY) as worker:
        for scale in (1.0, *[0.5] * 30):
            worker.schedule(ramp * np.float32(scale))
            highest.append(worker.peek_output("nearness").download_to_array().max())
        worker.reset()
        worker.schedule(ramp * np.float32(0.25))
        assert abs(worker.peek_output("nearness").download_to_array().max() - 1) < 1e-4
    assert abs(highest[0] - 1) < 1e-4 and highest[1] < 0.6 and highest[-1] > 0.98
    assert (np.diff(highest[1:]) > -1e-5).all()


def test_a_flat_picture_has_no_depth(tmp_path: Path) -> None:
    (found,) = nearness_of(written(tmp_path, (1, 3, 24, 40), "1hw"), [np.full((9, 9, 3), 128, np.uint8)])
    np.testing.assert_array_equal(found, 0)


def test_open_sides_keep_the_proportions_of_the_picture() -> None:
    shape_for = part("estimators").estimator_of(resource("assets", "depth", "depth.onnx"), options()).shape_for
    assert shape_for((960, 540)) == (1, 3, 96, 160)
    assert shape_for((540, 960)) == (1, 3, 160, 96)
    assert shape_for((101, 77)) == (1, 3, 96, 128)
    assert shape_for((4000, 10)) == (1, 3, 32, 640)


def refusals() -> dict[str, pf.Model]:
    """Models that are no estimators."""

    def made(shape: tuple[int, ...], *outputs: Any, dtype: str = "float32") -> pf.Model:
        graph = pf.FunctionalGraph()
        image = graph.add_input(dtype, shape, "image")
        return graph.compile(**{f"out{index}": output(image) for index, output in enumerate(outputs)})

    def gray(image: Any) -> Any:
        return F.mean(image, 1)

    def half(image: Any) -> Any:
        return F.mean(image, 1)[:, ::2]

    return {
        "two channels out": made((1, 3, 8, 8), lambda image: image[:, :2] * 1),
        "half of the rows": made((1, 3, 8, 8), half),
        "two outputs": made((1, 3, 8, 8), gray, gray),
        "a batch": made((2, 3, 8, 8), gray),
        "four channels in": made((1, 4, 8, 8), gray),
        "integers": made((1, 3, 8, 8), lambda image: image[:, 0] + 1, dtype="int32"),
        "rank 2": made((3, 8), gray),
    }


@pytest.mark.parametrize("name", ["two channels out", "half of the rows", "two outputs", "a batch", "four channels in"])
def test_wrong_shapes_are_refused(name: str, tmp_path: Path) -> None:
    _refused(refusals()[name], tmp_path)


@pytest.mark.parametrize("name", ["integers", "rank 2"])
def test_wrong_inputs_are_refused(name: str, tmp_path: Path) -> None:
    _refused(refusals()[name], tmp_path)


def _refused(model: pf.Model, folder: Path) -> None:
    pf.save(model, folder / "wrong.onnx")
    with pytest.raises(ModelError, match=r"wrong\.onnx is not a depth model .* input image .* it wants one float32"):
        part("estimators").estimator_of(folder / "wrong.onnx", options())


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--model", "nowhere.onnx"], "nowhere.onnx"),
        (["--model", str(resource("assets", "digits", "digits.onnx"))], "is not a depth model this demo supports"),
        (["--source", "nowhere.png"], "nowhere.png"),
    ],
)
def test_wrong_files_end_in_one_line(argv: list[str], said: str, gl_context: Any, tmp_path: Path, capsys: Any) -> None:
    assert load_demo("depth")(["--headless", "--backend", "cpu", "--save", str(tmp_path / "out.png"), *argv]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and said in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("argv", [["--size", "8x8"], ["--budget", "-1"], ["--normalize", "vgg"]])
def test_what_is_not_understood_ends_with_2(argv: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        load_demo("depth")(argv)
    assert ended.value.code == 2 and argv[0] in capsys.readouterr().err


@pytest.mark.quick(cases=0)
def test_the_lamp_follows_the_mouse_and_nothing_is_read_back(
    backend: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the depth has left the device")

    if backend != "cpu":
        for name in ("readback_request", "readback_and_clone", "download_to_array"):
            monkeypatch.setattr(pf.Tensor, name, refuse)
        for kind in (BufferStorage, TextureStorage):
            for name in ("download", "request"):
                monkeypatch.setattr(kind, name, refuse)
    stage = part("stage", "common").Stage
    clock = ManualClock(0.0)
    with App((320, 180), headless=True, clock=clock, stop_on_error=True) as app:
        script = app.add(part("view").DepthView(stage(pf.BackendType(backend), app.ctx, True, options())))

        def shown() -> np.ndarray:
            app.loop_once()
            assert app.framebuffer is not None
            data = app.framebuffer.read(components=3, alignment=1)
            return np.frombuffer(data, np.uint8).reshape(180, 320, 3)[::-1].astype(int)

        for _ in range(3):
            shown()
        app.post(ScrollEvent((0.0, 99.0)))  # the lamp comes before everything
        left, right = (slice(60, 100), slice(30, 90)), (slice(60, 100), slice(230, 290))
        app.post(MouseMoveEvent((60.0, 80.0)))
        at_left = shown()
        app.post(MouseMoveEvent((260.0, 80.0)))
        at_right = shown()
        assert at_left[left].mean() > 1.25 * at_right[left].mean()
        assert at_right[right].mean() > 1.25 * at_left[right].mean()
        app.post(ScrollEvent((0.0, -99.0)))  # behind everything: only a glow is left
        behind = shown()
        assert behind[right].mean() < 0.9 * at_right[right].mean()
        np.testing.assert_array_equal(shown(), behind)  # a lamp that is held does not wander
        assert script.runs == 1, "a still picture needs one run"
        clock.step = 6.0
        assert np.abs(shown() - behind).mean() > 2, "a mouse that rests lets the lamp wander"
        app.post(KeyEvent("space", True))
        for _ in range(3):
            following = shown()
        assert script.runs == 2 and np.abs(following - behind).mean() > 10
        app.post(KeyEvent("d", True))
        depth = shown()
        assert (depth[60:, :, 0] >= depth[60:, :, 1] - 8).mean() > 0.8, "the ramp has no greens"


@pytest.mark.slow  # the demo's program, as for its other pictures
def test_a_picture_of_odd_sides_is_shown(backend: str, gl_context: Any, tmp_path: Path) -> None:
    pixels = Image.fromarray(scenes()[0][0]).resize((211, 97))
    pixels.save(tmp_path / "odd.png")
    out = tmp_path / "out.png"
    argv = ["--headless", "--backend", backend, "--frames", "3", "--source", str(tmp_path / "odd.png")]
    assert load_demo("depth")([*argv, "--save", str(out)]) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert drawn.shape == (720, 1280, 3)
    assert (drawn[:60, 400:] < 24).all() and drawn[120:600, 400:].std() > 10  # a band above, and the picture


@pytest.mark.quick(cases=0)
def test_a_film_has_depth_in_each_picture(backend: str, gl_context: Any, tmp_path: Path) -> None:
    """One run for each picture, whatever its size."""
    for index, size in enumerate([(160, 96), (96, 160), (97, 33)]):
        Image.fromarray(scenes()[index][0]).resize(size).save(tmp_path / f"{index}.png")
    stage = part("stage", "common").Stage
    with App((320, 180), headless=True, clock=ManualClock(1 / 30), stop_on_error=True) as app:
        asked = options(source=str(tmp_path))
        script = app.add(part("view").DepthView(stage(pf.BackendType(backend), app.ctx, True, asked)))
        sizes = []
        for _ in range(12):
            app.loop_once()
            if script.runs > len(sizes):
                sizes.append(script.shown_nearness.size)
        assert sizes[:3] == [(160, 96), (96, 160), (97, 33)] and script.runs >= 3


@pytest.mark.slow  # on a cold cache
def test_an_open_model_may_answer_in_another_size(backend: str, gl_context: Any, tmp_path: Path) -> None:
    graph = pf.FunctionalGraph()
    image = graph.add_input("float32", (1, 3, "h", "w"), "image")
    pf.save(graph.compile(depth=F.mean(F.avg_pool2d(image, 2), 1)), tmp_path / "half.onnx")
    out = tmp_path / "out.png"
    argv = ["--headless", "--backend", backend, "--frames", "3", "--save", str(out)]
    assert load_demo("depth")([*argv, "--model", str(tmp_path / "half.onnx"), "--size", "128x72"]) == 0
    drawn = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert drawn[120:500].std() > 10
