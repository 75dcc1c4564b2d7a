"""Products of bytes on the CPU: every kind of tile, dtypes, zero points at the ends of their ranges, awkward shapes.

The operators with constant weights, as models have them, are compared with ONNX's reference evaluator; the layers that
they become with whole numbers in NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import ops, prepared
from perframe.backends import evaluator
from perframe.backends.cpu.lowering import byte_product
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType
from perframe.testing import Case, Draw

draw = Draw(31)
BYTES = (np.uint8, np.int8)
PAIRS = list(itertools.product(BYTES, BYTES))


def small(*shape: int, dtype: Any = np.uint8) -> Any:
    info = np.iinfo(dtype)
    return draw(*shape, low=info.min, high=info.max, dtype=dtype)


def ends(dtype: Any) -> list[Any]:
    info = np.iinfo(dtype)
    return [np.array(value, dtype) for value in (info.min, info.max)]


def check_fused(case: Case, op: str) -> None:
    """Exact, and by the layer that takes bytes."""
    proto = case.proto()
    assert op in ops(prepared(proto))
    actual = pf.run(proto, case.fed, backend="cpu")
    for value, want in zip(actual.values(), case.expected(proto), strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


def products(a: Any, b: Any) -> list[Case]:
    """MatMulInteger and QLinearMatMul with each of the zero points."""
    cases = []
    for x_zero, w_zero in itertools.product(ends(a), ends(b)):
        for rows, depth, columns in ((1, 1, 1), (3, 5, 4), (17, 67, 33), (2, 64, 70)):
            x, w = small(2, rows, depth, dtype=a), small(depth, columns, dtype=b)
            name = f"{np.dtype(a)} {np.dtype(b)} {rows} {depth} {columns} zeros {x_zero} {w_zero}"
            cases.append(Case(name, "MatMulInteger", [x, w, x_zero, w_zero], constants=(1, 2, 3)))
            given = [x, np.float32(0.02), x_zero, w, np.float32(0.011), w_zero, np.float32(0.9), small(dtype=a)]
            cases.append(Case(name, "QLinearMatMul", [np.asarray(v) for v in given], constants=range(1, 8)))
    return cases


@pytest.mark.parametrize("case", [case for pair in PAIRS for case in products(*pair)], ids=str)
def test_products_with_constant_weights(case: Case) -> None:
    check_fused(case, "QuantizedMatMul")


def convolution(x: Any, w: Any, op: str, **attributes: Any) -> Case:
    zeros = [np.array(7, x.dtype), np.array(3, w.dtype)]
    name = f"{x.shape} {x.dtype} {w.shape} {w.dtype} {attributes}"
    if op == "ConvInteger":
        given = [x, w, *zeros]
    else:
        scales = draw(w.shape[0], low=0.01, high=0.02)
        zeros[1] = small(w.shape[0], dtype=w.dtype) if w.dtype == np.uint8 else np.zeros(w.shape[0], w.dtype)
        bias = draw(w.shape[0], high=900, dtype=np.int32)
        given = [x, np.float32(0.02), zeros[0], w, scales, zeros[1], np.float32(0.7), small(dtype=x.dtype), bias]
    given = [np.asarray(value) for value in given]
    return Case(name, op, given, attributes, constants=range(1, len(given)), reference=_convolved(op, attributes))


def _convolved(op: str, attributes: dict[str, Any]) -> Any:
    """By ONNX's convolution of float64, which is exact."""

    def compute(*given: Any) -> Any:
        x, w = (given[0], given[1]) if op == "ConvInteger" else (given[0], given[3])
        zeros = given[2:4] if op == "ConvInteger" else (given[2], given[5])
        left = x.astype(np.float64) - zeros[0].astype(np.float64)
        right = w.astype(np.float64) - zeros[1].astype(np.float64).reshape(-1, *(1,) * (w.ndim - 1))
        model = Case("", "Conv", [left, right], attributes)
        sums = model.expected(model.proto())[0]
        if op == "ConvInteger":
            return sums.astype(np.int32)
        column = (-1, *(1,) * (w.ndim - 2))
        factor = given[1] * given[4] / given[6]
        scaled = (sums + given[8].reshape(column)).astype(np.float32) * factor.reshape(column)
        info = np.iinfo(given[7].dtype)
        return np.clip(np.rint(scaled) + int(given[7]), info.min, info.max).astype(given[7].dtype)

    return compute


