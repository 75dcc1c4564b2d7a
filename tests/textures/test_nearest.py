"""Nearest pixels where a sample lies exactly between two: arrays, textures, and both origins agree."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.textures.parameters import Row

NEAREST = pf.TextureTransform(resample="nearest")
SIZES = [
    ((8, 8), (4, 4)),
    ((8, 8), (16, 16)),
    ((37, 23), (19, 31)),
    ((64, 64), (11, 22)),
    ((100, 100), (30, 30)),
    ((640, 480), (240, 320)),
]
REGIONS = [None, (-3.5, 4.25, 30, 25.5), (-4, 4, 30, 25), (0.5, 0.5, 7, 7), (1 / 3, 2 / 7, 9.1, 11.7)]


def picture_of(size: tuple[int, int]) -> Any:
    """Every pixel differs from its neighbours."""
    y, x = np.mgrid[: size[1], : size[0]]
    return np.stack([(7 * x + 31 * y) % 251, (53 * x + 3 * y) % 241, (29 * x + 17 * y) % 233], -1).astype(np.uint8)


def transform(origin: str, region: Any) -> pf.TextureTransform:
    how = NEAREST.replace(coord_origin=origin)
    return how.replace(region=region, letterbox=0.5, letterbox_align="top_left") if region else how


@pytest.mark.parametrize(("size", "out"), SIZES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("origin", ["top_left", "bottom_left"])
def test_textures_and_arrays_take_the_same_pixels(
    size: tuple[int, int], out: tuple[int, int], region: Any, origin: str, backend: str, gl_context: Any
) -> None:
    upright, how = picture_of(size), transform(origin, region)
    rows = np.ascontiguousarray(upright if origin == "top_left" else upright[::-1])
    found = pf.TextureConverter().to_tensor(rows, pf.Tensor.empty((3, *out)), how).download_to_array()
    seen = pf.TextureConverter().to_tensor(upright, pf.Tensor.empty((3, *out)), transform("top_left", region))
    np.testing.assert_array_equal(found, seen.download_to_array(), "the origin says nothing of the picture")
    texture = gl_context.texture(size, 3, rows.tobytes(), alignment=1)
    with pf.TextureConverter(gl_context, backend) as converter:
        on_gpu = converter.to_tensor(texture, pf.Tensor.empty((3, *out)), how).download_to_array()
    np.testing.assert_allclose(on_gpu, found, atol=1e-6)


@pytest.mark.parametrize(("size", "out"), SIZES)
@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("origin", ["top_left", "bottom_left"])
def test_drawing_into_textures_and_arrays_takes_the_same_elements(
    size: tuple[int, int], out: tuple[int, int], region: Any, origin: str, backend: str, gl_context: Any
) -> None:
    values = picture_of(out[::-1]).transpose(2, 0, 1).astype(np.float32) / 255
    how = transform(origin, region)
    drawn, texture = (
        np.zeros((size[1], size[0], 4), np.uint8),
        gl_context.texture(size, 4, bytes(4 * size[0] * size[1])),
    )
    pf.TextureConverter().to_texture(pf.Tensor(values), drawn, how)
    with pf.TextureConverter(gl_context, backend) as converter:
        converter.to_texture(pf.Tensor(values), texture, how)
    on_gpu = np.frombuffer(texture.read(), np.uint8).reshape(drawn.shape)
    np.testing.assert_array_equal(on_gpu, drawn)


def test_halves_go_to_the_right_and_down() -> None:
    found = pf.TextureConverter().to_tensor(picture_of((8, 8)), pf.Tensor.empty((3, 4, 4)), NEAREST).download_to_array()
    np.testing.assert_allclose(found, picture_of((8, 8))[1::2, 1::2].transpose(2, 0, 1) / np.float32(255))


@settings(suppress_health_check=[HealthCheck.too_slow])  # it is a busy machine that is slow
@given(
    st.fractions(-400, 400, max_denominator=64),
    st.fractions(-20, 20, max_denominator=64),
    st.integers(1, 300),
)
def test_rows_are_exact(begin: Fraction, step: Fraction, count: int) -> None:
    row = Row.of(begin, step, count)
    assert row.indices(count).tolist() == [floor(begin + index * step) for index in range(count)]


@given(st.floats(-1e30, 1e30), st.floats(1e-30, 1e30), st.integers(1, 40_000))
def test_rows_fit_into_32_bits(begin: float, step: float, count: int) -> None:
    row = Row.of(Fraction(begin), Fraction(step), count)
    last = count - 1
    for number in (row.first, last * row.whole, row.first + last * row.whole, row.rest + last * row.part, row.parts):
        assert -(2**31) <= number < 2**31
    assert row.parts > 0 and 0 <= row.rest <= row.parts and 0 <= row.part <= row.parts
