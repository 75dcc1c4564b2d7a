"""Texture, detector, regions, crops, landmarks, filter, marks on a texture: a chain that never leaves the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.storage.storage import GLStorage
from perframe.tensor import frames
from perframe.textures.regions import Warp, apply

F = pf.functional
WIDTH, HEIGHT, SMALL, CROP = 320, 180, 90, 64
COLORS = np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]], np.float32)
BODY = np.array([[0.5, 0.85], [0.5, 0.3], [0.7, 0.5]])  # three dots, in the unit square of the region
HOW = pf.TextureTransform(letterbox=0.0)
FORWARD = 4.0  # the crop reaches this far beyond the two dots that the detector finds


def pose(step: int) -> Warp:
    """The region of a body that wanders and turns."""
    made = Warp.of((150 + 40 * np.sin(step / 5), 90 + 20 * np.cos(step / 4), 80.0, 80.0, 0.3 * np.sin(step / 6)))
    assert made is not None
    return made


def picture(step: int) -> tuple[Any, Any]:
    """A scene (HEIGHT, WIDTH, 3), and where the dots are."""
    truth = apply(pose(step).matrix, BODY)
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    drawn = np.full((HEIGHT, WIDTH, 3), 0.5)
    for (across, down), color in zip(truth, COLORS, strict=True):
        cover = np.clip(7 - np.hypot(x - across, y - down), 0, 1)[..., None]
        drawn = drawn * (1 - cover) + color * cover
    return np.rint(drawn * 255).astype(np.uint8), truth


def dots(seen: pf.FunctionalTensor, size: tuple[int, int]) -> pf.FunctionalTensor:
    """(n, 3, h, w) → (n, 3, 2): the middle of what has each color, in elements."""
    height, width = size
    apart = F.sum((seen.unsqueeze(1) - COLORS[None, :, :, None, None]) ** 2, 2)
    cover = F.clamp(0.25 - apart, 0, 1)
    y, x = (np.mgrid[:height, :width] + 0.5).astype(np.float32)
    area = F.sum(cover, (2, 3)) + 1e-6
    return F.stack([F.sum(cover * x, (2, 3)) / area, F.sum(cover * y, (2, 3)) / area], 2)


def detector() -> pf.Model:
    graph = pf.FunctionalGraph("detector")
    seen = graph.add_input("float32", (1, 3, SMALL, 160), "seen")
    points = dots(seen, (SMALL, 160)) * (WIDTH / 160)
    regions = pf.vision.regions_of_points(points, 0, 1, target_angle=-np.pi / 2, scale=FORWARD)
    return graph.compile(regions=regions)


def landmarks() -> pf.Model:
    graph = pf.FunctionalGraph("landmarks")
    crop, regions = (
        graph.add_input("float32", (1, 3, CROP, CROP), "crop"),
        graph.add_input("float32", (1, 5), "regions"),
    )
    state, seconds = graph.add_input("float32", (3, 1, 3, 2), "state"), graph.add_input("float32", (1,), "seconds")
    points = pf.vision.points_of_regions(dots(crop, (CROP, CROP)), regions, CROP)
    smooth, following = pf.vision.one_euro(points, state, seconds, min_cutoff=30.0, beta=1.0)
    return graph.compile(points=points, smooth=smooth, following=following)


class Chain:
    """One frame after the other, on a backend. Pictures are textures on a GPU, and arrays on the CPU."""

    def __init__(self, backend: Any, ctx: Any) -> None:
        self.ctx = ctx
        self.converter = pf.TextureConverter(ctx, backend)
        self.detector = pf.Worker(detector(), backend, ctx, strict=True)
        self.landmarks = pf.Worker(landmarks(), backend, ctx, strict=True, carry={"following": "state"})
        self.seen, self.crop = pf.Tensor.empty((1, 3, SMALL, 160)), pf.Tensor.empty((1, 3, CROP, CROP))
        self.seconds = pf.Tensor(np.array([1 / 30], np.float32))

    def frame(self, given: Any) -> pf.Tensor:
        self.converter.to_tensor(given, self.seen, HOW)
        regions = self.detector.schedule(self.seen).peek_output("regions")
        self.converter.crop(given, regions, self.crop)
        self.landmarks.schedule({"crop": self.crop, "regions": regions, "seconds": self.seconds})
        return self.landmarks.peek_output("smooth")

    def release(self) -> None:
        for thing in (self.converter, self.detector, self.landmarks):
            thing.release()


def on_arrays(steps: int) -> list[Any]:
    """The results of the chain on the CPU, from arrays."""
    chain = Chain("cpu", None)
    found = [chain.frame(picture(step)[0]).numpy()[0] for step in range(steps)]
    chain.release()
    return found


def test_arrays_give_the_truth() -> None:
    for step, found in enumerate(on_arrays(12)):
        assert np.abs(found - picture(step)[1]).max() < 1.0, "pixels"


@pytest.mark.quick(cases=0)
@pytest.mark.parametrize("gl_backend", ["gpu_compute", "gpu_pixel"])
def test_a_chain_stays_on_the_device(gl_backend: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 0.05 pixels of arrays, and nothing waits, is read back or allocated after the second frame."""
    if gl_backend == "gpu_compute" and gl_context.version_code < 430:
        pytest.skip("compute shaders need GL 4.3")
    wanted, steps = on_arrays(8), 8
    chain = Chain(gl_backend, gl_context)
    texture, target = gl_context.texture((WIDTH, HEIGHT), 3), gl_context.texture((WIDTH, HEIGHT), 4)
    overlay = pf.vision.Overlay(gl_context, target=target)
    moved: list[str] = []
    for step in range(steps):
        shown, truth = picture(step)
        texture.write(shown.tobytes())
        target.write(np.zeros((HEIGHT, WIDTH, 4), np.uint8).tobytes())
        with monkeypatch.context() as patch:
            if step >= 2:
                patch.setattr(type(frames.current_frame()), "blocking", lambda self, what, *rest: moved.append(what))
                kind = type(chain.seen.data_on_backend)
                assert issubclass(kind, GLStorage)
                for name in ("download", "request"):
                    patch.setattr(kind, name, lambda *_, name=name: moved.append(name))
            found = chain.frame(texture)
            overlay.points(found, color=(1.0, 1.0, 1.0, 1.0), radius=3.0)
        assert not moved and found.backend_type == gl_backend
        assert np.abs(found.numpy()[0] - wanted[step]).max() < 0.05
        marks = np.frombuffer(target.read(), np.uint8).reshape(HEIGHT, WIDTH, 4)[..., 3]
        for across, down in truth:
            assert marks[int(down), int(across)] > 200, "a mark lies over each dot"
        assert (marks > 0).mean() < 0.02
    overlay.release()
    chain.release()
    texture.release()
    target.release()
