"""What GL draws lies bottom row first, and uploaded pictures top row first: the converter tells them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError
from perframe.media import SurfaceTexture

Array = Any
SIZE = (6, 4)
PICTURE = np.random.default_rng(3).integers(0, 256, (4, 6, 4), np.uint8)  # no symmetry
SHAPE = (1, 3, 4, 6)


def planes(picture: Array) -> Array:
    return picture[..., :3].transpose(2, 0, 1)[None].astype(np.float32) / 255


def drawn(ctx: Any, framebuffer: Any) -> None:
    """Draw PICTURE upright, as an application draws: its top ends up at the framebuffer's top."""
    framebuffer.use()
    converter = pf.TextureConverter(ctx)
    how = pf.TextureTransform(resample="nearest")
    x = converter.to_tensor(PICTURE, pf.Tensor.empty((1, 4, 4, 6)))
    converter.render_to_screen(x, how, framebuffer=framebuffer)
    converter.release()


def sampled(ctx: Any, texture: Any, how: pf.TextureTransform | None = None) -> Array:
    converter = pf.TextureConverter(ctx)
    values = converter.to_tensor(texture, pf.Tensor.empty(SHAPE), how).download_to_array()
    converter.release()
    return values


@pytest.mark.parametrize("resample", ["linear", "nearest", "antialias"])
@pytest.mark.parametrize("given", ["texture", "framebuffer", "name", "second attachment"])
def test_what_gl_draws_is_read_upright(gl_context: Any, given: str, resample: str) -> None:
    texture = gl_context.texture(SIZE, 4)
    if given == "second attachment":
        framebuffer = gl_context.framebuffer([gl_context.texture(SIZE, 4), texture])
        drawn(gl_context, gl_context.framebuffer([texture]))
    else:
        framebuffer = gl_context.framebuffer([texture])
        drawn(gl_context, framebuffer)
    source = {"framebuffer": framebuffer, "name": texture.glo}.get(given, texture)
    values = sampled(gl_context, source, pf.TextureTransform(resample=resample))
    np.testing.assert_allclose(values, planes(PICTURE), atol=2e-3)


def test_uploaded_pictures_are_read_upright(gl_context: Any) -> None:
    written = gl_context.texture(SIZE, 4, PICTURE.tobytes())
    for texture in (written, written.glo, PICTURE):
        np.testing.assert_allclose(sampled(gl_context, texture), planes(PICTURE), atol=1e-6)


def test_an_explicit_origin_wins(gl_context: Any) -> None:
    texture = gl_context.texture(SIZE, 4, PICTURE.tobytes())
    framebuffer = gl_context.framebuffer([texture])
    for origin, expected in (("top_left", PICTURE), ("bottom_left", PICTURE[::-1])):
        how = pf.TextureTransform(coord_origin=origin)
        for given in (texture, framebuffer, texture.glo):
            np.testing.assert_allclose(sampled(gl_context, given, how), planes(expected), atol=1e-6)


def test_a_framebuffer_made_later_counts(gl_context: Any) -> None:
    texture = gl_context.texture(SIZE, 4, PICTURE.tobytes())
    converter, x = pf.TextureConverter(gl_context), pf.Tensor.empty(SHAPE)
    converter.to_tensor(texture, x)
    framebuffer = gl_context.framebuffer([texture])
    drawn(gl_context, framebuffer)
    values = converter.to_tensor(texture, x).download_to_array()
    np.testing.assert_allclose(values, planes(PICTURE), atol=2e-3)
    framebuffer.release()  # its picture stays as it was drawn
    values = converter.to_tensor(texture, x).download_to_array()
    np.testing.assert_allclose(values, planes(PICTURE), atol=2e-3)


def test_a_framebuffer_made_after_many_uses_is_found(gl_context: Any) -> None:
    texture = gl_context.texture(SIZE, 4, PICTURE.tobytes())
    converter, x = pf.TextureConverter(gl_context), pf.Tensor.empty(SHAPE)
    for _ in range(5):
        converter.to_tensor(texture, x)
    framebuffer = gl_context.framebuffer([texture])
    drawn(gl_context, framebuffer)
    for _ in range(3):  # GL is asked again at the eighth use
        values = converter.to_tensor(texture, x).download_to_array()
    np.testing.assert_allclose(values, planes(PICTURE), atol=2e-3)