WINDOWS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 5), (5, 3, 3, 3), {}),
    ((1, 3, 9, 11), (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 40, 5, 5), (33, 40, 1, 1), {}),
    ((2, 6, 9, 8), (9, 2, 3, 2), {"group": 3, "dilations": [2, 1], "pads": [1, 0, 2, 1]}),
    ((2, 7, 11, 19), (7, 1, 3, 3), {"group": 7, "pads": [1, 1, 1, 1]}),
    ((1, 35, 6, 12), (35, 1, 3, 3), {"group": 35, "strides": [2, 1], "pads": [0, 2, 1, 1]}),
    ((2, 5, 13), (6, 5, 4), {"strides": [3], "pads": [2, 1]}),
]


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_convolutions_with_constant_weights(op: str, pair: Any, window: Any) -> None:
    (a, b), (x, w, attributes) = pair, window
    check_fused(convolution(small(*x, dtype=a), small(*w, dtype=b), op, **attributes), "QuantizedConv")


def layer_of(op: str, inputs: Sequence[Any], dtype: Any, **more: Any) -> tuple[Model, dict[str, Any]]:
    """A model of one layer whose inputs are constants but for the first."""
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    given = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True) if name}
    x = given.pop("x0")
    channels_last = more.pop("channels_last", False)
    layer = Layer(op, "layer", names, ["y"], more, channels_last=channels_last)
    ends = [Value("y", DataType.of(np.dtype(dtype)), None)]
    first = Value("x0", DataType.of(x.dtype), DynamicTensorShape(x.shape))
    return Model([first], ends, [layer], given), {"x0": x}


