"""Marks over pictures: their pixels are those of a rasterization with NumPy, from arrays and from tensors on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.storage.storage import GLStorage
from perframe.errors import ClosedError, InputError
from perframe.tensor import frames
from support import GL_BACKENDS

WIDTH, HEIGHT = 61, 43
RANDOM = np.random.default_rng(12)
PAPER = RANDOM.integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
YS, XS = np.mgrid[:HEIGHT, :WIDTH] + 0.5
RED, GLASS = (1.0, 0.25, 0.0), (0.0, 0.5, 1.0, 0.6)


class Target:
    """A framebuffer with a picture in it, upright."""

    def __init__(self, ctx: Any, paper: Any = PAPER) -> None:
        self.texture = ctx.texture(paper.shape[1::-1], 4, paper[::-1].tobytes())
        self.framebuffer, self.size = ctx.framebuffer([self.texture]), paper.shape[1::-1]

    def read(self) -> Any:
        pixels = np.frombuffer(self.framebuffer.read(components=4, alignment=1), np.uint8)
        return pixels.reshape(self.size[1], self.size[0], 4)[::-1]


@pytest.fixture
def target(gl_context: Any) -> Target:
    return Target(gl_context)


@pytest.fixture
def overlay(gl_context: Any, target: Target) -> Iterator[pf.vision.Overlay]:
    with pf.vision.Overlay(gl_context, target=target.framebuffer) as made:
        yield made


def inked(paper: Any, color: Any, outside: Any) -> Any:
    """A picture with one mark over it; `outside` is how far each pixel lies outside of it."""
    return mixed(paper, color, np.clip(0.5 - outside, 0, 1))


def mixed(paper: Any, color: Any, coverage: Any) -> Any:
    r, g, b, a = (*color, 1.0)[:4]
    alpha = (a * coverage)[..., None]
    return np.rint(paper * (1 - alpha) + np.array([r, g, b, 1.0]) * 255 * alpha).astype(np.uint8)


def to_segment(a: Any, b: Any) -> Any:
    along, from_x, from_y = np.subtract(b, a), XS - a[0], YS - a[1]
    share = np.clip((from_x * along[0] + from_y * along[1]) / max(along @ along, 1e-12), 0, 1)
    return np.hypot(from_x - share * along[0], from_y - share * along[1])


def outline(corners: Any) -> Any:
    return np.min([to_segment(corners[k - 1], corners[k]) for k in range(len(corners))], axis=0)


def corners_of(region: Any) -> Any:
    region = np.asarray(region, float)
    if region.shape == (4,):
        left, top, right, bottom = region
        return np.array([(left, top), (right, top), (right, bottom), (left, bottom)])
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    if region.shape == (2, 3):
        return square @ region[:, :2].T + region[:, 2]
    cos, sin = np.cos(region[4]), np.sin(region[4])
    return ((square - 0.5) * region[2:4]) @ np.array([[cos, sin], [-sin, cos]]) + region[:2]


def hue(index: int) -> tuple[float, ...]:
    """The color of an id."""
    at = (index % 1024 * 0.618034 + 0.4) % 1 * 6
    return tuple(float(0.25 + 0.75 * np.clip(abs((at + turn) % 6 - 3) - 1, 0, 1)) for turn in (0, 4, 2))


def same(made: Any, wanted: Any, most: int = 2) -> None:
    np.testing.assert_allclose(made.astype(int), wanted.astype(int), atol=most)
    assert np.abs(wanted.astype(int) - PAPER).max() > 20  # something was drawn


BOXES = np.array([[5.3, 4.1, 30.2, 20], [20, 10, 70, 41.5]], np.float32)
REGIONS = np.array([[30, 20, 24, 11, 0.6], [12, 25, 30, 8, -1.2]], np.float32)
MATRICES = np.array([[[20, 4, 10], [3, 18, 8]], [[-12, 6, 40], [8, 20, 9]]], np.float32)
POINTS = np.array([[[9, 8, 0.5], [31.2, 12.7, 0], [52, 35, 1]], [[20, 30, 0], [4, 38.5, 0], [60, 2, 9]]], np.float32)
PAIRS = [(0, 1), (2, 1), (0, 0)]


@pytest.mark.parametrize("regions", [BOXES, REGIONS, MATRICES], ids=["boxes", "rotated", "affine"])
def test_boxes(overlay: pf.vision.Overlay, target: Target, regions: Any) -> None:
    overlay.boxes(regions, color=GLASS, width=3)
    wanted = PAPER
    for region in regions:
        wanted = inked(wanted, GLASS, outline(corners_of(region)) - 1.5)
    same(target.read(), wanted, 3)


def test_points(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.points(POINTS, color=RED, radius=2.5)
    wanted = PAPER
    for x, y, _ in POINTS.reshape(-1, 3):
        wanted = inked(wanted, RED, np.hypot(XS - x, YS - y) - 2.5)
    same(target.read(), wanted)


def test_lines(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.lines(POINTS, PAIRS, color=GLASS, width=2)
    wanted = PAPER
    for group in POINTS:
        for a, b in PAIRS:
            wanted = inked(wanted, GLASS, to_segment(group[a, :2], group[b, :2]) - 1)
    same(target.read(), wanted, 3)


def sampled(mask: Any, xs: Any, ys: Any) -> Any:
    """A mask between its elements, clamped at its edge."""
    x, y = np.floor(xs - 0.5), np.floor(ys - 0.5)
    across, down = xs - 0.5 - x, ys - 0.5 - y

    def at(row: Any, column: Any) -> Any:
        height, width = mask.shape
        return mask[np.clip(row, 0, height - 1).astype(int), np.clip(column, 0, width - 1).astype(int)].astype(float)

    top = at(y, x) * (1 - across) + at(y, x + 1) * across
    return top * (1 - down) + (at(y + 1, x) * (1 - across) + at(y + 1, x + 1) * across) * down


def test_masks_tint_in_proportion(overlay: pf.vision.Overlay, target: Target) -> None:
    masks = RANDOM.uniform(-0.2, 1.2, (2, 5, 7)).astype(np.float32)
    overlay.masks(masks, color=(0.0, 1.0, 0.5, 0.8), opacity=0.5)
    wanted = PAPER
    for mask in masks:
        coverage = np.clip(sampled(mask, XS * 7 / WIDTH, YS * 5 / HEIGHT), 0, 1)
        wanted = mixed(wanted, (0.0, 1.0, 0.5, 0.4), coverage)
    same(target.read(), wanted)


def test_a_sharp_mask_covers_what_is_above_its_edge(overlay: pf.vision.Overlay, target: Target) -> None:
    mask = np.hypot(*(np.mgrid[:20, :30] - np.array([10, 15])[:, None, None])).astype(np.float32)
    overlay.masks(-mask, color=RED, opacity=1.0, edge=-7.0)
    value = sampled(-mask, XS * 30 / WIDTH, YS * 20 / HEIGHT)
    made = target.read()
    assert (made[value > -6.5] == np.rint([255, 63.75, 0, 255])).all()
    np.testing.assert_array_equal(made[value < -7.5], PAPER[value < -7.5])
    assert (value > -6.5).sum() > 300


def test_a_box_over_the_letters_of_a_text(overlay: pf.vision.Overlay, target: Target) -> None:
    """A plate of whole pixels in the row's color, with black or white letters, above the box or within the target."""
    rows = np.array([[10.2, 28.4, 40, 40], [-9, 3, 20, 12]], np.float32)
    overlay.texts(["ab", ""], rows, color=np.array([[1.0, 1.0, 0.0], [0, 0, 1]]), height=16)
    made = target.read().astype(int)
    changed = np.argwhere((made != PAPER).any(2))
    assert tuple(changed.min(0)) == (12, 10) and changed.max(0)[0] == 27
    plate = made[12:28, 10 : changed.max(0)[1] + 1]
    assert (plate[..., 2] == 0).all() and (plate[..., 0] == plate[..., 1]).all()  # from yellow to black
    assert plate[..., 0].min() < 40 and (plate[..., 0] == 255).mean() > 0.4
    overlay.texts(["", "i"], rows, color=(0.0, 0.0, 0.4))
    made = target.read().astype(int)
    assert tuple(made[3, 0]) == (0, 0, 102, 255) and made[3:19, :20, 0].max() > 200  # white letters, within the target