@pytest.mark.parametrize("earlier", [600, 2500, 12_000])
def test_a_framebuffer_after_many_that_are_gone_is_found(gl_context: Any, earlier: int) -> None:
    """Drivers count on, so its name is far from the next smaller one."""
    other = gl_context.texture(SIZE, 4)
    for _ in range(earlier):
        gl_context.framebuffer([other]).release()
    texture = gl_context.texture(SIZE, 4)
    framebuffer = gl_context.framebuffer([texture])
    drawn(gl_context, framebuffer)
    bound = gl_context.framebuffer([other])
    bound.use()
    bound.release()  # now none is
    np.testing.assert_allclose(sampled(gl_context, texture), planes(PICTURE), atol=2e-3)
    framebuffer.release()


def test_a_released_texture_says_nothing_of_the_next_of_its_name(gl_context: Any) -> None:
    texture = gl_context.texture(SIZE, 4)
    framebuffer = gl_context.framebuffer([texture])
    sampled(gl_context, framebuffer)
    framebuffer.release()
    texture.release()
    again = gl_context.texture(SIZE, 4, PICTURE.tobytes())
    for given in (again, again.glo):
        np.testing.assert_allclose(sampled(gl_context, given), planes(PICTURE), atol=1e-6)


def test_converter_upload_makes_a_picture(gl_context: Any, caplog: pytest.LogCaptureFixture) -> None:
    texture = gl_context.texture(SIZE, 4)
    framebuffer = gl_context.framebuffer([texture])  # to look at it, say
    converter = pf.TextureConverter(gl_context)
    converter.upload(PICTURE, texture)
    for _ in range(3):
        values = converter.to_tensor(texture, pf.Tensor.empty(SHAPE)).download_to_array()
        np.testing.assert_allclose(values, planes(PICTURE), atol=1e-6)
    framebuffer.release()
    (said,) = [record.message for record in caplog.records if "coord_origin" in record.message]
    assert "attached to a framebuffer" in said, "GL may have drawn into it since"


def test_a_region_counts_from_the_top_of_what_was_drawn(gl_context: Any) -> None:
    texture = gl_context.texture(SIZE, 4)
    drawn(gl_context, gl_context.framebuffer([texture]))
    converter = pf.TextureConverter(gl_context)
    x = converter.to_tensor(texture, pf.Tensor.empty((1, 3, 2, 3)), pf.TextureTransform(region=(1, 0, 3, 2)))
    np.testing.assert_allclose(x.download_to_array(), planes(PICTURE[:2, 1:4]), atol=2e-3)


def test_tensors_are_drawn_the_way_they_are_read(gl_context: Any, backend: str) -> None:
    converter = pf.TextureConverter(gl_context, backend)
    for attach in (False, True):
        texture = gl_context.texture(SIZE, 4)
        framebuffer = gl_context.framebuffer([texture]) if attach else None
        x = converter.to_tensor(PICTURE, pf.Tensor.empty((1, 4, 4, 6)))
        converter.to_texture(x, texture)
        stored = np.frombuffer(texture.read(), np.uint8).reshape(PICTURE.shape)
        np.testing.assert_array_equal(stored, PICTURE[::-1] if attach else PICTURE)
        again = converter.to_tensor(texture, pf.Tensor.empty(SHAPE)).download_to_array()
        np.testing.assert_allclose(again, planes(PICTURE), atol=1e-6)
        assert framebuffer is None or framebuffer.color_attachments[0] is texture


def test_layers_of_a_drawn_array_texture(gl_context: Any) -> None:
    texture = gl_context.texture_array((*SIZE, 2), 4, PICTURE.tobytes() * 2)
    x = pf.TextureConverter(gl_context).to_tensor(texture, pf.Tensor.empty((2, 3, 4, 6)))
    np.testing.assert_allclose(x.download_to_array()[1:], planes(PICTURE), atol=1e-6)


def test_a_captured_surface_is_upright(gl_context: Any) -> None:
    screen = gl_context.framebuffer([gl_context.texture(SIZE, 4)])
    drawn(gl_context, screen)
    capture = SurfaceTexture(gl_context, SIZE)
    values = sampled(gl_context, capture.capture(screen))
    np.testing.assert_allclose(values, planes(PICTURE), atol=2e-3)


def test_a_framebuffer_without_a_texture_is_an_error(gl_context: Any) -> None:
    framebuffer = gl_context.simple_framebuffer(SIZE)  # of renderbuffers
    with pytest.raises(InputError, match="attach one"):
        sampled(gl_context, framebuffer)


def test_asking_leaves_the_state_of_gl(gl_context: Any) -> None:
    texture, other = gl_context.texture(SIZE, 4), gl_context.framebuffer([gl_context.texture(SIZE, 4)])
    other.use()
    while gl_context.error != "GL_NO_ERROR":
        pass  # of tests before this one
    pf.TextureConverter(gl_context).to_tensor(texture, pf.Tensor.empty(SHAPE))
    assert gl_context.fbo is other
    assert gl_context.error == "GL_NO_ERROR"
