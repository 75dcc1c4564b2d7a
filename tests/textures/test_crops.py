"""Crops by regions that lie on the GPU, or in arrays: each item is what `to_tensor` makes of its region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import ClosedError, InputError
from perframe.tensor import frames
from support import GL_BACKENDS

RANDOM = np.random.default_rng(31)
PICTURE = RANDOM.uniform(0, 1, (23, 19, 3)).astype(np.float32)
ROTATED = np.array([[9, 11, 10, 14, 0.7], [4, 5, 6, 6, -2.0], [12, 3, 30, 8, 0.0]], np.float32)
AFFINE = np.array([[[9, -4, 5], [3, 11, 2]], [[-6, 0, 12], [1, 7, 3]]], np.float32)
HOW = pf.TextureTransform(mean=0.5, std=0.25, swizzle="bgr")


def texture_of(ctx: Any, picture: Any) -> Any:
    return ctx.texture(picture.shape[1::-1], picture.shape[2], picture.tobytes(), dtype="f4")


def expected(picture: Any, regions: Any, size: tuple[int, int], how: pf.TextureTransform) -> Any:
    with pf.TextureConverter() as converter:
        empty = (1, 3, size[1], size[0])
        items = [converter.to_tensor(picture, pf.Tensor.empty(empty), how.replace(region=each)) for each in regions]
    return np.concatenate([item.numpy() for item in items])


@pytest.mark.parametrize("regions", [ROTATED, AFFINE, ROTATED[:1]], ids=["rotated", "affine", "one"])
@pytest.mark.parametrize("resample", ["linear", "nearest"])
@pytest.mark.parametrize("source", ["texture", "array"])
def test_each_item_is_a_crop(backend: str, gl_context: Any, regions: Any, resample: str, source: str) -> None:
    how = HOW.replace(resample=resample)
    given = texture_of(gl_context, PICTURE) if source == "texture" else PICTURE
    wanted = expected(PICTURE, regions, (7, 5), how)
    with pf.TextureConverter(gl_context, backend) as converter:  # type: ignore[arg-type]
        x = pf.Tensor.empty(wanted.shape)
        assert converter.crop(given, regions, x, how) is x
        near = np.isclose(x.numpy(), wanted, atol=1e-4)
    assert near.all() if resample == "linear" else near.mean() > 0.97  # places on an edge may go either way


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN", "HWNC"])
@pytest.mark.parametrize("size", [(7, 5), (8, 4), (16, 8)], ids=["odd", "one strip", "strips"])
@pytest.mark.parametrize("swizzle", ["r", "bgr", "argb"])
def test_other_layouts(backend: str, gl_context: Any, layout: str, size: tuple[int, int], swizzle: str) -> None:
    """Shaders compute strips of 32 elements: of one item or of two, with one, three or four channels side by side."""
    how = pf.TextureTransform(layout=layout, swizzle=swizzle, color_conversion="srgb_to_linear")
    picture = RANDOM.uniform(0, 1, (23, 19, 4)).astype(np.float32)
    with pf.TextureConverter() as converter:
        empty = (1, len(swizzle), size[1], size[0])
        items = [
            converter.to_tensor(picture, pf.Tensor.empty(empty), how.replace(layout="NCHW", region=each)).numpy()
            for each in ROTATED
        ]
    wanted = np.concatenate(items).transpose(["NCHW".index(axis) for axis in layout])
    with pf.TextureConverter(gl_context, backend) as converter:  # type: ignore[arg-type]
        x = converter.crop(texture_of(gl_context, picture), ROTATED, pf.Tensor.empty(wanted.shape), how)
        np.testing.assert_allclose(x.numpy(), wanted, atol=1e-4)


def test_a_region_without_a_size_shows_its_center(backend: str, gl_context: Any) -> None:
    """As a free row of `follow_regions` does."""
    regions = np.array([[0, 0, 0, 0, 0], [9.5, 6.5, 0, 0, 0.4]], np.float32)
    given = PICTURE if backend == "cpu" else texture_of(gl_context, PICTURE)
    with pf.TextureConverter(gl_context, backend) as converter:  # type: ignore[arg-type]
        made = converter.crop(given, pf.Tensor(regions), pf.Tensor.empty((2, 3, 5, 7))).numpy()
    np.testing.assert_allclose(made[0], np.broadcast_to(PICTURE[0, 0, :, None, None], (3, 5, 7)), atol=1e-4)
    np.testing.assert_allclose(made[1], np.broadcast_to(PICTURE[6, 9, :, None, None], (3, 5, 7)), atol=1e-4)
    assert regions[0, 2] == 0


def test_a_texture_that_was_drawn_to(backend: str, gl_context: Any) -> None:
    how = HOW.replace(coord_origin="bottom_left")
    given = texture_of(gl_context, np.ascontiguousarray(PICTURE[::-1]))
    with pf.TextureConverter(gl_context, backend) as converter:  # type: ignore[arg-type]
        x = converter.crop(given, ROTATED, pf.Tensor.empty((3, 3, 5, 7)), how)
        np.testing.assert_allclose(x.numpy(), expected(PICTURE, ROTATED, (7, 5), HOW), atol=1e-4)


@pytest.mark.parametrize("backend", GL_BACKENDS)
def test_a_crop_follows_a_network_without_a_readback(backend: str, gl_context: Any, monkeypatch: Any) -> None:
    """The network's output is the regions, and the next frame has others."""
    graph = pf.FunctionalGraph()
    boxes = graph.add_input("float32", ("n", 5), "boxes")
    model = graph.compile(regions=boxes + 0.25)
    texture = texture_of(gl_context, PICTURE)
    waits: list[str] = []
    monkeypatch.setattr(type(frames.current_frame()), "blocking", lambda self, what, *rest: waits.append(what))
    with (
        pf.Worker(model, backend, gl_context) as worker,  # type: ignore[arg-type]
        pf.TextureConverter(gl_context, backend) as converter,  # type: ignore[arg-type]
    ):
        x = pf.Tensor.empty((3, 3, 5, 7))
        for boxes_now in (ROTATED, ROTATED[::-1]):
            regions = worker.schedule(boxes_now).peek_output()
            converter.crop(texture, regions, x, HOW)
            assert x.backend_type == backend and not waits
            np.testing.assert_allclose(x.numpy(), expected(PICTURE, boxes_now + 0.25, (7, 5), HOW), atol=1e-4)
            waits.clear()