def test_letters_that_are_not_there(overlay: pf.vision.Overlay, target: Target) -> None:
    pictures = []
    for text in ("a\u00e4\u2603\n", "aa??"):
        target.texture.write(PAPER[::-1].tobytes())
        overlay.texts([text], [(3.0, 25.0)], color=RED)
        pictures.append(target.read())
    np.testing.assert_array_equal(*pictures)


@pytest.mark.parametrize("kind", ["default", "tuple", "colors", "colors and alpha", "ids"])
def test_colors(overlay: pf.vision.Overlay, target: Target, kind: str) -> None:
    given: Any = {
        "default": None,
        "tuple": RED,
        "colors": np.array([[0.1, 0.2, 0.9], [1, 1, 0]]),
        "colors and alpha": np.array([[0.1, 0.2, 0.9, 0.3], [1, 1, 0, 0.5]]),
        "ids": np.array([7, 5 + 1024 * 50_000_001]),
    }[kind]
    overlay.points(POINTS, color=given, radius=4)
    wanted = PAPER
    for row, group in enumerate(POINTS):
        shades = {"default": hue(row), "tuple": RED, "ids": hue((7, 5)[row])}
        for x, y, _ in group:
            shade = shades[kind] if kind in shades else given[row]
            wanted = inked(wanted, shade, np.hypot(XS - x, YS - y) - 4)
    same(target.read(), wanted)


