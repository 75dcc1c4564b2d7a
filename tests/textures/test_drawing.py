"""Tensor to texture and to the screen: against expectations that are worked out here, into textures and into arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from textures.test_sampling import bilinear

RANDOM = np.random.default_rng(12)
VALUES = RANDOM.uniform(0, 1, (9, 14, 4)).astype(np.float32)
BEFORE = RANDOM.uniform(0, 1, (9, 14, 4)).astype(np.float32)
TRANSFORM = pf.TextureTransform()
Array = Any


def placed(values: Array, backend: str, ctx: Any) -> pf.Tensor:
    """A tensor of these values on a backend."""
    if backend == "cpu":
        return pf.Tensor(values)
    tensor = pf.Tensor.empty(values.shape)
    texture = ctx.texture((1, 1), 4)
    with pf.TextureConverter(ctx, backend) as converter:
        converter.to_tensor(texture, tensor, TRANSFORM if values.shape[-3] <= 4 else TRANSFORM.replace(layout="NHWC"))
    tensor.upload(values)
    assert tensor.backend_type == backend
    return tensor


@pytest.fixture(params=["texture", "array"])
def draw(request: pytest.FixtureRequest, backend: str, gl_context: Any) -> Callable[..., Array]:
    """`draw(values, before, transform)`: a picture after a tensor was drawn into it."""

    def draw(values: Array, before: Array, how: pf.TextureTransform = TRANSFORM) -> Array:
        tensor = placed(values, backend, gl_context)
        with pf.TextureConverter(gl_context) as converter:
            if request.param == "array":
                picture = before.copy()
                converter.to_texture(tensor, picture, how)
                return picture
            dtype = "f1" if before.dtype == np.uint8 else "f4"
            texture = gl_context.texture(before.shape[1::-1], before.shape[2], before.tobytes(), dtype=dtype)
            converter.to_texture(tensor, texture, how)
            return np.frombuffer(texture.read(), before.dtype).reshape(before.shape)

    return draw


def planes(picture: Array) -> Array:
    """A picture as a tensor 1 x C x H x W."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1)[None], np.float32)


def test_pixel_for_pixel(draw: Any) -> None:
    np.testing.assert_allclose(draw(planes(VALUES), BEFORE), VALUES, atol=1e-6)


def test_channels_last_without_a_batch(draw: Any) -> None:
    np.testing.assert_allclose(draw(VALUES, BEFORE, TRANSFORM.replace(layout="NHWC")), VALUES, atol=1e-6)


def test_bytes_are_rounded_and_clamped(draw: Any) -> None:
    values = VALUES * 3 - 1
    drawn = draw(planes(values), (BEFORE * 255).astype(np.uint8))
    assert np.abs(drawn - values.clip(0, 1) * 255).max() <= 0.501


@pytest.mark.parametrize("components", [1, 2, 4])
def test_textures_of_fewer_components(components: int, draw: Any) -> None:
    before = np.ascontiguousarray(BEFORE[..., :components])
    np.testing.assert_allclose(
        draw(planes(VALUES[..., :3]), before)[..., :3], VALUES[..., : min(components, 3)], atol=1e-6
    )


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_what_a_tensor_lacks(channels: int, draw: Any) -> None:
    """One channel is grey; without blue it is black; without alpha it is opaque."""
    drawn = draw(planes(VALUES[..., :channels]), BEFORE)
    expected = np.zeros((9, 14, 4))
    expected[..., 3] = 1
    expected[..., :channels] = VALUES[..., :channels]
    if channels == 1:
        expected[..., :3] = VALUES[..., :1]
    np.testing.assert_allclose(drawn, expected, atol=1e-6)


def test_swizzle_and_normalization_are_undone(draw: Any) -> None:
    how = TRANSFORM.replace(swizzle="bgr", mean=[0.1, 0.2, 0.3], std=[2, 4, 0.5])
    normalized = (VALUES[..., 2::-1] - [0.1, 0.2, 0.3]) / [2, 4, 0.5]
    np.testing.assert_allclose(draw(planes(normalized), BEFORE, how)[..., :3], VALUES[..., :3], atol=1e-5)


def expected_in(region: tuple[float, ...], values: Array, before: Array, linear: bool = True) -> Array:
    """Stretch `values` over a region of a picture. Pixels whose centres lie outside stay."""
    x, y, w, h = region
    result = before.copy()
    for row in range(before.shape[0]):
        for column in range(before.shape[1]):
            across, down = (column + 0.5 - x) / w, (row + 0.5 - y) / h
            if 0 <= across < 1 and 0 <= down < 1:
                px, py = across * values.shape[1], down * values.shape[0]
                result[row, column] = bilinear(values, px, py) if linear else values[int(py), int(px)]
    return result


