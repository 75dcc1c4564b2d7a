"""Conversions to float8: saturation, infinity, NaN, and how powers of two are rounded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf

_X = np.array([0, -0.0, 1, -1.1, 1e-9, 470, -1e6, np.inf, -np.inf, np.nan], np.float32)


def cast(x: Any, to: int, **attributes: Any) -> Any:
    node = helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    info = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    graph = helper.make_graph([node], "g", [info], [helper.make_tensor_value_info("y", to, x.shape)])
    return pf.run(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)]), {"x": x}, backend="cpu")["y"]


@pytest.mark.parametrize(
    ("to", "dtype"),
    [
        (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
        (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
        (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
        (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
    ],
)
@pytest.mark.parametrize("source", [np.float32, np.float16, np.float64])
def test_float8_saturates_unless_it_must_not(to: int, dtype: Any, source: Any) -> None:
    with np.errstate(over="ignore"):
        x = _X.astype(source)
    largest = float(ml_dtypes.finfo(dtype).max)
    limited = np.clip(x.astype(np.float32), -largest, largest).astype(dtype)
    for saturate, expected in ((1, limited), (0, x.astype(dtype))):
        y = cast(x, to, saturate=saturate)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("mode", "saturate", "expected"),
    [
        ("up", 1, [2.0**-127, 1, 2, 2, 2, 4, 2.0**127, 2.0**127, np.nan]),
        ("down", 1, [2.0**-127, 1, 1, 1, 1, 2, 2.0**127, 2.0**127, np.nan]),
        ("nearest", 1, [2.0**-127, 1, 1, 2, 2, 4, 2.0**127, 2.0**127, np.nan]),
        ("nearest", 0, [np.nan, 1, 1, 2, 2, 4, np.nan, np.nan, np.nan]),
    ],
)
def test_powers_of_two_are_rounded_as_asked(mode: str, saturate: int, expected: list[float]) -> None:
    x = np.array([0, 1, 1.25, 1.5, 1.75, 3, 1.9 * 2.0**127, np.inf, np.nan], np.float32)
    y = cast(x, TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
    np.testing.assert_array_equal(y.astype(np.float32), np.array(expected, np.float32))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_small_types_move_and_widen(dtype: Any) -> None:
    x = np.array([[1, 2, 3], [-4, 5, 6]], np.float32).astype(dtype)
    np.testing.assert_array_equal(cast(x, TensorProto.FLOAT), x.astype(np.float32))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("Transpose", ["x"], ["y"])
    infos = [helper.make_tensor_value_info(n, kind, s) for n, s in (("x", (2, 3)), ("y", (3, 2)))]
    model = helper.make_model(helper.make_graph([node], "g", infos[:1], infos[1:]))
    y = pf.run(model, {"x": x}, backend="cpu")["y"]
    assert y.dtype == dtype and isinstance(model, onnx.ModelProto)
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32).T)
