"""Frames of video in the converter: to tensors, to crops, to textures, without a conversion on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.test_counts import Allocations, steady
from media.yuv import random_frame, seen, shown
from perframe.graphics.yuv import YuvFrame
from perframe.media import Picture
from perframe.media.planes import FrameReader

HOWS = [
    pf.TextureTransform(),
    pf.TextureTransform(resample="antialias", letterbox=0.5),
    pf.TextureTransform(resample="nearest", region=(3.5, 2, 30, 20)),
    pf.TextureTransform(resample="mipmap", mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)),
    pf.TextureTransform(layout="NHWC", swizzle="bgr", color_conversion="srgb_to_linear"),
]


def picture_of(seed: int, form: str = "nv12", size: tuple[int, int] = (63, 47)) -> tuple[Picture, Any]:
    """A smooth frame, and its colors by swscale."""
    frame = random_frame(form, size, 1, False, np.random.default_rng(seed), "smooth")
    return Picture(FrameReader().read(frame), seed, 0.0), shown(frame, 1).astype(np.uint8)


def close(tensor: pf.Tensor, wanted: Any, how: pf.TextureTransform) -> None:
    """Compare with what one step of a byte may change."""
    steps = 13 if how.color_conversion != "none" else 1.02 / min(how.std if how.std is not None else [1.0])
    np.testing.assert_allclose(tensor.download_to_array(), wanted, atol=steps / 255)


def test_a_tensor_has_the_frames_colors(gl_context: Any, where: str) -> None:
    with pf.TextureConverter(gl_context, where) as converter, pf.TextureConverter() as reference:
        for index, how in enumerate(HOWS):
            picture, pixels = picture_of(index)
            shape = (1, 20, 33, 3) if how.layout == "NHWC" else (1, 3, 20, 33)
            wanted = reference.to_tensor(pixels, pf.Tensor.empty(shape), how).download_to_array()
            tensor = converter.to_tensor(picture, pf.Tensor.empty(shape), how)
            assert tensor.backend_type == where
            close(tensor, wanted, how)
            made = converter.to_tensor(picture, transform=how)
            assert sorted(made.shape[1:])[0] == 3, "as for an array of RGB"


def test_a_tensor_on_the_cpu_has_the_pixels(gl_context: Any) -> None:
    picture, _ = picture_of(1)
    with pf.TextureConverter() as alone, pf.TextureConverter(gl_context, "cpu") as beside:
        wanted = alone.to_tensor(picture.pixels).download_to_array()
        for converter in (alone, beside):
            np.testing.assert_array_equal(converter.to_tensor(picture).download_to_array(), wanted)
            batch = converter.to_tensor([picture, picture])
            np.testing.assert_array_equal(batch.download_to_array(), np.concatenate([wanted, wanted]))
    with pf.TextureConverter(gl_context) as converter:
        tensor = converter.to_tensor(picture, pf.Tensor(np.zeros(wanted.shape, np.float32)))
        assert np.abs(tensor.download_to_array() - wanted).max() < 9 / 255


def test_a_batch_of_frames_and_textures(gl_context: Any, where: str) -> None:
    """Frames of one size share a texture, one after the other."""
    pairs = [picture_of(index, form) for index, form in enumerate(("nv12", "yuv420p", "yuyv422"))]
    texture = gl_context.texture((63, 47), 3, pairs[0][1].tobytes(), alignment=1)
    with pf.TextureConverter(gl_context, where) as converter:
        given = [*(picture for picture, _ in pairs), texture]
        tensor = converter.to_tensor(given, pf.Tensor.empty((4, 3, 47, 63)))
        for got, pixels in zip(
            tensor.download_to_array(), [*(pixels for _, pixels in pairs), pairs[0][1]], strict=True
        ):
            np.testing.assert_allclose(got, pixels.transpose(2, 0, 1) / 255, atol=1.02 / 255)


def test_crops_of_a_frame(gl_context: Any, where: str) -> None:
    picture, pixels = picture_of(3, "p010le")
    regions = np.array([[20, 20, 15, 12, 0.3], [40, 30, 30, 20, -0.5]], np.float32)
    with pf.TextureConverter(gl_context, where) as converter, pf.TextureConverter() as reference:
        tensor, wanted = pf.Tensor.empty((2, 3, 8, 9)), pf.Tensor.empty((2, 3, 8, 9))
        converter.crop(picture, regions, tensor)
        reference.crop(pixels, regions, wanted)
        np.testing.assert_allclose(tensor.download_to_array(), wanted.download_to_array(), atol=1.5 / 255)
        on_cpu = reference.crop(picture, regions, pf.Tensor.empty((2, 3, 8, 9)))
        wanted = reference.crop(picture.pixels, regions, pf.Tensor.empty((2, 3, 8, 9)))
        np.testing.assert_array_equal(on_cpu.download_to_array(), wanted.download_to_array())


@pytest.mark.parametrize("dtype", ["f1", "f2", "f4"])
def test_an_upload_draws_the_frame(dtype: str, gl_context: Any) -> None:
    """Also into a texture that GL has drawn into: from now on its first row is the top one."""
    picture, pixels = picture_of(4, "yuv444p")
    texture = gl_context.texture((63, 47), 4, dtype=dtype)
    gl_context.framebuffer([texture]).clear()
    with pf.TextureConverter(gl_context) as converter:
        converter.upload(picture, texture)
        tensor = converter.to_tensor(texture, pf.Tensor.empty((1, 3, 47, 63)))
    np.testing.assert_allclose(tensor.download_to_array()[0], pixels.transpose(2, 0, 1) / 255, atol=1.02 / 255)


def test_an_upload_into_srgb_keeps_the_bytes(gl_context: Any) -> None:
    picture, pixels = picture_of(5)
    texture = gl_context.texture((63, 47), 4, internal_format=0x8C43)  # SRGB8_ALPHA8
    with pf.TextureConverter(gl_context) as converter:
        converter.upload(picture, texture)
    assert np.abs(seen(texture) - pixels).max() <= 1


def test_a_picture_of_pixels_is_an_array(gl_context: Any, backend: str) -> None:
    pixels = np.random.default_rng(6).integers(0, 256, (9, 17, 3), np.uint8)
    texture = gl_context.texture((17, 9), 3, alignment=1)
    with pf.TextureConverter(gl_context, backend) as converter:  # type: ignore[arg-type]
        converter.upload(Picture(pixels, 0, 0.0), texture)
        assert texture.read(alignment=1) == pixels.tobytes()
        tensor = converter.to_tensor(Picture(pixels, 0, 0.0))
        np.testing.assert_array_equal(tensor.download_to_array(), converter.to_tensor(pixels).download_to_array())


def test_steady_frames_allocate_nothing(gl_context: Any, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [picture_of(index)[0] for index in range(3)] + [picture_of(3, "yuv420p", (80, 30))[0]]
    texture = gl_context.texture((63, 47), 4)
    count = Allocations(monkeypatch, gl_context)
    with pf.TextureConverter(gl_context, where) as converter:
        tensor = pf.Tensor.empty((1, 3, 20, 20))
        transform = pf.TextureTransform(resample="antialias")

        def frame(index: int) -> None:
            converter.upload(pictures[index % 3], texture)
            converter.to_tensor(pictures[(index + 1) % 3], tensor, transform)
            converter.to_tensor(pictures[3], tensor, transform)

        assert steady(frame, count) == []
        assert np.abs(seen(texture) - picture_of(10 % 3)[1]).max() <= 1


def test_the_frame_is_copied_when_the_call_returns(gl_context: Any) -> None:
    """The decoder's memory may be used again."""
    textures = [gl_context.texture((63, 47), 4) for _ in range(4)]
    pairs = [picture_of(index, "yuv420p") for index in range(4)]
    with pf.TextureConverter(gl_context) as converter:
        for (picture, _), texture in zip(pairs, textures, strict=True):
            converter.upload(picture, texture)
            assert isinstance(picture.content, YuvFrame)
            for plane in picture.content.planes:
                memory: Any = plane.base
                while isinstance(memory, np.ndarray):
                    memory = memory.base
                np.frombuffer(memory, np.uint8)[:] = 0
    for (_, pixels), texture in zip(pairs, textures, strict=True):
        assert np.abs(seen(texture) - pixels).max() <= 1


def test_mistakes(gl_context: Any) -> None:
    picture, _ = picture_of(7)
    with pf.TextureConverter(gl_context) as converter:
        for size, components in (((62, 47), 4), ((47, 63), 4), ((63, 47), 3), ((63, 47), 1)):
            with pytest.raises(pf.InputError, match="63×47 is uploaded into a texture of its size with 4 components"):
                converter.upload(picture, gl_context.texture(size, components))
        with pytest.raises(pf.InputError, match=r"uploaded into a moderngl\.Texture, not int"):
            converter.upload(picture, 3)
        released = gl_context.texture((63, 47), 4)
        released.release()
        with pytest.raises(pf.ClosedError):
            converter.upload(picture, released)
    with pytest.raises(pf.InputError, match="no GL context"):
        pf.TextureConverter().upload(picture, None)