def test_rows_without_a_score_are_hidden(overlay: pf.vision.Overlay, target: Target) -> None:
    bad = np.concatenate([BOXES, [[np.nan, 0, 9, 9], [0, 0, np.inf, 9], [1, 1, 50, 30]]]).astype(np.float32)
    overlay.boxes(bad, color=RED, scores=[0.9, 0.4, 0.9, 0.9, np.nan])
    same(target.read(), inked(PAPER, RED, outline(corners_of(BOXES[0])) - 1))


def test_a_score_is_for_a_group_or_for_a_point(overlay: pf.vision.Overlay, target: Target) -> None:
    overlay.points(POINTS, color=RED, scores=[0.2, 0.9])
    overlay.lines(POINTS, PAIRS, color=GLASS, scores=[[1, 1, 0.1], [0, 1, 1]], threshold=0.3)
    wanted = PAPER
    for x, y, _ in POINTS[1]:
        wanted = inked(wanted, RED, np.hypot(XS - x, YS - y) - 3)
    for group, (a, b) in ((0, (0, 1)), (0, (0, 0)), (1, (2, 1))):
        wanted = inked(wanted, GLASS, to_segment(POINTS[group, a, :2], POINTS[group, b, :2]) - 1)
    same(target.read(), wanted, 3)


HOWS = {
    "letterbox": pf.TextureTransform(letterbox=0.5),
    "region": pf.TextureTransform(region=(5, 3, 50, 30)),
    "rotated": pf.TextureTransform(region=(30, 20, 40, 24, 0.4)),
    "perspective": pf.TextureTransform(region=[[40, 8, 8], [6, 30, 5], [0.3, 0.2, 1]]),
}


@pytest.mark.parametrize("how", HOWS.values(), ids=list(HOWS))
def test_coordinates_of_a_networks_input(overlay: pf.vision.Overlay, target: Target, how: pf.TextureTransform) -> None:
    mapping = how.mapping((WIDTH * 2, HEIGHT * 2) if how.letterbox else (WIDTH, HEIGHT), (1, 3, 32, 48))
    scale = 0.5 if how.letterbox else 1.0
    overlay.size = (round(WIDTH / scale), round(HEIGHT / scale))
    boxes = np.array([[4, 9, 30, 20], [20, 10, 40, 28]], np.float32)
    overlay.boxes(boxes, color=RED, width=2, mapping=mapping)
    wanted = PAPER
    for box in boxes:
        wanted = inked(wanted, RED, outline(mapping.to_picture(corners_of(box)) * scale) - 1)
    same(target.read(), wanted, 4)


@pytest.mark.parametrize("how", HOWS.values(), ids=list(HOWS))
def test_a_mask_of_a_networks_input(overlay: pf.vision.Overlay, target: Target, how: pf.TextureTransform) -> None:
    mapping = how.mapping((WIDTH, HEIGHT), (1, 1, 16, 24))
    mask = RANDOM.uniform(0, 1, (1, 1, 16, 24)).astype(np.float32)
    overlay.masks(mask, color=RED, mapping=mapping)
    places = mapping.to_tensor(np.stack([XS, YS], -1))
    left, top, width, height = mapping.box
    inside = (places >= (left, top)).all(-1) & (places < (left + width, top + height)).all(-1)
    part = mask[0, 0, top : top + height, left : left + width]
    value = np.where(inside, sampled(part, places[..., 0] - left, places[..., 1] - top), 0)
    wanted = mixed(PAPER, (*RED, 0.5), value)
    near = np.abs(target.read().astype(int) - wanted).max(-1) <= 3
    assert near.mean() > 0.995 and inside.sum() > 300  # a pixel on the region's edge may go either way


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
        (lambda o: (setattr(o, "size", (0, 5)), o.boxes(BOXES)), "size is the picture's"),
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
