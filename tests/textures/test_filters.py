"""Filters and mipmaps against Pillow, on every backend, for textures and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf
from perframe.textures.filters import FILTERS, weights
from textures.test_sampling import TRANSFORM, planes, sample

__all__ = ["sample"]  # a fixture

RANDOM = np.random.default_rng(21)
NOISE = RANDOM.integers(0, 256, (45, 61, 3), np.uint8)
PILLOW = {
    "area": Image.Resampling.BOX,
    "antialias": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}
Array = Any
AXES = [(0, 640, 128, 640), (-7.5, 31, 5, 17), (3, 2, 9, 6), (40, 5, 2, 8)]


def by_pillow(picture: Array, size: tuple[int, int], mode: str, region: Any = None) -> Array:
    """Pillow's floats of 0..1: each channel is a picture of its own."""
    channels = [Image.fromarray(picture[..., c].astype(np.float32) / 255) for c in range(picture.shape[2])]
    return np.stack([np.asarray(c.resize(size, PILLOW[mode], box=region)) for c in channels], -1)


@pytest.mark.parametrize("mode", PILLOW)
@pytest.mark.parametrize("size", [(8, 6), (28, 14), (61, 45), (100, 9), (1, 1), (130, 99)])
def test_filters_are_pillows(mode: str, size: tuple[int, int], sample: Any) -> None:
    """Shrunk, enlarged, or shrunk one way and enlarged the other. Ties of the box are Pillow's: 45 to 14, for one."""
    values = sample(NOISE, (1, 3, size[1], size[0]), TRANSFORM.replace(resample=mode))
    expected = planes(by_pillow(NOISE, size, mode))
    np.testing.assert_allclose(values, expected, atol=2e-5)
    whole = np.asarray(Image.fromarray(NOISE).resize(size, PILLOW[mode])) / 255
    if mode != "bicubic":  # whose overshoot Pillow clips twice in bytes
        assert np.abs(values - planes(whole)).max() <= 1 / 255


@pytest.mark.parametrize("mode", PILLOW)
def test_regions_and_origins(mode: str, sample: Any) -> None:
    """A region's filter reads beyond it, as Pillow's box does. The picture's top stays the top."""
    region = (3.5, 7.25, 50.0, 30.0)
    how = TRANSFORM.replace(resample=mode, region=region)
    box = (region[0], region[1], region[0] + region[2], region[1] + region[3])
    expected = planes(by_pillow(NOISE, (11, 8), mode, box))
    np.testing.assert_allclose(sample(NOISE, (1, 3, 8, 11), how), expected, atol=2e-5)
    flipped = sample(NOISE[::-1].copy(), (1, 3, 8, 11), how.replace(coord_origin="bottom_left"))
    np.testing.assert_allclose(flipped, expected, atol=2e-5)


@pytest.mark.parametrize("mode", PILLOW)
def test_regions_beyond_the_edge(mode: str, sample: Any) -> None:
    """Elements wholly outside repeat the pixel at the edge."""
    values = sample(NOISE, (1, 3, 4, 5), TRANSFORM.replace(resample=mode, region=(-500, -400, 50, 40)))
    np.testing.assert_allclose(values, np.broadcast_to(NOISE[0, 0][:, None, None] / 255, values.shape), atol=1e-5)
    values = sample(NOISE, (1, 3, 4, 5), TRANSFORM.replace(resample=mode, region=(500, 400, 50, 40)))
    np.testing.assert_allclose(values, np.broadcast_to(NOISE[-1, -1][:, None, None] / 255, values.shape), atol=1e-5)


def test_a_large_picture_does_not_alias(sample: Any) -> None:
    """1080p, shrunk 7.5 times: stripes of one pixel become grey, and not waves."""
    stripes = np.zeros((1080, 1920, 1), np.uint8)
    stripes[:, ::2] = 255
    for mode in PILLOW:
        values = sample(stripes, (1, 1, 144, 256), TRANSFORM.replace(resample=mode))
        expected = by_pillow(stripes, (256, 144), mode)
        assert np.abs(values - planes(expected)).max() <= 1 / 255
        assert np.abs(values - 0.5).max() < 0.1
    assert np.ptp(sample(stripes, (1, 1, 144, 256))) > 0.4  # waves


