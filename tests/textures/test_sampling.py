"""Texture to tensor: every option against expectations that are worked out here, pixel by pixel, on every backend.

A picture goes in as an array (the NumPy path) and as a texture; a tensor lies on the CPU, in a buffer or in a texture.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import perframe as pf

RANDOM = np.random.default_rng(11)
PICTURE = RANDOM.integers(0, 256, (13, 17, 4), np.uint8)
TRANSFORM = pf.TextureTransform()
Array = Any


@pytest.fixture(params=["texture", "array"])
def sample(request: pytest.FixtureRequest, backend: str) -> Callable[..., Array]:
    """`sample(picture, shape, transform)`: a tensor of that shape on a backend, filled from a texture or an array."""
    with_gl = request.param == "texture"
    ctx = request.getfixturevalue("gl_context") if with_gl or backend != "cpu" else None

    def sample(picture: Array, shape: tuple[int, ...], how: pf.TextureTransform = TRANSFORM) -> Array:
        converter = pf.TextureConverter(ctx, backend)
        x = pf.Tensor.empty(shape)
        given = picture
        if with_gl:
            dtype = "f1" if picture.dtype == np.uint8 else "f4"
            given = ctx.texture(picture.shape[1::-1], picture.shape[2], picture.tobytes(), dtype=dtype)
        elif backend != "cpu":
            with pf.Worker(copy_model(shape), backend, ctx) as worker:
                x = worker.empty_input("x")
        assert converter.to_tensor(given, x, how) is x
        assert x.backend_type == backend
        values = x.download_to_array()
        converter.release()
        return values

    return sample


def copy_model(shape: tuple[int, ...]) -> pf.Model:
    """A model that wants an input of this shape."""
    from onnx import TensorProto, helper

    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "copy", infos[:1], infos[1:])
    return pf.load(helper.make_model(body, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))


def planes(picture: Array) -> Array:
    """A picture as a tensor 1 x C x H x W."""
    return picture.transpose(2, 0, 1)[None].astype(np.float32)


def bilinear(picture: Array, x: float, y: float) -> Array:
    """One sample, from the definition: centres of pixels lie at .5, and the edge goes on for ever."""
    height, width = picture.shape[:2]
    total = np.zeros(picture.shape[2])
    for row in range(int(np.floor(y - 0.5)), int(np.floor(y - 0.5)) + 2):
        for column in range(int(np.floor(x - 0.5)), int(np.floor(x - 0.5)) + 2):
            weight = (1 - abs(y - 0.5 - row)) * (1 - abs(x - 0.5 - column))
            total += weight * picture[min(max(row, 0), height - 1), min(max(column, 0), width - 1)]
    return total


def by_hand(picture: Array, size: tuple[int, int], region: tuple[float, float, float, float], linear: bool) -> Array:
    """A region resampled to width x height."""
    x, y, w, h = region
    result = np.zeros((size[1], size[0], picture.shape[2]))
    for row in range(size[1]):
        for column in range(size[0]):
            px, py = x + (column + 0.5) * w / size[0], y + (row + 0.5) * h / size[1]
            nearest = picture[
                min(max(int(np.floor(py)), 0), picture.shape[0] - 1),
                min(max(int(np.floor(px)), 0), picture.shape[1] - 1),
            ]
            result[row, column] = bilinear(picture, px, py) if linear else nearest
    return result


def test_pixel_for_pixel(sample: Any) -> None:
    np.testing.assert_allclose(sample(PICTURE, (1, 4, 13, 17)), planes(PICTURE) / 255, atol=1e-6)
    np.testing.assert_allclose(sample(PICTURE, (3, 13, 17)), planes(PICTURE)[0, :3] / 255, atol=1e-6)


def test_channels_last(sample: Any) -> None:
    values = sample(PICTURE, (1, 13, 17, 3), TRANSFORM.replace(layout="NHWC"))
    np.testing.assert_allclose(values[0], PICTURE[..., :3] / 255, atol=1e-6)


@pytest.mark.parametrize("components", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_components_and_dtypes(components: int, dtype: Any, sample: Any) -> None:
    """As in GL, missing colours are 0, and a missing alpha is 1. Floats outside 0..1 stay."""
    picture = RANDOM.uniform(-3, 300, (6, 5, components)).clip(0 if dtype is np.uint8 else -3, 255).astype(dtype)
    expected = np.zeros((6, 5, 4))
    expected[..., 3] = 1
    expected[..., :components] = picture / (255 if dtype is np.uint8 else 1)
    np.testing.assert_allclose(sample(picture, (1, 4, 6, 5)), planes(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [(5, 4), (40, 31), (17, 1)])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_resampling(size: tuple[int, int], mode: str, sample: Any) -> None:
    expected = by_hand(PICTURE, size, (0, 0, 17, 13), mode == "linear")[..., :3] / 255
    values = sample(PICTURE, (1, 3, size[1], size[0]), TRANSFORM.replace(resample=mode))
    np.testing.assert_allclose(values, planes(expected), atol=2e-4)


def test_enlarging_is_as_pillow_does_it(sample: Any) -> None:
    """An implementation that is not ours."""
    picture = PICTURE[..., :3]
    expected = np.asarray(Image.fromarray(picture).resize((51, 39), Image.Resampling.BILINEAR))
    values = sample(picture, (1, 3, 39, 51))
    assert np.abs(values * 255 - planes(expected)).max() < 1


@pytest.mark.parametrize(
    "region", [(2, 3, 8, 6), (0.25, 1.5, 7.3, 9.1), (-4, -2, 12, 9), (10, 8, 20, 20), (-9, -9, 40, 40), (30, 30, 4, 4)]
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_regions(region: tuple[float, float, float, float], mode: str, sample: Any) -> None:
    """Parts of a picture. Beyond its edges, the texels of the edge repeat."""
    expected = by_hand(PICTURE, (7, 6), region, mode == "linear")[..., :3] / 255
    how = TRANSFORM.replace(region=region, resample=mode)
    np.testing.assert_allclose(sample(PICTURE, (1, 3, 6, 7), how), planes(expected), atol=2e-4)


@pytest.mark.parametrize("swizzle", ["bgr", "a", "rrr", "gbar", "bg"])
def test_swizzles(swizzle: str, sample: Any) -> None:
    channels = ["rgba".index(name) for name in swizzle]
    values = sample(PICTURE, (1, len(swizzle), 13, 17), TRANSFORM.replace(swizzle=swizzle))
    np.testing.assert_allclose(values, planes(PICTURE[..., channels]) / 255, atol=1e-6)


def test_the_first_row_is_the_top_wherever_the_origin(sample: Any) -> None:
    """In a texture that GL drew, the first row of texels is the lowest. Regions still count from the top."""
    how = TRANSFORM.replace(coord_origin="bottom_left")
    upright = PICTURE[::-1]
    np.testing.assert_allclose(sample(PICTURE, (1, 3, 13, 17), how), planes(upright[..., :3]) / 255, atol=1e-6)
    part = sample(PICTURE, (1, 3, 4, 5), how.replace(region=(2, 1, 5, 4)))
    np.testing.assert_allclose(part, planes(upright[1:5, 2:7, :3]) / 255, atol=1e-6)
    expected = by_hand(upright, (5, 4), (-3.5, -2, 11, 20), True)[..., :3] / 255
    values = sample(PICTURE, (1, 3, 4, 5), how.replace(region=(-3.5, -2, 11, 20)))
    np.testing.assert_allclose(values, planes(expected), atol=2e-4)


def test_normalization_per_channel_of_the_tensor(sample: Any) -> None:
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    how = TRANSFORM.replace(mean=mean, std=std, swizzle="bgr")
    expected = planes((PICTURE[..., 2::-1] / 255 - mean) / std)
    np.testing.assert_allclose(sample(PICTURE, (1, 3, 13, 17), how), expected, atol=2e-5)
    np.testing.assert_allclose(
        sample(PICTURE, (1, 3, 13, 17), TRANSFORM.replace(mean=0.5, std=0.25)),
        planes(PICTURE[..., :3] / 255 - 0.5) * 4,
        atol=2e-5,
    )


def test_all_at_once(sample: Any) -> None:
    how = TRANSFORM.replace(
        region=(1.5, -2, 9, 11), coord_origin="bottom_left", swizzle="gr", mean=[0.1, 0.2], std=[2, 4], layout="NHWC"
    )
    expected = (by_hand(PICTURE[::-1], (8, 9), (1.5, -2, 9, 11), True)[..., [1, 0]] / 255 - [0.1, 0.2]) / [2, 4]
    np.testing.assert_allclose(sample(PICTURE, (9, 8, 2), how), expected, atol=2e-4)


def test_a_gl_name_is_a_texture(backend: str, gl_context: Any) -> None:
    """As other libraries have them: made by hand, with GL's default filter and no mipmaps."""
    from gl.raw import Raw

    gl = Raw(gl_context)
    name, texels = gl.generate("Textures"), np.ascontiguousarray(PICTURE)
    gl.glBindTexture(0x0DE1, name)
    gl.glTexImage2D(0x0DE1, 0, 0x8058, 17, 13, 0, 0x1908, 0x1401, texels.ctypes.data_as(ctypes.c_void_p))
    gl.glBindTexture(0x0DE1, 0)
    x = pf.Tensor.empty((1, 4, 13, 17))
    with pf.TextureConverter(gl_context, backend) as converter:
        converter.to_tensor(name, x)
        np.testing.assert_allclose(x.download_to_array(), planes(PICTURE) / 255, atol=1e-6)
        y = pf.Tensor(np.full((1, 4, 13, 17), 0.2, np.float32))
        converter.to_texture(y, name)
        converter.to_tensor(name, x)
        np.testing.assert_allclose(x.download_to_array(), 0.2, atol=1e-6)
    gl.glDeleteTextures(1, ctypes.byref(ctypes.c_uint(name)))


def test_one_converter_for_many(backend: str, gl_context: Any) -> None:
    """The bindings for one texture, tensor and region do not affect the next."""
    first, second = (gl_context.texture((17, 13), 4, picture.tobytes()) for picture in (PICTURE, 255 - PICTURE))
    with pf.TextureConverter(gl_context, backend) as converter:
        tensors = [pf.Tensor.empty((1, 3, 6, 5)) for _ in range(2)]
        for _ in range(2):
            for texture, picture in ((first, PICTURE), (second, 255 - PICTURE)):
                for x, left in zip(tensors, (1, 4), strict=True):
                    converter.to_tensor(texture, x, TRANSFORM.replace(region=(left, 2, 5, 6)))
                    part = picture[2:8, left : left + 5, :3] / 255
                    np.testing.assert_allclose(x.download_to_array(), planes(part), atol=1e-6)
        np.testing.assert_allclose(
            tensors[0].download_to_array(), planes((255 - PICTURE)[2:8, 1:6, :3] / 255), atol=1e-6
        )