@pytest.mark.parametrize(
    ("regions", "how", "shape", "said"),
    [
        (ROTATED[0], HOW, (1, 3, 5, 7), "regions are float32, n x 5"),
        (ROTATED[:0], HOW, (1, 3, 5, 7), "regions are float32, n x 5"),
        ("here", HOW, (1, 3, 5, 7), "regions are numbers"),
        (pf.Tensor(ROTATED.astype(np.int32)), HOW, (3, 3, 5, 7), "not int32"),
        (ROTATED, HOW, (2, 3, 5, 7), "a batch of 3"),
        (ROTATED, HOW.replace(region=(0, 0, 4, 4)), (3, 3, 5, 7), "no region"),
        (ROTATED, HOW.replace(resample="area"), (3, 3, 5, 7), "linear or nearest"),
        (ROTATED * [1, 1, -1, 1, 1], HOW, (3, 3, 5, 7), r"regions\[0\]: region must have a size"),
    ],
)
def test_what_is_no_crop(regions: Any, how: pf.TextureTransform, shape: tuple[int, ...], said: str) -> None:
    with pf.TextureConverter() as converter, pytest.raises(InputError, match=said):
        converter.crop(PICTURE, regions, pf.Tensor.empty(shape), how)


def test_after_release() -> None:
    converter = pf.TextureConverter()
    converter.release()
    with pytest.raises(ClosedError):
        converter.crop(PICTURE, ROTATED, pf.Tensor.empty((3, 3, 5, 7)))
