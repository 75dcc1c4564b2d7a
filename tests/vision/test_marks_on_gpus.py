"""Marks from tensors on a GPU, over all targets, and what cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.storage.storage import GLStorage
from perframe.errors import ClosedError, InputError
from perframe.tensor import frames
from support import GL_BACKENDS
from vision.rasterized import (
    BOXES,
    HEIGHT,
    HOWS,
    MATRICES,
    PAIRS,
    PAPER,
    POINTS,
    RANDOM,
    RED,
    REGIONS,
    WIDTH,
    Target,
    corners_of,
    inked,
    outline,
    same,
)


def draw_all(overlay: pf.vision.Overlay, of: Callable[[Any], Any]) -> None:
    """All kinds of marks, with numbers as `of` makes them."""
    overlay.masks(of(RANDOM_MASK), scores=of(np.ones(2, np.float32)))
    overlay.boxes(of(BOXES), color=of(np.array([3, 8], np.int32)))
    overlay.boxes(of(MATRICES), color=of(np.array([[1, 0, 0], [0, 0, 1]], np.float32)))
    overlay.lines(of(POINTS), PAIRS, scores=of(np.array([0.9, 0.1], np.float32)))
    overlay.points(of(POINTS))
    overlay.texts(["one", "2"], of(REGIONS), height=11)


RANDOM_MASK = RANDOM.uniform(0, 1, (2, 6, 9)).astype(np.float32)


@pytest.mark.parametrize("where", GL_BACKENDS)
def test_tensors_on_a_gpu_give_the_picture_of_arrays_without_a_readback(
    where: Any, gl_context: Any, overlay: pf.vision.Overlay, target: Target, monkeypatch: Any
) -> None:
    draw_all(overlay, np.asarray)
    wanted = target.read()
    target.texture.write(PAPER[::-1].tobytes())
    given = list[pf.Tensor]()

    def on_gpu(array: Any) -> pf.Tensor:
        given.append(pf.Tensor(array).to(where, gl_context))
        return given[-1]

    reads = list[str]()
    monkeypatch.setattr(type(frames.current_frame()), "blocking", lambda self, what, *rest: reads.append(what))
    monkeypatch.setattr(GLStorage, "download", lambda self, *rest: reads.append("download"))
    for kind in GLStorage.__subclasses__():
        monkeypatch.setattr(kind, "request", lambda self, *rest: reads.append("request"))
    draw_all(overlay, on_gpu)
    monkeypatch.undo()
    np.testing.assert_array_equal(target.read(), wanted)
    assert not reads and {tensor.backend_type for tensor in given} == {where}


@pytest.mark.parametrize("where", GL_BACKENDS)
def test_the_output_of_a_worker(where: Any, gl_context: Any, overlay: pf.vision.Overlay, target: Target) -> None:
    """Its values lie in float16 storage."""
    graph = pf.FunctionalGraph()
    boxes = graph.add_input("float32", ("n", 4), "boxes")
    with pf.Worker(graph.compile(moved=boxes + 2), where, gl_context, activations="float16") as worker:
        whole = np.array([[3, 4, 30, 20]], np.float32)
        for moved in (0, 8):
            target.texture.write(PAPER[::-1].tobytes())
            overlay.boxes(worker.schedule(whole + moved).peek_output(), color=RED)
            same(target.read(), inked(PAPER, RED, outline(corners_of(whole[0] + moved + 2)) - 1))


def test_a_tensor_on_the_cpu(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.boxes(pf.Tensor(BOXES[:1]), color=RED)
    same(target.read(), inked(PAPER, RED, outline(corners_of(BOXES[0])) - 1))


def test_targets(gl_context: Any, target: Target) -> None:
    """A framebuffer within its viewport, the bound one, a texture that GL draws into, and a picture."""
    wanted = inked(PAPER, RED, outline(corners_of(BOXES[0])) - 1)
    drawn, picture = Target(gl_context), gl_context.texture((WIDTH, HEIGHT), 4, PAPER.tobytes())
    with pf.vision.Overlay(gl_context, target=drawn.texture) as overlay:
        overlay.boxes(BOXES[:1], color=RED)
        same(drawn.read(), wanted)
        overlay.target = picture
        overlay.boxes(BOXES[:1], color=RED)
        same(np.frombuffer(picture.read(), np.uint8).reshape(HEIGHT, WIDTH, 4), wanted)
        overlay.target = None
        target.framebuffer.use()
        overlay.boxes(BOXES[:1], color=RED)
        same(target.read(), wanted)
    small = Target(gl_context)
    small.framebuffer.viewport = (10, 5, 40, 30)
    with pf.vision.Overlay(gl_context, size=(80, 60), target=small.framebuffer) as overlay:
        overlay.boxes([[20, 10, 40, 30]], color=RED)
    same(small.read(), inked(PAPER, RED, outline(corners_of([20, 13, 30, 23])) - 1))


def test_a_frame_makes_no_gl_object(gl_context: Any, overlay: pf.vision.Overlay) -> None:
    """Whatever the number of marks, up to the largest so far."""

    def frame(count: int) -> None:
        overlay.boxes(RANDOM.uniform(0, 40, (count, 4)), scores=RANDOM.uniform(0, 1, count))
        overlay.texts([f"{k}" for k in range(count)], RANDOM.uniform(0, 40, (count, 4)))
        overlay.lines(RANDOM.uniform(0, 40, (count, 5, 2)), PAIRS[:2])

    frame(40)
    device = device_for(gl_context)
    before = device.allocations, device.programs.count
    for count in (40, 3, 0, 17, 39):
        frame(count)
    assert (device.allocations, device.programs.count) == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o: o.boxes(BOXES[0]), r"boxes are \(n, 4\): left"),
        (lambda o: o.boxes(np.zeros((2, 6))), r"not \(2, 6\)"),
        (lambda o: o.boxes("all"), "boxes are numbers"),
        (lambda o: o.boxes(BOXES, width=0), "width is a number of pixels"),
        (lambda o: o.boxes(BOXES, scores=[1, 2, 3]), "scores are 2 numbers"),
        (lambda o: o.boxes(BOXES, threshold=np.nan), "threshold is a number"),
        (lambda o: o.boxes(BOXES, color=(1, 0)), "a color is three or four"),
        (lambda o: o.boxes(BOXES, color=np.zeros((3, 3))), r"color is a tuple, or \(2,\)"),
        (lambda o: o.points(POINTS, radius=np.inf), "radius is a number of pixels"),
        (lambda o: o.points(POINTS[..., :1]), "points are"),
        (lambda o: o.lines(POINTS, [(0, 3)]), "indices of points from 0 to 2, not 0 to 3"),
        (lambda o: o.lines(POINTS, [0, 1, 2]), "pairs are"),
        (lambda o: o.masks(np.zeros(4)), "masks are h x w"),
        (lambda o: o.masks(np.zeros((4, 4)), edge=np.nan), "finite numbers"),
        (
            lambda o: o.masks(np.zeros((4, 4)), mapping=HOWS["region"].mapping((61, 43), (3, 8, 8))),
            "use that of the masks' size",
        ),
        (lambda o: o.texts(["a"], BOXES), "texts are 2 texts"),
        (lambda o: o.texts("ab", BOXES), "texts are 2 texts"),
        (lambda o: (setattr(o, "size", (0, 5)), o.boxes(BOXES)), "size is a width and a height"),
        (lambda o: (setattr(o, "target", "screen"), o.boxes(BOXES)), "a texture is a moderngl.Texture"),
    ],
)
def test_what_cannot_be_drawn(overlay: pf.vision.Overlay, target: Target, call: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call(overlay)
    np.testing.assert_array_equal(target.read(), PAPER)


def test_tensors_of_two_backends(gl_context: Any, overlay: pf.vision.Overlay) -> None:
    if len(GL_BACKENDS) < 2:
        pytest.skip("one GL backend is here")
    first, second = (
        pf.Tensor(BOXES).to(GL_BACKENDS[0], gl_context),
        pf.Tensor([1.0, 1.0]).to(GL_BACKENDS[1], gl_context),
    )
    with pytest.raises(InputError, match="lie on gpu_compute and gpu_pixel"):
        overlay.boxes(first, scores=second)


def test_a_tensor_that_was_released(gl_context: Any, overlay: pf.vision.Overlay) -> None:
    tensor = pf.Tensor(BOXES).to(GL_BACKENDS[-1], gl_context)
    tensor.data_on_backend.release()
    with pytest.raises(ClosedError):
        overlay.boxes(tensor)


def test_after_release(overlay: pf.vision.Overlay) -> None:
    overlay.boxes(BOXES)
    overlay.release()
    with pytest.raises(ClosedError, match="this Overlay was released"):
        overlay.boxes(BOXES)