@pytest.mark.parametrize("kind", ["amx", "vnni", "sudot", "sdot", "plain"])
@pytest.mark.parametrize("to", [np.int32, np.float32, np.uint8, np.int8])
@pytest.mark.parametrize("rows, depth, columns", [(1, 3, 5), (14, 64, 32), (15, 66, 16), (40, 129, 49), (300, 24, 7)])
def test_every_kind_of_tile(
    kind: str, to: Any, rows: int, depth: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = byte_product.instructions()
    if kind not in kinds:
        pytest.skip(f"this CPU has no {kind}")
    monkeypatch.setattr(byte_product, "instructions", lambda: tuple(kinds[kinds.index(kind) :]))
    for a, b in PAIRS:
        bias = draw(columns, high=99, dtype=np.int32 if to != np.float32 else np.float32)
        scale, zero = draw(columns, low=0.001, high=0.002), small(columns, dtype=b)
        inputs = [small(rows, depth, dtype=a), small(depth, columns, dtype=b), bias, small(dtype=a), zero]
        if to != np.int32:
            inputs += [np.float32(0.5), scale, *([small(dtype=to)] if to != np.float32 else [])]
        model, fed = layer_of("QuantizedMatMul", inputs, to)
        want = evaluator()(model.layers[0], [fed["x0"], *model.constants.values()])[0]
        actual = pf.run(model, fed, backend="cpu")["y"]
        assert actual.dtype == want.dtype == to
        np.testing.assert_allclose(actual, want, 1e-6, 1e-4)


def test_rows_at_the_end_of_memory_are_not_read_beyond() -> None:
    """The last rows of an input that is read in place."""
    x, w = small(37, 63), small(63, 33, dtype=np.int8)
    model, fed = layer_of("QuantizedMatMul", [x, w], np.int32)
    np.testing.assert_array_equal(pf.run(model, fed, backend="cpu")["y"], x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("size", [1, 15, 16, 37, 9000])
def test_sums_of_bytes(pair: Any, size: int) -> None:
    a, b = (small(1, size, dtype=dtype) for dtype in pair)
    attributes = {"factors": (0.4, 0.7), "zeros": (3, -2), "zero": 5, "low": 0, "high": 200, "to": DataType.UINT8}
    model, fed = layer_of("QuantizedAdd", [a, b], np.uint8, **attributes)
    want = (a.astype(np.float32) - 3) * np.float32(0.4) + (b.astype(np.float32) + 2) * np.float32(0.7)
    actual = pf.run(model, fed, backend="cpu")["y"]
    np.testing.assert_allclose(actual, np.clip(np.rint(want) + 5, 0, 200), atol=1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("channels", [1, 7, 16, 37])
def test_averages_and_the_largest_of_bytes(dtype: Any, channels: int) -> None:
    x = small(2, 5, 6, channels, dtype=dtype)
    attributes = {"factor": 0.7, "x_zero": 9, "zero": 3, "to": DataType.of(np.dtype(dtype)), "channels_last": True}
    model, fed = layer_of("QuantizedMean", [x], dtype, **attributes)
    info = np.iinfo(dtype)
    mean = (x.astype(np.int32) - 9).sum((1, 2), keepdims=True).astype(np.float32) * np.float32(0.7 / 30)
    np.testing.assert_array_equal(pf.run(model, fed)["y"], np.clip(np.rint(mean) + 3, info.min, info.max))
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0], "channels_last": True}
    model, fed = layer_of("MaxPool", [x], dtype, **window)
    reference = Case("", "MaxPool", [np.moveaxis(x, -1, 1)], {k: v for k, v in window.items() if k != "channels_last"})
    want = np.moveaxis(reference.expected(reference.proto())[0], 1, -1)
    np.testing.assert_array_equal(pf.run(model, fed)["y"], want)


@pytest.mark.parametrize("dtype", BYTES)
def test_tables(dtype: Any) -> None:
    x, table = small(3, 50, dtype=dtype), small(256, dtype=np.int8)
    model, fed = layer_of("LookUp", [x, table], np.int8)
    np.testing.assert_array_equal(pf.run(model, fed)["y"], table[x.view(np.uint8)])


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("size", [1, 13, 16, 8191, 20_001])
def test_native_quantization(dtype: Any, size: int) -> None:
    """Infinities saturate, NaN becomes the smallest number, halves are rounded to even."""
    x = draw(size, low=-90, high=90)
    x[: min(size, 6)] = [np.inf, -np.inf, np.nan, 0.25, 0.75, -1.25][: min(size, 6)]
    for zero in (*ends(dtype), np.array(3, dtype)):
        case = Case("", "QuantizeLinear", [x, np.float32(0.5).reshape(()), zero], constants=())
        info = np.iinfo(dtype)
        want = np.clip(np.nan_to_num(np.rint(x / np.float32(0.5)) + float(zero), nan=info.min), info.min, info.max)
        quantized = pf.run(case.proto(), case.fed)["y0"]
        np.testing.assert_array_equal(quantized, want.astype(dtype))
        back = Case("", "DequantizeLinear", [quantized, np.float32(0.3).reshape(()), zero], constants=())
        np.testing.assert_array_equal(pf.run(back.proto(), back.fed)["y0"], back.expected(back.proto())[0])


@pytest.mark.parametrize("size", [1, 31, 33, 8192, 20_001])
def test_own_range_of_many_pieces(size: int) -> None:
    for low, high in ((-3, 9), (2, 9), (-9, -2), (0, 0)):
        case = Case("", "DynamicQuantizeLinear", [draw(size, low=low, high=high)], outputs=3)
        for value, want in zip(pf.run(case.proto(), case.fed).values(), case.expected(case.proto()), strict=True):
            np.testing.assert_array_equal(value, want)
