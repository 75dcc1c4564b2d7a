"""Each kind of layers in .sentis files that is not a layer of ours under the same name, against NumPy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import perframe as pf
from importers.sentis_files import Const, KindCase, complaints
from perframe.importers.sentis.kinds import kinds
from perframe.importers.sentis.table import adapters
from perframe.tensor import DataType
from perframe.testing import Draw

draw = Draw(3)
FLOAT, INT = DataType.FLOAT32, DataType.INT32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, np.inf, -np.inf, np.nan, 1e-4, -1e-4, 1e-20, 0.49, -0.51], np.float32
)
x, y = draw(2, 3, 4), draw(2, 3, 4)
SMALL = draw(5, low=-9, high=9)
whole = np.array([[-7, 7, 6, -6, 0]], np.int32)
by = np.array([[2, -2, 3, 4, 5]], np.int32)
square = draw(4, 4)


def i32(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def scalar(number: int) -> Any:
    return np.array(number, np.int32)


def of(function: Any, *arrays: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(function(*(array.astype(np.float64) for array in arrays))).astype(np.float32)


def one(kind: str, function: Any, array: Any = SPECIAL, **arguments: Any) -> KindCase:
    """A kind with one input, and its function."""
    return KindCase(kind, [array], [of(function, array)], arguments)


def gelu_fast(v: Any) -> Any:
    return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


PAIRS = np.array([[a, b] for a in SPECIAL for b in SPECIAL], np.float32).T
ELEMENTWISE = [
    one("Relu6", lambda v: np.minimum(np.maximum(v, 0), 6)),
    one("HardTanh", lambda v: np.minimum(np.maximum(v, -2), 1.5), low=-2.0, high=1.5),
    one("Square", np.square),
    one("GeluFast", gelu_fast, draw(20, low=-4, high=4)),
    one("Log2", np.log2, draw(20, low=0.1, high=9)),
    one("Log10", np.log10, draw(20, low=0.1, high=9)),
    one("Rsqrt", lambda v: 1 / np.sqrt(v), np.array([0, 4, 0.25, np.inf, -1, 3], np.float32)),
    one("Trunc", np.trunc),
    one("Expm1", np.expm1),
    one("Expm1", np.expm1, np.array([80, -80, 0.1, 30], np.float32)),
    one("Log1p", np.log1p, np.array([0, -1, -2, np.inf, np.nan, 1e-6, -1e-6, 0.6, 1e9], np.float32)),
    one("Swish", lambda v: v / (1 + np.exp(-v)), draw(9, low=-3, high=3)),
    one("Swish", lambda v: v / (1 + np.exp(-2 * v)), draw(9, low=-3, high=3), alpha=2.0),
    KindCase("IsNaN", [SPECIAL], [np.isnan(SPECIAL).astype(np.int32)]),
    KindCase("CastLike", [SMALL, whole], [SMALL.astype(np.int32)]),
    KindCase("ScalarMad", [x], [x * np.float32(1.5) - 2],
             {"dtype": FLOAT, "scale": 1.5, "shift": -2.0, "int_scale": 0, "int_shift": 0}),
    KindCase("ScalarMad", [whole], [whole * 3 + 2],
             {"dtype": INT, "scale": 0.0, "shift": 0.0, "int_scale": 3, "int_shift": 2}),
    KindCase("Min", [x, y], [np.minimum(x, y)]),
    KindCase("Max", [x, y, x[:1]], [np.maximum(np.maximum(x, y), x[:1])], version=1),
    KindCase("Min", [x], [x], version=1),
    KindCase("Sum", [x, y, x], [x + y + x], version=1),
    KindCase("Mean", [x, y, x], [(x + y + x) * np.float32(1 / 3)], version=1),
    KindCase("NotEqual", [whole, i32(7)], [(whole != 7).astype(np.int32)]),
    KindCase("Not", [i32(0, 1, 2)], [i32(1, 0, 0)]),
    KindCase("And", [i32(0, 1, 2, 2), i32(1, 1, 1, 0)], [i32(0, 1, 1, 0)]),
    KindCase("Where", [i32(0, 2, 1, 0), x, y], [np.where([False, True, True, False], x, y)]),
    KindCase("Div", [whole, by], [np.trunc(whole / by).astype(np.int32)]),
    KindCase("FloorDiv", [whole, by], [whole // by]),
    KindCase("FloorDiv", [x, y], [np.floor(x / y)]),
    KindCase("TruncDiv", [whole, by], [np.trunc(whole / by).astype(np.int32)]),
    KindCase("TruncDiv", [x, y], [np.trunc(x / y)]),
    KindCase("Atan2", list(PAIRS), [of(np.arctan2, *PAIRS)]),
    KindCase("Atan2", [x, y], [of(np.arctan2, x, y)]),
    KindCase("Mod", [whole, by], [np.mod(whole, by)], {"fmod": 0}),
    KindCase("DequantizeUint8", [Const(np.arange(10, dtype=np.uint8))], [(np.arange(10, dtype=np.float32) - 3) / 4],
             {"scale": 0.25, "zero_point": 3}),
    KindCase("Cast", [Const(x.astype(np.float16))], [x.astype(np.float16).astype(np.float32)], {"to": FLOAT}),
]  # fmt: skip
w, weights, bias = draw(4, 5), draw(2, 4, 5), draw(5)
scale, shift = draw(3), draw(3)
picture, kernel = draw(1, 2, 5, 6), draw(3, 2, 3, 3)
sides = [(0, 0), (0, 0), (1, 2), (0, 3)]
PRODUCTS = [
    KindCase("MatMul2D", [square, Const(w)], [square.T @ w], {"transA": 1, "transB": 0}, rtol=1e-5),
    KindCase("Dense", [x, Const(w), Const(bias)], [np.maximum(x @ w + bias, 0)], {"activation": "Relu"}, rtol=1e-5),
    KindCase("Dense", [x, Const(w), None], [x @ w], {"activation": ""}, rtol=1e-5),
    KindCase("DenseBatched", [x, Const(weights), Const(bias)], [x @ weights + bias], {"activation": ""}, rtol=1e-5),
    KindCase("ScaleBias", [x, Const(scale), Const(shift)], [x * scale[:, None] + shift[:, None]], rtol=1e-5),
    KindCase("MaxPool", [picture], [picture.max((2, 3), keepdims=True)],
             {"kernel_shape": (5, 6), "strides": None, "pads": None, "auto_pad": "NOTSET"}),
    KindCase("ReduceVariance", [x, Const(i32(-1))], [x.var(-1, ddof=1)],
             {"keepdims": 0, "noop_with_empty_axes": 0, "correction": 1.0}, rtol=1e-5),
    KindCase("ReduceVariance", [x, None], [x.var(keepdims=True)],
             {"keepdims": 1, "noop_with_empty_axes": 0, "correction": 0.0}, rtol=1e-5),
]  # fmt: skip


def sliced(array: Any, values: Any, index: Any) -> Any:
    copied = array.copy()
    copied[index] = values
    return copied


GROUPS = {"keepdims": 1, "select_last_index": 0}
MOVES = [
    KindCase("Shape", [x], [i32(3, 4)], {"start": 1, "end": 8}),
    KindCase("Size", [x], [scalar(24)]),
    KindCase("ConstantOfShape", [Const(i32(2, 3))], [np.full((2, 3), 1.5, np.float32)],
             {"dtype": FLOAT, "float": 1.5, "int": 0}),
    KindCase("ConstantOfShape", [Const(i32(2))], [i32(7, 7)], {"dtype": INT, "float": 0.0, "int": 7}),
    KindCase("Split", [x, Const(i32(1, 3))], [x[..., :1], x[..., 1:]], {"axis": -1, "num_outputs": 0}, 4),
    KindCase("Split", [x, None], [x[..., :2], x[..., 2:]], {"axis": 2, "num_outputs": 2}, 6),
    KindCase("OneHot", [i32(0, -1, 2), Const(scalar(3)), Const(np.array([0, 1], np.float32))],
             [np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1]], np.float32)], {"axis": -1, "allow_negative": 0}),
    KindCase("OneHot", [i32(0, -1, 2), Const(scalar(3)), Const(np.array([0, 1], np.float32))],
             [np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1]], np.float32)], {"axis": -1}, 4),
    KindCase("TopK", [x, Const(scalar(2))], [np.sort(x)[..., :-3:-1], np.argsort(-x)[..., :2].astype(np.int32)],
             {"axis": -1, "largest": 1, "sorted": 1}),
    KindCase("Compress", [x, Const(i32(1, 0, 1))], [x[:, [0, 2]]], {"has_axis": 1, "axis": 1}),
    KindCase("Compress", [x, Const(i32(1, 0, 1))], [x.reshape(-1)[[0, 2]]], {"has_axis": 0, "axis": 0}),
    KindCase("Pad", [picture, Const(i32(0, 0, 1, 0, 0, 0, 2, 3)), None, None], [np.pad(picture, sides, "symmetric")],
             {"mode": "symmetric"}),
    KindCase("Pad", [picture, Const(i32(1, 0, 2, 3)), None, Const(i32(2, 3))], [np.pad(picture, sides, "edge")],
             {"mode": "edge"}),
    KindCase("Narrow", [x, Const(scalar(-1)), Const(scalar(1)), Const(scalar(2))], [x[..., 1:3]]),
    KindCase("Narrow", [x, Const(scalar(2)), Const(scalar(-2)), Const(scalar(2))], [x[..., 2:]]),
    KindCase("Narrow", [x, Const(scalar(2)), scalar(-3), Const(scalar(2))], [x[..., 1:3]]),
    KindCase("Select", [x, Const(scalar(1)), scalar(-1)], [x[:, -1]]),
    KindCase("SliceSet", [x, y[:, :1, :2], Const(i32(1, 0)), Const(i32(3, 4)), Const(i32(1, 2)), Const(i32(1, 2))],
             [sliced(x, y[:, :1, :2], np.s_[:, 1:3, ::2])]),
    KindCase("SliceSet", [x, y[:1], Const(i32(1)), Const(i32(2**31 - 1))], [sliced(x, y[:1], np.s_[1:])]),
    KindCase("MoveDim", [x], [np.moveaxis(x, (0, -1), (-1, 0))], {"source": (0, -1), "destination": (-1, 0)}),
    KindCase("Diagonal", [x], [x.diagonal(1, 1, 2)], {"offset": 1, "dim1": 1, "dim2": 2}),
    KindCase("Diagonal", [x], [x.diagonal(-1, -1, 0)], {"offset": -1, "dim1": -1, "dim2": 0}),
    KindCase("Diagonal", [x], [x.diagonal(9, 0, 1)], {"offset": 9, "dim1": 0, "dim2": 1}),
    KindCase("AsStrided", [x, Const(i32(2, 3)), Const(i32(1, 2)), Const(scalar(5))],
             [np.array([[x.reshape(-1)[5 + i + 2 * j] for j in range(3)] for i in range(2)])]),
    KindCase("BroadcastArgs", [Const(i32(2, 1, 4)), i32(3, 1)], [i32(2, 3, 4)]),
    KindCase("NonZero", [Const(i32(0, 3, 1))], [np.array([[1, 2]], np.int32)]),
    KindCase("ArgMax", [x], [x.argmax(1).astype(np.int32)[:, None]], {"axis": 1, **GROUPS}),
    KindCase("GatherND", [x, i32(1, 2)], [x[1, 2]], {"batch_dims": 0}),
]  # fmt: skip
corners = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]]], np.float32)
scores, half = np.array([[[0.5, 0.9, 0.7]]], np.float32), Const(np.array([0.5], np.float32))
signal = draw(1, 8, 1)
spectrum = np.fft.fft(signal[..., 0], axis=1)
OTHERS = [
    KindCase("Concat", [x, Const(np.zeros((2, 0, 4), np.float32))], [x], {"axis": 1}),
    KindCase("NonMaxSuppression", [corners, scores, Const(i32(-1)), half, None],
             [np.array([[0, 0, 1], [0, 0, 2]], np.int32)], {"center_point_box": 0}),
    KindCase("NonMaxSuppression", [corners, scores, i32(-1), half, None],
             [np.array([[0, 0, 1], [0, 0, 2]], np.int32)], {"center_point_box": 0}),
    KindCase("NonMaxSuppression", [corners, scores, None, half, None], [np.zeros((0, 3), np.int32)],
             {"center_point_box": 0}),
    KindCase("DFT", [signal, None, Const(scalar(1)), Const(draw(8, 8, 2))],
             [np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)], {"inverse": 0, "onesided": 0},
             rtol=1e-5),
    KindCase("Resize", [picture, Const(np.array([2, 3], np.float32))], [picture.repeat(2, 2).repeat(3, 3)],
             {"scale_mode": 1, "coordinate_transformation_mode": "asymmetric", "mode": "nearest",
              "nearest_mode": "floor", "axes": (2, 3)}),
    KindCase("Resize", [picture, Const(np.array([1, 1, 2, 3], np.float32))], [picture.repeat(2, 2).repeat(3, 3)],
             {"scale_mode": 1, "coordinate_transformation_mode": "asymmetric", "mode": "nearest",
              "nearest_mode": "floor", "axes": (3, 2)}),
    KindCase("Resize", [picture, Const(i32(10, 18))], [picture.repeat(2, 2).repeat(3, 3)],
             {"scale_mode": 0, "coordinate_transformation_mode": "asymmetric", "mode": "nearest",
              "nearest_mode": "floor", "axes": (2, 3)}),
]  # fmt: skip
CASES = [*OTHERS, *ELEMENTWISE, *PRODUCTS, *MOVES]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds(case: KindCase, optimize: bool, backend: str, backend_context: Any) -> None:
    model = pf.load(case.data(), optimize=optimize)
    outputs = pf.run(model, case.fed, backend=backend, ctx=backend_context)
    for found, wanted in zip(outputs.values(), case.wanted, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        more = 1 if backend == "cpu" else 10
        np.testing.assert_allclose(found, wanted, case.rtol * more, 1e-6 * more)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_files_are_as_the_format_wants(case: KindCase, shared: Path) -> None:
    assert complaints(shared, case.data()) == []


def test_most_kinds_are_layers_of_the_same_name() -> None:
    from perframe.ir.declaration import registry

    for name, kind in kinds().items():
        if name not in adapters():
            entry = registry()[name]
            assert {one.name for one in kind.arguments} <= entry.attributes.keys(), name
            if not kind.is_variadic:
                assert [one.name for one in kind.inputs] == list(entry.inputs)[: len(kind.inputs)], name
    assert len(kinds()) == 170