def test_moving_regions_share_a_pass(backend: str, gl_context: Any) -> None:
    """The weights of one region are not those of the next."""
    texture = gl_context.texture((61, 45), 3, NOISE.tobytes(), alignment=1)
    x = pf.Tensor.empty((1, 3, 5, 6))
    with pf.TextureConverter(gl_context, backend) as converter:
        for _ in range(2):
            for left in (0, 3.25, 20):
                how = TRANSFORM.replace(resample="antialias", region=(left, 2, 36, 40))
                converter.to_tensor(texture, x, how)
                expected = planes(by_pillow(NOISE, (6, 5), "antialias", (left, 2, left + 36, 42)))
                np.testing.assert_allclose(x.download_to_array(), expected, atol=2e-5)


def halves(picture: Array, times: int) -> Array:
    for _ in range(times):
        picture = (picture[::2, ::2] + picture[1::2, ::2] + picture[::2, 1::2] + picture[1::2, 1::2]) / 4
    return picture


@pytest.fixture
def mipmapped(gl_context: Any) -> Any:
    texture = gl_context.texture((64, 32), 4, PICTURE.tobytes())
    texture.build_mipmaps()
    return texture


PICTURE = RANDOM.integers(0, 256, (32, 64, 4), np.uint8)


@pytest.mark.parametrize("with_gl", [True, False], ids=["texture", "array"])
def test_mipmaps(with_gl: bool, backend: str, gl_context: Any, mipmapped: Any) -> None:
    how, x = TRANSFORM.replace(resample="mipmap"), pf.Tensor.empty((1, 4, 8, 16))
    given = mipmapped if with_gl else PICTURE
    with pf.TextureConverter(gl_context, backend) as converter:
        level = converter.to_tensor(given, x, how).download_to_array()
        assert np.abs(level - planes(halves(PICTURE / 255, 2))).max() < 2 / 255
        whole = converter.to_tensor(given, pf.Tensor.empty((1, 4, 32, 64)), how).download_to_array()
        np.testing.assert_allclose(whole, planes(PICTURE / 255), atol=1e-6)
        between = converter.to_tensor(given, pf.Tensor.empty((1, 4, 12, 23)), how).download_to_array()
        finer, coarser = (
            converter.to_tensor(np.float32(halves(PICTURE / 255, k)), pf.Tensor.empty((1, 4, 12, 23))) for k in (1, 2)
        )
        part = np.log2(64 / 23) - 1
        expected = finer.download_to_array() * (1 - part) + coarser.download_to_array() * part
        assert np.abs(between - expected).max() < 2 / 255


def test_textures_without_a_mipmap(backend: str, gl_context: Any) -> None:
    texture = gl_context.texture((64, 32), 4, PICTURE.tobytes())
    with (
        pf.TextureConverter(gl_context, backend) as converter,
        pytest.raises(pf.InputError, match=r"no mipmap: call texture\.build_mipmaps\(\)"),
    ):
        converter.to_tensor(texture, pf.Tensor.empty((1, 4, 8, 16)), TRANSFORM.replace(resample="mipmap"))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("begin", "length", "count", "size"), AXES)
def test_weights_read_only_pixels_that_count(name: str, begin: float, length: float, count: int, size: int) -> None:
    """All of them lie on the axis, and no element reads more pixels than the one with the most."""
    found = weights(name, begin, length, count, size)
    assert found.span[0] >= 0 and found.span[1] <= size
    np.testing.assert_allclose(found.values.sum(1), 1, atol=1e-6)
    ends = found.values.shape[1] - (found.values[:, ::-1] != 0).argmax(1) - (found.values != 0).argmax(1)
    assert ends.max() == found.values.shape[1]
