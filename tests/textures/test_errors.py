"""Objects that are no picture, or that cannot be drawn into, are errors before any work."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import moderngl
import numpy as np
import pytest

import perframe as pf
from support import unavailable

PICTURE = np.zeros((4, 5, 3), np.uint8)
TRANSFORM = pf.TextureTransform()


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        ((4, 5), "float32", "rank 3"),
        ((2, 3, 4, 5), "float32", "batch of 1"),
        ((1, 1, 3, 4, 5), "float32", "rank 3"),
        ((3, 4, 5), "int32", "tensor of float32, float16, uint8"),
        ((3, 4, 5), "float64", "tensor of float32, float16, uint8"),
        ((5, 4, 5), "float32", "one to four channels"),
        ((0, 4, 5), "float32", "one to four channels"),
        ((3, 0, 5), "float32", "pixels"),
    ],
)
@pytest.mark.parametrize("with_gl", [True, False], ids=["gl", "arrays"])
def test_tensors_that_are_no_pictures(shape: Any, dtype: str, says: str, with_gl: bool, gl_context: Any) -> None:
    converter = pf.TextureConverter(gl_context if with_gl else None)
    texture: Any = gl_context.texture((5, 4), 3) if with_gl else PICTURE.copy()
    tensor = pf.Tensor.empty(shape, dtype)
    with pytest.raises(pf.InputError, match=says):
        converter.to_tensor(texture, tensor)
    with pytest.raises(pf.InputError, match=says):
        converter.to_texture(tensor, texture)
    with pytest.raises(pf.InputError, match=says):
        converter.render_to_screen(tensor)
    assert not tensor.is_pinned


@pytest.mark.parametrize(("layout", "other", "shape"), [("NCHW", "NHWC", (1, 6, 8, 3)), ("NHWC", "NCHW", (1, 3, 6, 8))])
def test_the_other_layout_is_advised_where_it_fits(layout: str, other: str, shape: Any) -> None:
    tensor = pf.Tensor.empty(shape)
    tensor.name = "picture"
    says = rf"'picture' .* as {layout} has . channels.*layout=\"{other}\""
    with pytest.raises(pf.InputError, match=says):
        pf.TextureConverter().to_tensor(PICTURE, tensor, TRANSFORM.replace(layout=layout))


def test_a_swizzle_must_name_every_channel(gl_context: Any) -> None:
    for converter, texture in (
        (pf.TextureConverter(gl_context), gl_context.texture((5, 4), 4)),
        (pf.TextureConverter(), PICTURE),
    ):
        with pytest.raises(pf.InputError, match="'bgr' says nothing of channel 3"):
            converter.to_tensor(texture, pf.Tensor.empty((4, 4, 5)), TRANSFORM.replace(swizzle="bgr"))


@pytest.mark.parametrize(
    "change",
    [
        lambda: TRANSFORM.replace(region=(0, 0, 0, 4)),
        lambda: TRANSFORM.replace(region=(0, 0, 4, -1)),
        lambda: TRANSFORM.replace(resample="cubic"),
        lambda: TRANSFORM.replace(swizzle="rgbx"),
        lambda: TRANSFORM.replace(swizzle=""),
        lambda: TRANSFORM.replace(swizzle="rgbar"),
        lambda: TRANSFORM.replace(coord_origin="middle"),
        lambda: TRANSFORM.replace(mean=0.5, std=0.0),
        lambda: TRANSFORM.replace(mean=0.5, std=[1, 0, 1]),
        lambda: TRANSFORM.replace(mean=[1] * 5, std=1),
        lambda: TRANSFORM.replace(mean=[], std=1),
        lambda: TRANSFORM.replace(layout="CHW"),
        lambda: TRANSFORM.replace(region=("a", 0, 1, 1)),
        lambda: TRANSFORM.replace(region=(0, 0, float("nan"), 1)),
        lambda: TRANSFORM.replace(region=(0, None, 1, 1)),
        lambda: TRANSFORM.replace(swizzle=5),
        lambda: TRANSFORM.replace(mean="mean", std=1),
        lambda: TRANSFORM.replace(mean=None, std=1),
        lambda: TRANSFORM.replace(mean=0, std=float("nan")),
        lambda: TRANSFORM.replace(mean=[[1, 2], [3]], std=1),
        lambda: TRANSFORM.replace(coord_origin=5),
        lambda: TRANSFORM.replace(mean=0.5, range=(0, 255)),
        lambda: TRANSFORM.replace(origin="bottom_left"),
        lambda: TRANSFORM.replace(region=(1, 2, 3)),
        lambda: TRANSFORM.replace(range=(0, 1, 2)),
        lambda: TRANSFORM.replace(layout=[]),
    ],
)
def test_transforms(change: Callable[[], Any]) -> None:
    with pytest.raises(pf.InputError):
        change()


def test_setters_return_copies() -> None:
    changed = TRANSFORM.replace(region=(1, 2, 3, 4), swizzle="bgr")
    assert TRANSFORM == pf.TextureTransform() != changed
    assert (changed.region, changed.swizzle) == ((1, 2, 3, 4), "bgr")


@pytest.mark.parametrize(
    "picture",
    [
        np.zeros(5, np.uint8),
        np.zeros((1, 4, 5, 3), np.uint8),
        np.zeros((4, 5, 5), np.uint8),
        np.zeros((0, 5, 3), np.uint8),
        np.zeros((4, 5, 3), np.uint16),
        np.zeros((4, 5, 3), np.float64),
        np.zeros((4, 5, 3), bool),
    ],
    ids=lambda picture: f"{picture.dtype}-{picture.shape}",
)
def test_arrays_that_are_no_pictures(picture: Any) -> None:
    converter = pf.TextureConverter()
    x = pf.Tensor(np.zeros((3, 4, 5), np.float32))
    with pytest.raises(pf.InputError, match="uint8 or float32"):
        converter.to_tensor(picture, x)
    with pytest.raises(pf.InputError, match="uint8 or float32"):
        converter.to_texture(x, picture)


def test_a_read_only_array_takes_no_drawing() -> None:
    """And of a batch, nothing is drawn."""
    first, frozen = PICTURE.copy(), np.frombuffer(PICTURE.tobytes(), np.uint8).reshape(PICTURE.shape)
    x = pf.Tensor(np.zeros((2, 3, 4, 5), np.float32))
    with pytest.raises(pf.InputError, match="read-only"):
        pf.TextureConverter().to_texture(x, [first, frozen])
    assert np.array_equal(first, PICTURE)


def test_a_grey_array_needs_no_third_dim() -> None:
    converter, x = pf.TextureConverter(), pf.Tensor.empty((1, 4, 5))
    grey = np.arange(20, dtype=np.uint8).reshape(4, 5)
    converter.to_tensor(grey, x)
    np.testing.assert_allclose(x.download_to_array()[0] * 255, grey, atol=1e-4)
    drawn = np.zeros((4, 5), np.uint8)
    converter.to_texture(x, drawn)
    np.testing.assert_array_equal(drawn, grey)


def test_textures_need_a_context(gl_context: Any) -> None:
    converter, texture, x = (
        pf.TextureConverter(),
        gl_context.texture((5, 4), 3),
        pf.Tensor(np.zeros((3, 4, 5), np.float32)),
    )
    for use in (
        lambda: converter.to_tensor(texture, x),
        lambda: converter.to_texture(x, texture),
        lambda: converter.to_tensor(7, x),
        lambda: converter.render_to_screen(x),
    ):
        with pytest.raises(pf.InputError, match="no GL context"):
            use()


def test_things_that_are_no_textures(backend: str, gl_context: Any) -> None:
    x = pf.Tensor(np.zeros((3, 4, 5), np.float32))
    whole, many = gl_context.texture((5, 4), 4, dtype="u1"), gl_context.texture((5, 4), 4, samples=4)
    with pf.TextureConverter(gl_context, backend) as converter:
        for texture in (
            "picture.png",
            3.5,
            gl_context.buffer(reserve=80),
            10**6,
            0,
            whole,
            True,
            whole.glo,
            many,
            many.glo,
            [gl_context.texture_array((5, 4, 1), 4)],
        ):
            with pytest.raises(pf.InputError):
                converter.to_tensor(texture, pf.Tensor.empty((3, 4, 5)))
            with pytest.raises(pf.InputError):
                converter.to_texture(x, texture)
        with pytest.raises(pf.InputError, match="not NoneType"):
            converter.to_tensor(None, x)
        with pytest.raises(pf.InputError, match="Framebuffer, not Texture"):
            converter.render_to_screen(x, framebuffer=gl_context.texture((5, 4), 4))
    assert gl_context.error == "GL_NO_ERROR"


def test_a_texture_that_cannot_be_drawn_into(gl_context: Any) -> None:
    """Compressed and shared-exponent formats, for one."""
    texture = gl_context.texture((4, 4), 3, dtype="f4", internal_format=0x8C3D)  # RGB9_E5
    gl_context.error  # noqa: B018
    with pf.TextureConverter(gl_context) as converter, pytest.raises(pf.InputError, match="cannot draw into"):
        converter.to_texture(pf.Tensor(np.zeros((3, 4, 4), np.float32)), texture)


@pytest.mark.parametrize("with_gl", [True, False], ids=["gl", "arrays"])
def test_arguments_of_other_types(with_gl: bool, gl_context: Any) -> None:
    converter: Any = pf.TextureConverter(gl_context if with_gl else None)
    texture: Any = gl_context.texture((5, 4), 3) if with_gl else PICTURE.copy()
    x = pf.Tensor(np.zeros((3, 4, 5), np.float32))
    with pytest.raises(pf.InputError, match=r"perframe\.Tensor, not NoneType"):
        converter.to_texture(None, texture)
    for tensor in (np.zeros((3, 4, 5), np.float32), texture, "x"):
        for use in (
            lambda: converter.to_tensor(texture, tensor),  # noqa: B023
            lambda: converter.to_texture(tensor),  # noqa: B023
            lambda: converter.to_texture(tensor, texture),  # noqa: B023
            lambda: converter.render_to_screen(tensor),  # noqa: B023
        ):
            with pytest.raises(pf.InputError, match=f"perframe.Tensor, not {type(tensor).__name__}"):
                use()
    for transform in ({}, {"mean": 1}, "NHWC", pf.TextureTransform):
        for use in (
            lambda: converter.to_tensor(texture, x, transform),  # noqa: B023
            lambda: converter.to_texture(x, texture, transform),  # noqa: B023
            lambda: converter.render_to_screen(x, transform),  # noqa: B023
        ):
            with pytest.raises(pf.InputError, match=r"transform is a perframe\.TextureTransform, not "):
                use()
    with pytest.raises(pf.InputError, match="mean has 2 numbers for the 3 channels"):
        converter.to_tensor(texture, x, TRANSFORM.replace(mean=(1, 2), std=1))


@pytest.mark.parametrize("viewport", ["abcd", (1, 2, 3), (0, 0, -1, 4), (0.5, 0, 3, 3), 5])
def test_viewports(gl_context: Any, viewport: Any) -> None:
    with pytest.raises(pf.InputError, match="a viewport is x, y, width and height"):
        pf.TextureConverter(gl_context).render_to_screen(pf.Tensor(np.zeros((3, 4, 5), np.float32)), viewport=viewport)


def test_a_minimised_window_has_nothing_to_draw_into(gl_context: Any) -> None:
    with pf.TextureConverter(gl_context) as converter:
        converter.render_to_screen(pf.Tensor(np.zeros((3, 4, 5), np.float32)), viewport=(0, 0, 0, 0))
    assert gl_context.error == "GL_NO_ERROR"


def test_textures_and_framebuffers_that_were_released(backend: str, gl_context: Any) -> None:
    x = pf.Tensor(np.zeros((3, 4, 5), np.float32))
    texture = gl_context.texture((5, 4), 4)
    framebuffer = gl_context.framebuffer([gl_context.texture((5, 4), 4)])
    texture.release()
    framebuffer.release()
    with pf.TextureConverter(gl_context, backend) as converter:
        for use in (
            lambda: converter.to_tensor(texture, x),
            lambda: converter.to_texture(x, texture),
            lambda: converter.render_to_screen(x, framebuffer=framebuffer),
        ):
            with pytest.raises(pf.ClosedError, match=r"this moderngl\.\w+ was released"):
                use()
    assert gl_context.error == "GL_NO_ERROR"


def test_textures_and_framebuffers_of_another_context(gl_context: Any) -> None:
    other = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    texture = other.texture((5, 4), 4)
    framebuffer = other.framebuffer([texture])
    gl_context.__enter__()
    x = pf.Tensor(np.zeros((3, 4, 5), np.float32))
    with pf.TextureConverter(gl_context) as converter:
        for use in (
            lambda: converter.to_tensor(texture, x),
            lambda: converter.to_texture(x, texture),
            lambda: converter.render_to_screen(x, framebuffer=framebuffer),
        ):
            with pytest.raises(pf.InputError, match=r"belongs to another moderngl\.Context"):
                use()
    other.__enter__()
    other.release()
    gl_context.__enter__()


def test_names_as_numpy_has_them(gl_context: Any) -> None:
    """PyOpenGL's glGenTextures gives such."""
    texture, x = gl_context.texture((5, 4), 4, bytes([255] * 80)), pf.Tensor.empty((3, 4, 5))
    with pf.TextureConverter(gl_context) as converter:
        assert converter.to_tensor(np.uint32(texture.glo), x).download_to_array().min() == 1
        converter.to_texture(pf.Tensor(np.zeros((3, 4, 5), np.float32)), np.uint32(texture.glo))
    assert max(texture.read()[:3]) == 0


