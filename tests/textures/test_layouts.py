"""Any order of a tensor's dims, new tensors and textures, and colors of masked channels: on all backends."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import perframe as pf

RANDOM = np.random.default_rng(5)
PICTURES = RANDOM.uniform(0, 1, (8, 5, 6, 3)).astype(np.float32)  # N, H, W, C
LAYOUTS = ["".join(order) for order in permutations("NCHW")]
TRANSFORM = pf.TextureTransform()
Array = Any


def arranged(pictures: Array, layout: str) -> Array:
    """Pictures of N x H x W x C in a layout, or one picture of H x W x C in it without N."""
    axes = "NHWC"[4 - pictures.ndim :]
    order = [axis for axis in layout if axis in axes]
    return np.ascontiguousarray(pictures.transpose([axes.index(axis) for axis in order]))


def texture(ctx: Any, picture: Array) -> Any:
    height, width, channels = picture.shape
    return ctx.texture((width, height), channels, picture.tobytes(), dtype="f4")


def read(picture: Any, channels: int = 4) -> Array:
    if isinstance(picture, np.ndarray):
        return picture
    return np.frombuffer(picture.read(), np.float32).reshape(picture.height, picture.width, picture.components)


@pytest.fixture(params=["texture", "array"])
def source(request: pytest.FixtureRequest, gl_context: Any) -> Any:
    """`source(picture)`: an array, or a texture of it."""
    return (lambda picture: texture(gl_context, picture)) if request.param == "texture" else lambda picture: picture


@pytest.mark.parametrize(
    ("layout", "resample"),
    [*((layout, "linear") for layout in LAYOUTS), ("HWNC", "nearest"), ("WCHN", "antialias"), ("CWHN", "area")],
)
def test_a_picture_in_any_layout(backend: str, gl_context: Any, source: Any, layout: str, resample: str) -> None:
    how = TRANSFORM.replace(layout=layout, resample=resample, swizzle="bgr", mean=[0.1, 0.2, 0.3], letterbox=0.5)
    usual = TRANSFORM.replace(resample=resample, swizzle="bgr", mean=[0.1, 0.2, 0.3], letterbox=0.5)
    expected = pf.TextureConverter().to_tensor(PICTURES[0], pf.Tensor.empty((3, 4, 7)), usual).numpy()
    expected = arranged(expected.transpose(1, 2, 0), layout)
    with pf.TextureConverter(gl_context, backend) as converter:
        for shape in (expected.shape, arranged(expected[None], "NCHW").shape):
            if len(shape) == 4:
                at = layout.index("N")
                shape = (*expected.shape[:at], 1, *expected.shape[at:])
            x = converter.to_tensor(source(PICTURES[0]), pf.Tensor.empty(shape), how)
            np.testing.assert_allclose(x.numpy().reshape(expected.shape), expected, atol=2e-5)
    assert how.mapping((6, 5), x).box == usual.mapping((6, 5), (1, 3, 4, 7)).box


@pytest.mark.parametrize(("layout", "count"), [*((layout, 8) for layout in LAYOUTS), ("HCNW", 2)])
def test_a_batch_in_any_layout(backend: str, gl_context: Any, source: Any, layout: str, count: int) -> None:
    pictures, how = PICTURES[:count], TRANSFORM.replace(layout=layout)
    with pf.TextureConverter(gl_context, backend) as converter:
        x = converter.to_tensor([source(each) for each in pictures], transform=how)
        assert x.numpy().shape == arranged(pictures, layout).shape
        np.testing.assert_allclose(x.numpy(), arranged(pictures, layout), atol=1e-6)
        targets = [source(np.zeros((5, 6, 4), np.float32)) for _ in pictures]
        assert converter.to_texture(x, targets, how) is targets
        for target, picture in zip(targets, pictures, strict=True):
            np.testing.assert_allclose(read(target)[..., :3], picture, atol=1e-6)
            assert (read(target)[..., 3] == 1).all()


def test_new_tensors(backend: str, gl_context: Any, source: Any) -> None:
    with pf.TextureConverter(gl_context, backend) as converter:
        given = source(PICTURES[0])
        x = converter.to_tensor(given)
        assert x.shape == (1, 3, 5, 6) and x.dtype == "float32"
        assert x.backend_type == (backend if not isinstance(given, np.ndarray) else "cpu")
        np.testing.assert_allclose(x.numpy()[0], PICTURES[0].transpose(2, 0, 1), atol=1e-6)
        how = TRANSFORM.replace(region=(1, 1, 4, 2), swizzle="b", layout="HWNC")
        assert converter.to_tensor(given, transform=how).shape == (2, 4, 1, 1)
        assert converter.to_tensor(given, size=(9, 7), channels=1).shape == (1, 1, 7, 9)
        two = [given, source(PICTURES[1][:2])]
        assert converter.to_tensor(two, size=(4, 4)).shape == (2, 3, 4, 4)
        with pytest.raises(pf.InputError, match="different sizes"):
            converter.to_tensor(two)
        with pytest.raises(pf.InputError, match="a shape already"):
            converter.to_tensor(given, x, size=(9, 7))
        for wrong in ((0, 4), (4,), "44", (1.5, 2)):
            with pytest.raises(pf.InputError, match="a width and a height"):
                converter.to_tensor(given, size=wrong)


def test_a_new_tensor_of_a_gl_name_and_a_framebuffer(gl_context: Any) -> None:
    picture = texture(gl_context, PICTURES[0])
    with pf.TextureConverter(gl_context) as converter:
        assert converter.to_tensor(picture.glo).shape == (1, 4, 5, 6)
        assert converter.to_tensor(picture.glo, transform=TRANSFORM.replace(swizzle="rgb")).shape == (1, 3, 5, 6)
        framebuffer = gl_context.simple_framebuffer((6, 5), 4)
        target = gl_context.framebuffer([gl_context.texture((6, 5), 4)])
        assert converter.to_tensor(target).shape == (1, 4, 5, 6)
        with pytest.raises(pf.InputError):
            converter.to_tensor(framebuffer)  # it has no texture


@pytest.mark.parametrize("with_gl", [True, False])
def test_new_textures(backend: str, gl_context: Any, with_gl: bool) -> None:
    x = pf.Tensor(arranged(PICTURES[:1], "NCHW"))
    if backend != "cpu":
        x = x.to(backend, gl_context)
    with pf.TextureConverter(gl_context if with_gl else None) as converter:
        drawn = converter.to_texture(x, dtype="f4")
        components = 4 if with_gl else 3
        assert read(drawn).shape == (5, 6, components)
        np.testing.assert_allclose(read(drawn)[..., :3], PICTURES[0], atol=1e-6)
        assert read(converter.to_texture(x, size=(12, 10), dtype="f4")).shape == (10, 12, components)
        bytes_ = converter.to_texture(x)
        raw = bytes_ if isinstance(bytes_, np.ndarray) else np.frombuffer(bytes_.read(), np.uint8).reshape(5, 6, 4)
        assert np.abs(raw[..., :3] - PICTURES[0] * 255).max() <= 0.501
        gray = pf.Tensor(PICTURES[:1, ..., 0])
        assert read(converter.to_texture(gray, dtype="f4")).shape == (5, 6, 1)
        assert read(converter.to_texture(gray, transform=TRANSFORM.replace(broadcast=True), dtype="f4")).shape[2] == 4
        many = converter.to_texture(pf.Tensor(arranged(PICTURES, "NCHW")), dtype="f4")
        assert len(many) == 8
        for each, picture in zip(many, PICTURES, strict=True):
            np.testing.assert_allclose(read(each)[..., :3], picture, atol=1e-6)
        with pytest.raises(pf.InputError, match="dtype is one of"):
            converter.to_texture(x, dtype="u4")
        with pytest.raises(pf.InputError, match="a size already"):
            converter.to_texture(x, drawn, size=(3, 3))
        with pytest.raises(pf.InputError, match="a picture is"):
            converter.to_texture(pf.Tensor(np.zeros((2, 2), np.float32)))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize(
    ("mask", "color", "expected"),
    [
        ("a", 1.0, (1, 1, 1, None)),
        ("rgb", (0, 0, 0, 0.25), (None, None, None, 0.25)),
        ("rb", (9, 0.5, 9, 0.75), (None, 0.5, None, 0.75)),
        ("rgba", 0.5, (None, None, None, None)),
    ],
)
def test_masked_channels_have_a_color(
    backend: str, gl_context: Any, source: Any, mask: str, color: Any, expected: Any, dtype: Any
) -> None:
    """Sentis' SetChannelColorMask: the tensor's values, NaN among them, do not reach those channels."""
    values = RANDOM.uniform(0, 1, (1, 4, 5, 6)).astype(np.float32)
    wanted = values[0].transpose(1, 2, 0).copy()
    for channel, value in enumerate(expected):
        if value is not None:
            values[:, channel], wanted[..., channel] = np.nan, value
    how = TRANSFORM.replace(write_mask=mask, masked_color=color)
    x = pf.Tensor(values)
    x = x if backend == "cpu" else x.to(backend, gl_context)
    with pf.TextureConverter(gl_context) as converter:
        if dtype == np.float32:
            target = source(np.full((5, 6, 4), 0.125, np.float32))
            converter.to_texture(x, target, how)
            np.testing.assert_allclose(read(target), wanted, atol=1e-6)
        else:
            target = np.zeros((5, 6, 4), np.uint8)
            converter.to_texture(x, target, how)
            assert np.abs(target - np.minimum(wanted, 1) * 255).max() <= 0.501


def test_masked_channels_of_gray_broadcast_and_converted_colors(backend: str, gl_context: Any, source: Any) -> None:
    gray = pf.Tensor(PICTURES[:1, ..., 0])
    gray = gray if backend == "cpu" else gray.to(backend, gl_context)
    how = TRANSFORM.replace(broadcast=True, write_mask="a", masked_color=0.3, color_conversion="srgb_to_linear")
    with pf.TextureConverter(gl_context) as converter:
        target = source(np.zeros((5, 6, 4), np.float32))
        converter.to_texture(gray, target, how)
        np.testing.assert_allclose(read(target)[..., :3], 0.3, atol=1e-6)  # as given: it is not converted
        np.testing.assert_allclose(read(target)[..., 3], PICTURES[0, ..., 0], atol=1e-6)


@pytest.mark.parametrize("wrong", ["NCH", "NCHWW", "nchw", "", 5, None, "NCCW"])
def test_wrong_layouts(wrong: Any) -> None:
    with pytest.raises(pf.InputError, match="an order of N, C, H and W"):
        TRANSFORM.replace(layout=wrong)


@pytest.mark.parametrize("wrong", [(1, 2, 3), "red", (1, 2, 3, float("nan"))])
def test_wrong_masked_colors(wrong: Any) -> None:
    with pytest.raises(pf.InputError, match="masked_color"):
        TRANSFORM.replace(masked_color=wrong)
