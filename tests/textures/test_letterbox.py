"""Letterboxes, and the way back to the picture for what a network found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from textures.test_sampling import TRANSFORM, planes, sample

__all__ = ["sample"]  # a fixture

RANDOM = np.random.default_rng(31)
WIDE = RANDOM.integers(0, 256, (30, 80, 3), np.uint8)
GREY = 114 / 255
SIZE = (80, 30)


def by_pillow(picture: Any, size: tuple[int, int], at: tuple[int, int], whole: tuple[int, int]) -> Any:
    """A picture, shrunk and pasted over grey."""
    result = np.full((whole[1], whole[0], 3), GREY)
    channels = [Image.fromarray(picture[..., c].astype(np.float32) / 255) for c in range(3)]
    small = np.stack([np.asarray(c.resize(size, Image.Resampling.BILINEAR)) for c in channels], -1)
    result[at[1] : at[1] + size[1], at[0] : at[0] + size[0]] = small
    return result


@pytest.mark.parametrize("align", ["center", "top_left"])
@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("origin", ["top_left", "bottom_left"])
def test_a_picture_keeps_its_proportions(align: str, tall: bool, origin: str, sample: Any) -> None:
    picture = np.ascontiguousarray(WIDE.swapaxes(0, 1)) if tall else WIDE
    how = TRANSFORM.replace(letterbox=GREY, letterbox_align=align, resample="antialias", coord_origin=origin)
    given = picture if origin == "top_left" else picture[::-1].copy()
    values = sample(given, (1, 3, 20, 20), how.replace(mean=0.5, std=0.25))
    free = 6 if align == "center" else 0  # 80 x 30 becomes 20 x 8 (7.5 rounded up)
    at, size = ((free, 0), (8, 20)) if tall else ((0, free), (20, 8))
    np.testing.assert_allclose(values, (planes(by_pillow(picture, size, at, (20, 20))) - 0.5) * 4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_color_and_a_region(mode: str, sample: Any) -> None:
    how = TRANSFORM.replace(letterbox=(1, 0, 0.5), region=(10, 4, 12, 6), resample=mode)
    values = sample(WIDE, (12, 12, 3), how.replace(layout="NHWC", swizzle="bgr"))
    np.testing.assert_allclose(values[3:9], WIDE[4:10, 10:22, ::-1] / 255, atol=1e-6)
    np.testing.assert_allclose(values[:3], np.broadcast_to([0.5, 0, 1], (3, 12, 3)), atol=1e-6)
    np.testing.assert_allclose(values[9:], np.broadcast_to([0.5, 0, 1], (3, 12, 3)), atol=1e-6)


def test_the_way_back() -> None:
    """A mark in the picture is where its place in the tensor maps to, and the other way round."""
    picture = np.zeros((300, 800, 1), np.float32)
    picture[200:220, 500:540] = 1
    how = TRANSFORM.replace(letterbox=0.0, resample="area")
    values = pf.TextureConverter().to_tensor(picture, pf.Tensor.empty((1, 1, 200, 200)), how).download_to_array()[0, 0]
    rows, columns = np.nonzero(values > 0.5)
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    mapping = how.mapping((800, 300), (1, 1, 200, 200))
    assert mapping.box == (0, 62, 200, 75)
    np.testing.assert_allclose(mapping.boxes_to_picture(found), [500, 200, 540, 220], atol=4)
    np.testing.assert_allclose(mapping.boxes_to_tensor([500, 200, 540, 220]), [125, 112, 135, 117])
    points = RANDOM.uniform(-50, 900, (3, 4, 2))
    np.testing.assert_allclose(mapping.to_picture(mapping.to_tensor(points)), points, atol=1e-9)
    np.testing.assert_allclose(mapping.to_picture([0, 62]), [0, 0])


def test_mappings_of_regions_and_layouts() -> None:
    how = TRANSFORM.replace(region=(100, 50, 64, 32))
    mapping = how.replace(layout="NHWC").mapping((640, 480), pf.Tensor.empty((1, 16, 16, 3)))
    np.testing.assert_allclose(mapping.to_picture([[0, 0], [16, 16], [8, 8]]), [[100, 50], [164, 82], [132, 66]])
    assert mapping.scale == (4, 2)


def test_drawing_leaves_out_the_filled_rest(backend: str, gl_context: Any) -> None:
    """A mask that a network made of a letterboxed picture comes to lie over the picture."""
    how = TRANSFORM.replace(letterbox=0.3, swizzle="rgb", coord_origin="bottom_left")
    picture = np.zeros((30, 80, 4), np.uint8)
    picture[5:12, 20:60, :3] = 200
    texture = gl_context.texture((80, 30), 4, picture.tobytes())
    target, drawn = gl_context.texture((80, 30), 4), np.zeros((30, 80, 3), np.uint8)
    with pf.TextureConverter(gl_context, backend) as converter:
        x = converter.to_tensor(texture, pf.Tensor.empty((3, 80, 80)), how)
        converter.to_texture(x, target, how)
        converter.to_texture(x, drawn, how)
    seen = np.frombuffer(target.read(), np.uint8).reshape(30, 80, 4)
    np.testing.assert_array_equal(seen[..., :3], picture[..., :3])
    np.testing.assert_array_equal(drawn, picture[..., :3])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: TRANSFORM.replace(letterbox=(1, 2)), "one number for gray, or three"),
        (lambda: TRANSFORM.replace(letterbox="grey"), "must be finite"),
        (lambda: TRANSFORM.replace(letterbox=0, letterbox_align="left"), "letterbox_align is one of center, top_left"),
        (lambda: TRANSFORM.mapping((0, 4), (3, 4, 4)), "width and its height"),
        (lambda: TRANSFORM.mapping(SIZE, (4, 4)), "rank 3 or 4"),
        (lambda: TRANSFORM.mapping(SIZE, (1, 3, 0, 4)), "of known size"),
        (lambda: TRANSFORM.mapping(SIZE, (3, 4, 4)).to_picture([1, 2, 3]), "the last dim is 2"),
        (lambda: TRANSFORM.mapping(SIZE, (3, 4, 4)).boxes_to_picture([1, 2]), "the last dim is 4"),
        (lambda: TRANSFORM.mapping(SIZE, (3, 4, 4)).to_tensor([["a", "b"]]), "not numbers"),
    ],
)
def test_mistakes(wrong: Any, says: str) -> None:
    with pytest.raises(pf.InputError, match=says):
        wrong()