REGIONS = [
    (2, 1, 7, 5),
    (3, 2, 14, 9),
    (-3, -2, 9, 8),
    (1.3, 2.6, 6.4, 3.3),
    (8, 5, 20, 20),
    (20, 20, 5, 5),
    (0, 0, 14, 0.2),
]


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_only_the_region_changes(region: tuple[float, ...], mode: str, draw: Any) -> None:
    drawn = draw(planes(VALUES), BEFORE, TRANSFORM.replace(region=region, resample=mode))
    np.testing.assert_allclose(drawn, expected_in(region, VALUES, BEFORE, mode == "linear"), atol=2e-4)


@pytest.mark.parametrize("region", [None, (2, 1, 7, 5), (-3, -2, 9, 8)])
def test_an_origin_at_the_bottom(region: tuple[float, ...] | None, draw: Any) -> None:
    """The tensor's first row comes to lie in the texture's last."""
    how = TRANSFORM.replace(coord_origin="bottom_left")
    drawn = draw(planes(VALUES), BEFORE, how.replace(region=region) if region else how)
    np.testing.assert_allclose(drawn[::-1], expected_in(region or (0, 0, 14, 9), VALUES, BEFORE[::-1]), atol=2e-4)


def test_a_region_far_larger_than_any_viewport(draw: Any) -> None:
    region = (-50_000, -30_000, 100_000, 60_000)
    drawn = draw(planes(VALUES), BEFORE, TRANSFORM.replace(region=region, resample="nearest"))
    np.testing.assert_allclose(drawn, np.broadcast_to(VALUES[4, 7], drawn.shape), atol=1e-6)


def test_there_and_back(draw: Any, backend: str, gl_context: Any) -> None:
    how = TRANSFORM.replace(mean=[0.4, 0.5, 0.6], std=0.2, swizzle="bgr", coord_origin="bottom_left")
    drawn = draw(planes(VALUES[..., :3]), BEFORE, how)
    x = pf.Tensor.empty((1, 3, 9, 14))
    with pf.TextureConverter(gl_context, backend) as converter:
        converter.to_tensor(gl_context.texture((14, 9), 4, drawn.tobytes(), dtype="f4"), x, how)
    np.testing.assert_allclose(x.download_to_array(), planes(VALUES[..., :3]), atol=1e-5)


@pytest.fixture
def screen(gl_context: Any) -> Any:
    """A framebuffer as a window has it, bound, with its viewport."""
    screen = gl_context.framebuffer([gl_context.texture((14, 9), 4)])
    screen.clear(0, 0, 0, 1)
    screen.use()
    return screen


def seen(screen: Any) -> Array:
    """The picture as a viewer sees it, the top row first."""
    return np.frombuffer(screen.read(components=4), np.uint8).reshape(screen.height, screen.width, 4)[::-1] / 255


def test_the_screen_shows_it_upright(backend: str, gl_context: Any, screen: Any) -> None:
    with pf.TextureConverter(gl_context) as converter:
        converter.render_to_screen(placed(planes(VALUES[..., :3]), backend, gl_context))
    assert np.abs(seen(screen)[..., :3] - VALUES[..., :3]).max() < 0.003
    assert (seen(screen)[..., 3] == 1).all()


def test_the_screen_in_a_viewport(backend: str, gl_context: Any, screen: Any) -> None:
    """GL counts a viewport's x and y from the lower left."""
    y = placed(planes(VALUES[..., :3]), backend, gl_context)
    screen.viewport = (3, 1, 8, 6)
    screen.use()
    expected = expected_in((3, 9 - 1 - 6, 8, 6), VALUES, np.zeros_like(VALUES))[..., :3]
    with pf.TextureConverter(gl_context) as converter:
        converter.render_to_screen(y)
        assert np.abs(seen(screen)[..., :3] - expected).max() < 0.003
        screen.clear(0, 0, 0, 1, viewport=(0, 0, 14, 9))
        converter.render_to_screen(y, viewport=(0, 4, 14, 5))
    expected = expected_in((0, 0, 14, 5), VALUES, np.zeros_like(VALUES))[..., :3]
    assert np.abs(seen(screen)[..., :3] - expected).max() < 0.003


def test_another_framebuffer_than_the_bound_one(backend: str, gl_context: Any, screen: Any) -> None:
    other = gl_context.framebuffer([gl_context.texture((28, 18), 4)])
    y = placed(planes(VALUES[..., :1]), backend, gl_context)
    with pf.TextureConverter(gl_context) as converter:
        converter.render_to_screen(y, TRANSFORM.replace(resample="nearest"), framebuffer=other)
    assert not seen(screen)[..., :3].any()
    assert np.abs(seen(other)[..., :3] - VALUES[..., :1].repeat(2, 0).repeat(2, 1)).max() < 0.003
    assert gl_context.fbo.glo == screen.glo
