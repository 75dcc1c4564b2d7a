"""float16 has native kernels: each layer computes in float32, and rounds its results once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from layers.test_native import only_native, run
from perframe.testing import Draw

__all__ = ["only_native"]
draw = Draw(127)
X = (2, 3, 17, 5)
SCALES = {1: np.zeros(0, np.float32), 2: np.array([1, 1, 2, 1.5], np.float32)}


def half(*shape: int) -> Any:
    return draw(*shape, low=-2, high=2).astype(np.float16)


def test_casts_of_every_half() -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = run("Cast", every, to=TensorProto.FLOAT)
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    known = every[~np.isnan(every)]
    np.testing.assert_array_equal(run("Cast", known.astype(np.float32), to=TensorProto.FLOAT16), known)


def test_casts_to_the_nearest_half() -> None:
    every = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (every[1:] + every[:-1]) / 2
    x = np.concatenate([middle, -middle, np.nextafter(middle, 9e9), [65519.996, 65520, 1e9, 1e-9, np.inf, -np.inf]])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run("Cast", x, to=TensorProto.FLOAT16), x.astype(np.float16))
    assert np.isnan(run("Cast", np.array([np.nan], np.float32), to=TensorProto.FLOAT16)).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_casts_of_whole_numbers(dtype: Any) -> None:
    x = np.array([0, 1, 2, 77, 200, 3000, -5, 65504, 70000, 2**23 + 1]).astype(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run("Cast", x, to=TensorProto.FLOAT16), x.astype(np.float16))


CASES: dict[str, tuple[str, list[Any], dict[int, Any], dict[str, Any]]] = {
    "add": ("Add", [half(*X), half(5)], {}, {}),
    "sigmoid": ("Sigmoid", [half(*X)], {}, {}),
    "where": ("Where", [draw(*X, dtype=bool), half(*X), half(1)], {}, {}),
    "product": ("MatMul", [half(7, 33), half(33, 19)], {}, {}),
    "product by a constant": ("MatMul", [half(2, 7, 33)], {1: half(33, 19)}, {}),
    "convolution": ("Conv", [half(*X)], {1: half(4, 3, 3, 3), 2: half(4)}, {"pads": [1, 1, 1, 1]}),
    "depthwise convolution": ("Conv", [half(1, 16, 9, 9)], {1: half(16, 1, 3, 3)}, {"group": 16}),
    "transposed convolution": ("ConvTranspose", [half(*X)], {1: half(3, 4, 2, 2)}, {"strides": [2, 2]}),
    "largest of windows": ("MaxPool", [half(*X)], {}, {"kernel_shape": [2, 2]}),
    "means of windows": ("AveragePool", [half(*X)], {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "mean": ("ReduceMean", [half(*X)], {1: np.array([1])}, {}),
    "largest": ("ReduceMax", [half(*X)], {1: np.array([-1])}, {}),
    "softmax of long rows": ("Softmax", [half(3, 65, 5)], {}, {"axis": 1}),
    "layer normalization": ("LayerNormalization", [half(*X), half(5), half(5)], {}, {}),
    "instance normalization": ("InstanceNormalization", [half(*X), half(3), half(3)], {}, {}),
    "linear": ("Resize", [half(*X)], SCALES, {"mode": "linear"}),
    "largest element": ("ArgMax", [half(*X)], {}, {"axis": 2}),
}


@pytest.mark.parametrize("name", CASES)
def test_halves_give_what_floats_give(name: str) -> None:
    op, given, constants, attributes = CASES[name]
    wide = {at: value.astype(np.float32) if value.dtype == np.float16 else value for at, value in constants.items()}
    floats = [x.astype(np.float32) if x.dtype == np.float16 else x for x in given]
    expected = run(op, *floats, constants=wide, **attributes)
    made = run(op, *given, constants=constants, **attributes)
    assert made.dtype == (np.float16 if expected.dtype == np.float32 else expected.dtype)
    np.testing.assert_allclose(made, expected.astype(made.dtype), rtol=1e-3, atol=1e-6)


def test_the_first_few_halves() -> None:
    x = half(4, 33)
    values, indices = run("TopK", x, constants={1: np.array([5])}, outputs=2)
    order = np.argsort(-x.astype(np.float32), axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
