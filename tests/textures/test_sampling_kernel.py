"""Pictures in memory, sampled by the compiled kernel: as NumPy samples them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import waiting_for_kernels
from perframe.backends.cpu import pictures
from perframe.backends.cpu.compile import jit
from perframe.tensor import DataType
from perframe.textures import arrays

TILTED = np.array([[20.0, 1.0, 2.0], [3.0, 15.0, -4.0], [0.1, 0.2, 1.0]])


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the kernel did each picture of the test."""
    found: list[bool] = []

    def sample(*given: Any) -> bool:
        found.append(pictures.sample(*given))
        return found[-1]

    monkeypatch.setattr(arrays, "picture_sampler", lambda: sample)
    return found


def by_numpy(picture: Any, how: pf.TextureTransform, dims: tuple[int, int, int], dtype: DataType) -> Any:
    """What `sample` makes while the kernel is being compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "picture_sampler", lambda: lambda *given: False)
        return arrays.sample(picture, how, dims, dtype)


def drawn(seed: int) -> tuple[Any, dict[str, Any], tuple[int, int, int]]:
    """A picture in memory of some order, settings, and the dims of a tensor."""
    random = np.random.default_rng(seed)
    height, width, channels = random.integers(1, 40, 2).tolist() + random.integers(1, 5, 1).tolist()
    picture = random.integers(0, 256, (height, width, channels)).astype(np.uint8)
    if seed % 2:
        picture = random.normal(size=picture.shape).astype(np.float32)
    turned = (np.asarray, lambda x: x[::-1], lambda x: x[..., ::-1], np.asfortranarray, lambda x: x[:, ::2])
    corner, size = random.uniform(-5, 30, 2), random.uniform(0.5, 60, 2)
    regions = (None, (*corner, *size), (*corner, *size, random.uniform(-4, 4)), TILTED)
    settings: dict[str, Any] = {
        "region": regions[seed % 4],
        "layout": ("NCHW", "NHWC", "CWNH")[seed % 3],
        "swizzle": ("rgba", "bgra", "abgr")[seed % 3],
        "coord_origin": ("top_left", "bottom_left")[seed // 2 % 2],
        "mean": (0.1, 0.2, 0.3, 0.4) if seed % 5 else 0.5,
        "std": 0.3,
        "letterbox": (0.1, 0.2, 0.3) if seed % 4 != 3 and seed % 5 > 2 else None,
    }
    dims = (int(random.integers(1, 5)), *random.integers(1, 150, 2).tolist())
    return turned[seed % 5](picture), settings, dims


@pytest.mark.parametrize("seed", range(40))
def test_it_samples_as_numpy_does(seed: int, done: list[bool]) -> None:
    picture, settings, dims = drawn(seed)
    how = pf.TextureTransform(**settings)
    with waiting_for_kernels():
        values = arrays.sample(picture, how, dims, DataType.FLOAT32)
    assert done == [True]
    expected = by_numpy(picture, how, dims, DataType.FLOAT32)
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=0, atol=2e-5 * max(1, float(np.abs(expected).max())))


@pytest.mark.parametrize("seed", range(2, 40, 4))
def test_it_takes_the_nearest_pixels_of_rotated_regions(seed: int, done: list[bool]) -> None:
    picture, settings, dims = drawn(seed)
    how = pf.TextureTransform(**settings).replace(resample="nearest")
    with waiting_for_kernels():
        values = arrays.sample(picture, how, dims, DataType.FLOAT32)
    assert done == [True]
    other = np.abs(values - by_numpy(picture, how, dims, DataType.FLOAT32)) > 1e-5
    assert other.mean() < 0.001  # places on the edge of two pixels may go to either


@pytest.mark.parametrize("dtype", [DataType.UINT8, DataType.INT8, DataType.FLOAT16])
def test_it_fills_tensors_of_other_dtypes(dtype: DataType, done: list[bool]) -> None:
    picture, _, dims = drawn(0)
    with waiting_for_kernels():
        values = arrays.sample(picture, pf.TextureTransform(), dims, dtype)
    assert done == [True] and values.dtype == dtype.numpy
    expected = by_numpy(picture, pf.TextureTransform(), dims, dtype)
    limit = 1 if values.dtype.kind in "iu" else 1e-3
    assert np.abs(values.astype(float) - expected.astype(float)).max() <= limit


def test_numpy_samples_while_it_compiles(monkeypatch: pytest.MonkeyPatch, done: list[bool]) -> None:
    picture, _, dims = drawn(0)
    monkeypatch.setattr(jit, "is_compiled", lambda address: False)
    monkeypatch.setattr(jit, "waits", lambda: False)
    values = arrays.sample(picture, pf.TextureTransform(), dims, DataType.FLOAT32)
    assert done == [False]
    np.testing.assert_array_equal(values, by_numpy(picture, pf.TextureTransform(), dims, DataType.FLOAT32))


@pytest.mark.parametrize(
    "picture",
    [
        np.ones((4, 4, 3), np.float16),
        np.frombuffer(bytes(50), np.uint8)[1:49].view(np.float32).reshape(2, 2, 3),  # at an odd address
    ],
    ids=["float16", "not aligned"],
)
def test_numpy_samples_what_the_kernel_does_not_read(picture: Any, done: list[bool]) -> None:
    with waiting_for_kernels():
        values = arrays.sample(picture, pf.TextureTransform(), (3, 5, 5), DataType.FLOAT32)
    assert done == [False]
    np.testing.assert_array_equal(values, np.full((3, 5, 5), picture.flat[0], np.float32))