def test_backends() -> None:
    with pytest.raises(pf.InputError, match="no backend 'gpu'"):
        pf.TextureConverter(None, "gpu")


@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
def test_a_tensor_of_another_context(where: str, gl_context: Any) -> None:
    """Names mean other things there: the values would go anywhere."""
    if where == "gpu_compute" and gl_context.version_code < 430:
        unavailable("gpu_compute needs GL 4.3")
    other = moderngl.create_context(standalone=True, backend="egl", require=gl_context.version_code)
    with pf.TextureConverter(other, where) as converter:
        x = converter.to_tensor(other.texture((5, 4), 4), pf.Tensor.empty((3, 4, 5)))
        gl_context.__enter__()
        texture = gl_context.texture((5, 4), 4)
        with pf.TextureConverter(gl_context) as ours:
            for use in (
                lambda: ours.to_tensor(texture, x),
                lambda: ours.to_texture(x, texture),
                lambda: ours.render_to_screen(x),
            ):
                with pytest.raises(pf.InputError, match=r"another GL context.*same ctx"):
                    use()
        other.__enter__()
    other.release()
    gl_context.__enter__()


def test_former_setters_warn_and_still_change_a_copy() -> None:
    former: Any = TRANSFORM
    with pytest.warns(DeprecationWarning, match=r"set_range\(\) is deprecated: use TextureTransform"):
        made = former.set_range(0, 255)
    with pytest.warns(DeprecationWarning):
        assert made.set_region(1, 2, 3, 4).set_letterbox(0.5, "top_left").set_broadcast() == pf.TextureTransform(
            range=(0, 255), region=(1, 2, 3, 4), letterbox=0.5, letterbox_align="top_left", broadcast=True
        )
    with pytest.raises(AttributeError, match="no attribute 'set_size'"):
        former.set_size(3)
    assert copy.copy(pickle.loads(pickle.dumps(made))) == made
