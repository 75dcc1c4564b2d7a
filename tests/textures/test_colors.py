"""Colours, ranges, masks, dtypes and batches, on every backend, for textures and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from textures.test_drawing import BEFORE, VALUES, draw
from textures.test_sampling import PICTURE, TRANSFORM, planes, sample

__all__ = ["draw", "sample"]  # fixtures

RANDOM = np.random.default_rng(41)
Array = Any


def linear(x: Array) -> Array:
    """The definition of sRGB."""
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def test_srgb_and_linear_light(sample: Any) -> None:
    """Alpha stays, also where the swizzle moves it."""
    expected = PICTURE / 255
    expected[..., :3] = linear(expected[..., :3])
    values = sample(PICTURE, (1, 4, 13, 17), TRANSFORM.replace(color_conversion="srgb_to_linear", swizzle="abgr"))
    np.testing.assert_allclose(values, planes(expected[..., ::-1]), atol=3e-6)
    bright = expected.astype(np.float32)
    values = sample(bright, (1, 4, 13, 17), TRANSFORM.replace(color_conversion="linear_to_srgb"))
    np.testing.assert_allclose(values, planes(PICTURE / 255), atol=3e-6)


def test_drawing_undoes_the_conversion(draw: Any) -> None:
    how = TRANSFORM.replace(color_conversion="srgb_to_linear", range=(-1, 1))
    tensor = VALUES.copy()
    tensor[..., :3] = linear(VALUES[..., :3])
    np.testing.assert_allclose(draw(planes(tensor * 2 - 1), BEFORE, how), VALUES, atol=2e-5)


@pytest.mark.parametrize(("low", "high"), [(0, 255), (-1, 1), (1, 0)])
def test_ranges(low: float, high: float, sample: Any) -> None:
    values = sample(PICTURE, (1, 4, 13, 17), TRANSFORM.replace(range=(low, high)))
    np.testing.assert_allclose(values, planes(PICTURE / 255 * (high - low) + low), atol=2e-5 * 255)


def test_broadcasts(sample: Any) -> None:
    values = sample(PICTURE, (1, 3, 13, 17), TRANSFORM.replace(swizzle="g", broadcast=True))
    np.testing.assert_allclose(values, planes(PICTURE[..., [1, 1, 1]] / 255), atol=1e-6)


def test_drawing_broadcasts(draw: Any) -> None:
    how = TRANSFORM.replace(broadcast=True)
    np.testing.assert_allclose(draw(planes(VALUES[..., :1]), BEFORE, how), VALUES[..., [0] * 4], atol=1e-6)
    np.testing.assert_allclose(draw(planes(VALUES[..., :2]), BEFORE, how), VALUES[..., [0, 1, 1, 1]], atol=1e-6)


@pytest.mark.parametrize("mask", ["rgb", "a", "gb"])
def test_write_masks(mask: str, draw: Any) -> None:
    drawn = draw(planes(VALUES), BEFORE, TRANSFORM.replace(write_mask=mask))
    for index, name in enumerate("rgba"):
        np.testing.assert_allclose(drawn[..., index], (VALUES if name in mask else BEFORE)[..., index], atol=1e-6)


def test_a_mask_does_not_stay(backend: str, gl_context: Any) -> None:
    texture = gl_context.texture((14, 9), 4, dtype="f4")
    with pf.TextureConverter(gl_context, backend) as converter:
        converter.to_texture(pf.Tensor(planes(VALUES)), texture, TRANSFORM.replace(write_mask="r"))
        converter.to_texture(pf.Tensor(planes(VALUES)), texture)
    drawn = np.frombuffer(texture.read(), np.float32).reshape(VALUES.shape)
    np.testing.assert_allclose(drawn, VALUES, atol=1e-6)


@pytest.mark.parametrize("with_gl", [True, False], ids=["texture", "array"])
@pytest.mark.parametrize(("dtype", "lowest"), [("uint8", 0), ("int8", -128)])
@pytest.mark.parametrize("mode", ["linear", "area"])
def test_tensors_of_bytes(dtype: str, lowest: int, mode: str, with_gl: bool, backend: str, gl_context: Any) -> None:
    given = gl_context.texture((17, 13), 4, PICTURE.tobytes()) if with_gl else PICTURE
    x, drawn = pf.Tensor.empty((1, 3, 13, 17), dtype), np.zeros((13, 17, 4), np.uint8)
    target = gl_context.texture((17, 13), 4)
    with pf.TextureConverter(gl_context, backend) as converter:
        values = converter.to_tensor(given, x, TRANSFORM.replace(resample=mode)).download_to_array()
        assert values.dtype == dtype
        np.testing.assert_array_equal(values[0].transpose(1, 2, 0).astype(int), PICTURE[..., :3].astype(int) + lowest)
        converter.to_texture(x, drawn)
        converter.to_texture(x, target)
        np.testing.assert_array_equal(drawn[..., :3], PICTURE[..., :3])
        seen = np.frombuffer(target.read(), np.uint8).reshape(drawn.shape)
        np.testing.assert_array_equal(seen[..., :3], PICTURE[..., :3])
        loud = converter.to_tensor(given, x, TRANSFORM.replace(mean=0.5, std=0.1)).download_to_array()
        assert (loud.min(), loud.max()) == (lowest, lowest + 255)


def test_half_floats(sample: Any) -> None:
    picture = PICTURE.astype(np.float16) / 255
    expected = sample(picture.astype(np.float32), (1, 4, 5, 6), TRANSFORM.replace(resample="area"))
    x = pf.TextureConverter().to_tensor(picture, pf.Tensor.empty((1, 4, 5, 6)), TRANSFORM.replace(resample="area"))
    np.testing.assert_allclose(x.download_to_array(), expected, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 6, 7, 14])
@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 4, 6)], ids=str)
@pytest.mark.parametrize("with_gl", [True, False], ids=["texture", "array"])
def test_batches(count: int, shape: tuple[int, ...], with_gl: bool, backend: str, gl_context: Any) -> None:
    """Pictures of several sizes, each with a region of its own."""
    pictures = [RANDOM.integers(0, 256, (20 + k, 30 - k, 4), np.uint8) for k in range(count)]
    hows = [TRANSFORM.replace(region=(k, 2, 12, 9), resample="antialias") for k in range(count)]
    textures = [gl_context.texture(p.shape[1::-1], 4, p.tobytes()) for p in pictures] if with_gl else pictures
    x, alone = pf.Tensor.empty((count, *shape)), pf.TextureConverter()
    with pf.TextureConverter(gl_context, backend) as converter:
        for given, kept in ((hows, hows), (hows[0], hows[:1] * count)):
            values = converter.to_tensor(textures, x, given).download_to_array()
            for picture, how, item in zip(pictures, kept, values, strict=True):
                expected = alone.to_tensor(picture, pf.Tensor.empty(shape), how).download_to_array()
                np.testing.assert_allclose(item, expected, atol=2e-5)
        assert x.backend_type == (backend if with_gl else "cpu")


@pytest.mark.parametrize("mode", ["linear", "antialias", "mipmap"])
def test_layers_of_a_texture_array(mode: str, backend: str, gl_context: Any) -> None:
    """They fill a batch, and a batch is drawn into them."""
    pictures = RANDOM.integers(0, 256, (3, 16, 32, 4), np.uint8)
    array = gl_context.texture_array((32, 16, 3), 4, pictures.tobytes())
    array.build_mipmaps()
    x, how, alone = pf.Tensor.empty((3, 4, 4, 8)), TRANSFORM.replace(resample=mode), pf.TextureConverter()
    with pf.TextureConverter(gl_context, backend) as converter:
        values = converter.to_tensor(array, x, how).download_to_array()
        for picture, item in zip(pictures, values, strict=True):
            expected = alone.to_tensor(picture, pf.Tensor.empty((4, 4, 8)), how).download_to_array()
            np.testing.assert_allclose(item, expected, atol=2 / 255 if mode == "mipmap" else 2e-5)
        whole = pf.Tensor(pictures[::-1].transpose(0, 3, 1, 2) / np.float32(255))
        converter.to_texture(whole, array, how)
        with pytest.raises(pf.InputError, match="a batch of 3; this is"):
            converter.to_tensor(array, pf.Tensor.empty((2, 4, 4, 8)))
    np.testing.assert_array_equal(np.frombuffer(array.read(), np.uint8).reshape(pictures.shape), pictures[::-1])


def test_a_batch_of_bytes(backend: str, gl_context: Any) -> None:
    """Items that fill no whole texels."""
    pictures = [RANDOM.integers(0, 256, (3, 5, 4), np.uint8) for _ in range(8)]
    with pf.TextureConverter(gl_context, backend) as converter:
        textures = [gl_context.texture((5, 3), 4, picture.tobytes()) for picture in pictures]
        x = converter.to_tensor(textures, pf.Tensor.empty((8, 3, 3, 5), "uint8"))
    np.testing.assert_array_equal(x.download_to_array().transpose(0, 2, 3, 1), np.stack(pictures)[..., :3])


def test_a_batch_is_drawn_into_a_list(backend: str, gl_context: Any) -> None:
    values = RANDOM.uniform(0, 1, (3, 3, 5, 7)).astype(np.float32)
    targets = [gl_context.texture((7, 5), 4, dtype="f4"), np.zeros((5, 7, 4), np.float32)]
    targets.append(gl_context.texture((7, 5), 4, dtype="f4"))
    with pf.TextureConverter(gl_context, backend) as converter:
        x = pf.Tensor(values)
        converter.to_texture(x, targets)
    for expected, target in zip(values, targets, strict=True):
        drawn = target if isinstance(target, np.ndarray) else np.frombuffer(target.read(), np.float32)
        np.testing.assert_allclose(drawn.reshape(5, 7, 4)[..., :3].transpose(2, 0, 1), expected, atol=1e-6)


def test_a_batch_is_drawn_whole_or_not_at_all(backend: str, gl_context: Any) -> None:
    texture, picture = gl_context.texture((5, 4), 4), np.zeros((4, 5, 3), np.uint8)
    x = pf.Tensor(np.ones((3, 3, 4, 5), np.float32))
    with pf.TextureConverter(gl_context, backend) as converter:
        for wrong in (np.zeros((4, 5, 3), np.int32), 10**6, "a.png"):
            with pytest.raises(pf.InputError):
                converter.to_texture(x, [texture, picture, wrong])
    assert not picture.any()
    assert not any(texture.read())


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda c, x: c.to_tensor([PICTURE], x), "a batch of 1; this is"),
        (lambda c, x: c.to_tensor([], x), "at least one picture"),
        (lambda c, x: c.to_tensor([PICTURE] * 2, x, [TRANSFORM]), "2 pictures need one transform, or 2"),
        (lambda c, x: c.to_tensor([PICTURE] * 2, x, [TRANSFORM, TRANSFORM.replace(layout="NHWC")]), "same tensor"),
        (lambda c, x: c.to_tensor([PICTURE, 7], x), "no GL context"),
        (lambda c, x: c.to_texture(x, [PICTURE.copy()] * 3), "a batch of 3"),
        (lambda c, x: TRANSFORM.replace(range=(1, 1)), "two different numbers"),
        (lambda c, x: TRANSFORM.replace(write_mask="rgbx"), "write_mask names"),
        (lambda c, x: TRANSFORM.replace(write_mask=""), "write_mask names"),
        (lambda c, x: TRANSFORM.replace(color_conversion="gamma"), "color_conversion is one of"),
    ],
)
def test_mistakes(use: Any, says: str) -> None:
    x = pf.Tensor(np.zeros((2, 3, 4, 5), np.float32))
    with pytest.raises(pf.InputError, match=says):
        use(pf.TextureConverter(), x)


def srgb_texture(gl_context: Any, colors: Array) -> Any:
    height, width, channels = colors.shape
    return gl_context.texture((width, height), channels, colors.tobytes(), internal_format=0x8C43)  # SRGB8_ALPHA8


def test_a_texture_of_srgb_colors_is_linear_light_both_ways(backend: str, gl_context: Any) -> None:
    """GL decodes what is read; what is drawn is encoded. Alpha stays."""
    colors = RANDOM.integers(0, 256, (6, 8, 4), np.uint8)
    source, target = srgb_texture(gl_context, colors), srgb_texture(gl_context, np.zeros_like(colors))
    with pf.TextureConverter(gl_context, backend) as converter:
        x = converter.to_tensor(source, pf.Tensor.empty((4, 6, 8)))
        wanted = colors / 255
        wanted[..., :3] = linear(wanted[..., :3])
        np.testing.assert_allclose(x.download_to_array(), wanted.transpose(2, 0, 1), atol=2e-3)
        converter.to_texture(x, target)
        again = converter.to_tensor(target, pf.Tensor.empty((4, 6, 8)))
        np.testing.assert_allclose(again.download_to_array(), x.download_to_array(), atol=2e-3)
        plain = gl_context.texture((8, 6), 4)
        converter.to_texture(x, plain)
        drawn = np.frombuffer(plain.read(), np.uint8).reshape(6, 8, 4) / 255
        np.testing.assert_allclose(drawn, x.download_to_array().transpose(1, 2, 0), atol=3e-3)


@pytest.mark.parametrize("with_gl", [True, False], ids=["texture", "array"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.filterwarnings("error")
def test_pictures_with_infinities(with_gl: bool, dtype: str, backend: str, gl_context: Any) -> None:
    """In bytes, infinity is the highest and NaN the lowest number."""
    picture = np.zeros((2, 4, 1), np.float32)
    picture[:, 0], picture[:, 1], picture[:, 2] = np.inf, -np.inf, np.nan
    given = gl_context.texture((4, 2), 1, picture.tobytes(), dtype="f4") if with_gl else picture
    how = TRANSFORM.replace(resample="nearest", swizzle="r")
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    with pf.TextureConverter(gl_context if with_gl else None, backend if with_gl else None) as converter:
        found = converter.to_tensor(given, pf.Tensor.empty((1, 2, 4), dtype), how).download_to_array()
    assert found[0].tolist() == [[high, low, low, low]] * 2
    drawn = np.zeros((2, 4, 1), np.uint8)
    pf.TextureConverter().to_texture(pf.Tensor(picture[None, ..., 0]), drawn, how)
    assert drawn[..., 0].tolist() == [[255, 0, 0, 0]] * 2
