"""Regions that are not upright: crops by a rotated rectangle and by a matrix, both ways, against places by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError
from textures.test_drawing import draw as draw
from textures.test_sampling import bilinear, planes
from textures.test_sampling import sample as sample

RANDOM = np.random.default_rng(21)
PICTURE = RANDOM.uniform(0, 1, (23, 19, 3)).astype(np.float32)
BYTES = RANDOM.integers(0, 256, (23, 19, 4), np.uint8)
TURNED = (9.5, 11.0, 10.0, 14.0, 0.7)
AFFINE = [[9.0, -4.0, 5.0], [3.0, 11.0, 2.0]]
PERSPECTIVE = [[9.0, -4.0, 5.0], [3.0, 11.0, 2.0], [0.3, -0.2, 1.0]]
MIRRORED = [[-9.0, 0.0, 14.0], [0.0, 12.0, 3.0]]
BEYOND = (2.0, 3.0, 30.0, 20.0, -2.5)
Array = Any


def matrix_of(region: Any) -> Array:
    """The matrix from the unit square to pixels, from the definitions."""
    given = np.asarray(region, float)
    if given.ndim == 2:
        return given if len(given) == 3 else np.vstack([given, [0, 0, 1]])
    x, y, width, height, angle = given
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    sides = turn @ np.diag([width, height])
    return np.block([[sides, (np.array([[x], [y]]) - sides @ [[0.5], [0.5]])], [np.array([[0, 0, 1]])]])


def places(region: Any, size: tuple[int, int]) -> Array:
    """The pixel place of each element: height x width x 2."""
    width, height = size
    us, vs = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    moved = np.stack([us, vs, np.ones_like(us)], -1) @ matrix_of(region).T
    return moved[..., :2] / moved[..., 2:]


def by_hand(picture: Array, region: Any, size: tuple[int, int]) -> Array:
    where = places(region, size)
    return np.array([[bilinear(picture, *place) for place in row] for row in where])


@pytest.mark.parametrize("region", [TURNED, AFFINE, PERSPECTIVE, MIRRORED, BEYOND], ids=str)
@pytest.mark.parametrize("origin", ["top_left", "bottom_left"])
def test_crops(sample: Any, region: Any, origin: str) -> None:
    how = pf.TextureTransform(region=region, coord_origin=origin)
    given = np.ascontiguousarray(PICTURE[::-1]) if origin == "bottom_left" else PICTURE
    expected = planes(by_hand(PICTURE, region, (7, 11)))
    np.testing.assert_allclose(sample(given, (1, 3, 11, 7), how), expected, atol=2e-5)


def test_a_crop_of_bytes_with_mean_and_std(sample: Any) -> None:
    how = pf.TextureTransform(region=TURNED, mean=0.5, std=0.25, swizzle="bgr")
    expected = (planes(by_hand(BYTES, TURNED, (6, 5)))[:, 2::-1] / 255 - 0.5) / 0.25
    np.testing.assert_allclose(sample(BYTES, (1, 3, 5, 6), how), expected, atol=1e-4)


def test_the_nearest_pixel_of_a_crop(sample: Any) -> None:
    region = (9.41, 11.03, 10.0, 14.0, 0.7)
    how = pf.TextureTransform(region=region, resample="nearest")
    where = places(region, (7, 11))
    assert (np.abs(where - np.rint(where)) > 1e-3).all()  # no place on an edge, where rounding would decide
    ys, xs = (np.clip(np.floor(where[..., k]).astype(int), 0, PICTURE.shape[1 - k] - 1) for k in (1, 0))
    np.testing.assert_array_equal(sample(PICTURE, (1, 3, 11, 7), how), planes(PICTURE[ys, xs]))


def test_a_letterbox_keeps_the_proportions_of_a_rotated_region(sample: Any) -> None:
    made = sample(PICTURE, (1, 3, 14, 20), pf.TextureTransform(region=TURNED, letterbox=0.25))
    assert (made[..., :5] == 0.25).all() and (made[..., 15:] == 0.25).all()
    np.testing.assert_allclose(made[..., 5:15], planes(by_hand(PICTURE, TURNED, (10, 14))), atol=2e-5)


def test_a_crop_on_two_levels_of_a_mipmap_agrees_with_the_array(gl_context: Any) -> None:
    picture = RANDOM.uniform(0, 1, (64, 64, 4)).astype(np.float32)
    how = pf.TextureTransform(region=(32, 30, 50, 40, 0.4), resample="mipmap")
    texture = gl_context.texture((64, 64), 4, picture.tobytes(), dtype="f4")
    texture.build_mipmaps()
    with pf.TextureConverter(gl_context) as converter:
        made = converter.to_tensor(texture, pf.Tensor.empty((1, 4, 8, 9)), how).download_to_array()
        expected = converter.to_tensor(picture, pf.Tensor.empty((1, 4, 8, 9)), how).download_to_array()
    np.testing.assert_allclose(made, expected, atol=0.02)  # drivers filter mipmaps in their own ways


@pytest.mark.parametrize("region", [TURNED, AFFINE, PERSPECTIVE, MIRRORED, BEYOND], ids=str)
@pytest.mark.parametrize("resample", ["linear", "nearest"])
@pytest.mark.parametrize("origin", ["top_left", "bottom_left"])
def test_drawing_into_a_region(draw: Any, region: Any, resample: str, origin: str) -> None:
    values, before = RANDOM.uniform(0, 1, (6, 8, 4)).astype(np.float32), PICTURE[:20, :, :1].repeat(4, -1)
    how = pf.TextureTransform(region=region, resample=resample, coord_origin=origin)
    made = draw(planes(values), before, how)
    upright = made[::-1] if origin == "bottom_left" else made
    expected = (before[::-1] if origin == "bottom_left" else before).copy()
    sure = np.ones(expected.shape[:2], bool)  # pixels whose centers lie on no edge
    inverse = np.linalg.inv(matrix_of(region))
    for y in range(expected.shape[0]):
        for x in range(expected.shape[1]):
            u, v, w = inverse @ [x + 0.5, y + 0.5, 1]
            column, row = u / w * 8, v / w * 6
            at = np.array([column, row])
            edges = np.rint(at) if resample == "nearest" else np.array([round(column / 8) * 8, round(row / 6) * 6])
            sure[y, x] = (np.abs(at - edges) > 1e-3).all()
            if w > 0 and 0 <= column < 8 and 0 <= row < 6:
                nearest = values[int(row), int(column)]
                expected[y, x] = bilinear(values, column, row) if resample == "linear" else nearest
    assert sure.mean() > 0.8
    np.testing.assert_allclose(upright[sure], expected[sure], atol=2e-5)


@pytest.mark.parametrize("region", [TURNED, AFFINE, PERSPECTIVE, MIRRORED], ids=str)
def test_points_go_both_ways(region: Any) -> None:
    placed = pf.TextureTransform(region=region).mapping((19, 23), (1, 3, 11, 7))
    where = places(region, (7, 11))
    centers = np.stack(np.meshgrid(np.arange(7) + 0.5, np.arange(11) + 0.5), -1)
    np.testing.assert_allclose(placed.to_picture(centers), where)
    np.testing.assert_allclose(placed.to_tensor(where), centers)
    box = np.array([1.0, 2.0, 5.0, 9.0])
    around = placed.boxes_to_picture(box)
    corners = placed.to_picture(box[[[0, 1], [2, 1], [0, 3], [2, 3]]])
    np.testing.assert_allclose(around, [*corners.min(0), *corners.max(0)])
    assert placed.boxes_to_tensor(np.zeros((0, 4))).shape == (0, 4)


def test_a_rotated_rectangle_without_an_angle_is_upright() -> None:
    how = pf.TextureTransform(region=(9.5, 11, 10, 14, 0))
    assert how == pf.TextureTransform(region=(4.5, 4, 10, 14)) and how.replace(mean=1).region == (4.5, 4, 10, 14)
    assert pf.TextureTransform(region=PERSPECTIVE).replace(mean=1).region == tuple(np.ravel(PERSPECTIVE))


def test_a_new_tensor_has_the_size_of_the_region() -> None:
    with pf.TextureConverter() as converter:
        assert converter.to_tensor(PICTURE, transform=pf.TextureTransform(region=TURNED)).shape == (1, 3, 14, 10)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"region": (1, 2, 3)}, "region is x, y, width and height"),
        ({"region": np.eye(2)}, "region is x, y, width and height"),
        ({"region": (1, 2, 0, 4, 0.5)}, "must have a size"),
        ({"region": [[1, 2, 0], [2, 4, 0]]}, "makes a line or a point"),
        ({"region": [[9, 0, 0], [0, 9, 0], [-2, 0, 1]]}, "behind the picture"),
        ({"region": (1, 2, math.nan, 4, 0.5)}, "finite"),
        ({"region": TURNED, "resample": "area"}, "upright regions"),
        ({"region": PERSPECTIVE, "letterbox": 0}, "no proportions"),
    ],
)
def test_what_is_no_region(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        pf.TextureTransform(**wrong)
