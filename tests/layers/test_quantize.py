"""Quantization: for a tensor, an axis and blocks, to every small dtype; products and convolutions of whole numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(29)
WHOLE = (np.uint8, np.int8, np.uint16, np.int16, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2)
SMALL = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float4_e2m1fn,
)


def _name(shape: tuple[int, ...], scales: tuple[int, ...], dtype: Any, attributes: dict[str, Any]) -> str:
    return f"{shape} by {scales} {np.dtype(dtype)} {' '.join(f'{k}={v}' for k, v in attributes.items())}"


def _zero(scales: tuple[int, ...], dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if kind in SMALL:
        return np.zeros(scales, kind)
    info = ml_dtypes.iinfo(kind)
    return draw(*scales, low=max(-2, info.min), high=min(3, info.max), dtype=np.int32).astype(kind)


def quantize(
    shape: tuple[int, ...], scales: tuple[int, ...], dtype: Any, zero: bool = True, given: Any = np.float32, **more: Any
) -> Case:
    x = draw(*shape, low=-40, high=40).astype(given)
    scale = draw(*scales, low=0.1, high=2).astype(np.float32 if given == np.int32 else given)
    inputs = [x, scale, *([_zero(scales, dtype)] if zero else [])]
    name = _name(shape, scales, dtype, more) + f" of {np.dtype(given)} {'' if zero else 'without a zero point'}"
    return Case(name, "QuantizeLinear", inputs, more, constants=[])


def dequantize(
    shape: tuple[int, ...], scales: tuple[int, ...], dtype: Any, zero: bool = True, given: Any = np.float32, **more: Any
) -> Case:
    x = (
        draw(*shape, low=0, high=3).astype(dtype)
        if np.dtype(dtype) != np.int32
        else draw(*shape, high=999, dtype=dtype)
    )
    zeros = [np.zeros(scales, np.int32) if np.dtype(dtype) == np.int32 else _zero(scales, dtype)] if zero else []
    scale = draw(*scales, low=0.1, high=2).astype(given)
    name = _name(shape, scales, dtype, more) + f" to {np.dtype(given)} {'' if zero else 'without a zero point'}"
    return Case(
        name, "DequantizeLinear", [x, scale, *zeros], more, constants=[], rtol=1e-3 if given != np.float32 else 1e-6
    )


BLOCKS = {"axis": 1, "block_size": 3}
CASES = [
    *(quantize((3, 5), (), dtype) for dtype in (*WHOLE, *SMALL)),
    *(quantize((2, 3, 5), (3,), dtype) for dtype in (*WHOLE, *SMALL)),
    *(quantize((2, 7, 5), (2, 3, 5), dtype, **BLOCKS) for dtype in (np.uint8, ml_dtypes.int4, SMALL[0])),
    quantize((3, 5), (5,), np.int8, axis=-1),
    quantize((7,), (1,), np.uint8),
    quantize((7,), (), np.uint8, zero=False),
    quantize((3, 5), (), np.int16, zero=False, output_dtype=5),
    quantize((3, 5), (), np.uint8, given=np.float16),
    quantize((3, 5), (3,), np.uint8, given=np.int32, axis=0),
    *(quantize((3, 5), (), dtype, saturate=0) for dtype in SMALL[:4]),
    *(dequantize((3, 5), (), dtype) for dtype in (*WHOLE, np.int32)),
    *(dequantize((3, 5), (), dtype, zero=False) for dtype in (*WHOLE, *SMALL, np.int32)),
    *(dequantize((2, 3, 5), (3,), dtype) for dtype in (*WHOLE, np.int32)),
    *(dequantize((2, 7, 5), (2, 3, 5), dtype, **BLOCKS) for dtype in (np.uint8, ml_dtypes.int4, np.int32)),
    dequantize((3, 5), (5,), np.int8, axis=-1),
    dequantize((3, 5), (), np.uint8, given=np.float16),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quantize(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def small(*shape: int, dtype: Any = np.uint8) -> Any:
    info = np.iinfo(dtype)
    return draw(*shape, low=info.min, high=info.max, dtype=dtype)


def conv(op: str, x: Any, w: Any, more: Any = (), reference: Any = "onnxruntime", **attributes: Any) -> Case:
    name = f"{x.shape} {x.dtype} {w.shape} {w.dtype} {len(more)} more {attributes}"
    return Case(name, op, [x, w, *more], attributes, reference=reference)


def q_linear_conv(x: Any, w: Any, scales: Any, zero: Any, bias: bool, **attributes: Any) -> Case:
    first = [x, np.float32(0.02), x.dtype.type(3), w, np.asarray(scales, np.float32), np.asarray(zero, w.dtype)]
    end = [np.float32(0.7), np.uint8(100) if x.dtype == np.uint8 else np.int8(-3)]
    given = [*first, *end, *([draw(w.shape[0], high=900, dtype=np.int32)] if bias else [])]
    name = f"{x.shape} {x.dtype} {w.shape} {np.shape(scales)} bias {bias} {attributes}"
    return Case(name, "QLinearConv", [np.asarray(v) for v in given], attributes, reference="onnxruntime")


# of seven bits: without VNNI, onnxruntime's sums of two products with larger ones saturate at int16
SIGNED = draw(3, 2, 3, 3, low=-64, high=63, dtype=np.int8)
COLUMNS = draw(5, 4, low=-64, high=63, dtype=np.int8)
WHOLE_PRODUCTS = [
    Case("", "MatMulInteger", [small(3, 5), small(5, 4), np.array(12, np.uint8), np.array(0, np.uint8)]),
    Case("int8", "MatMulInteger", [small(2, 3, 5), COLUMNS]),
    Case("of columns", "MatMulInteger", [small(3, 5), small(5, 4), np.array(2, np.uint8), small(4)]),
    conv("ConvInteger", small(1, 2, 5, 6), small(3, 2, 3, 3), [np.array(7, np.uint8)], pads=[1, 1, 1, 1]),
    conv(
        "ConvInteger",
        small(2, 4, 9),
        small(6, 2, 3),
        [np.array(7, np.uint8), np.array(5, np.uint8)],
        group=2,
        strides=[2],
    ),
    q_linear_conv(small(1, 2, 5, 6), small(3, 2, 3, 3), 0.01, 9, False),
    q_linear_conv(small(1, 2, 5, 6), SIGNED, [0.01, 0.02, 0.03], [0, 0, 0], True, pads=[1] * 4),
    q_linear_conv(small(1, 2, 5, 6, dtype=np.int8), small(3, 2, 3, 3, dtype=np.int8), 0.01, 0, True, strides=[2, 2]),
    *(
        Case(
            f"{np.dtype(dtype)}",
            "QLinearMatMul",
            [
                *(small(2, 3, 5, dtype=dtype), np.array(0.02, np.float32), np.array(3, dtype)),
                *(small(5, 4, dtype=dtype), np.array(0.01, np.float32), np.array(1, dtype)),
                *(np.array(0.3, np.float32), np.array(7, dtype)),
            ],
        )
        for dtype in (np.uint8, np.int8)
    ),
    Case("", "DynamicQuantizeLinear", [draw(3, 5, low=-3, high=9)], outputs=3),
    Case("of positive ones", "DynamicQuantizeLinear", [draw(7, low=3, high=9)], outputs=3),
    Case("of zeros", "DynamicQuantizeLinear", [np.zeros((2, 3), np.float32)], outputs=3),
    Case("of negative ones", "DynamicQuantizeLinear", [draw(7, low=-9, high=-3)], outputs=3),
]


@pytest.mark.parametrize("case", WHOLE_PRODUCTS, ids=str)
def test_whole_products(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_quantized_models_stay_on_the_gpu(backend: str, backend_context: Any) -> None:
    """Quantized, moved, multiplied as whole numbers: strictly on the backend."""
    for case in WHOLE_PRODUCTS:
        proto = case.proto()
        actual = pf.run(proto, case.fed, backend=backend, strict=True, ctx=backend_context)
        for value, want in zip(actual.values(), case.expected(proto), strict=True):
            np.testing.assert_allclose(value, want, 1e-6, err_msg=str(case))


def test_what_does_not_fit_a_small_number_wraps_around(backend: str, backend_context: Any) -> None:
    x = np.array([-300, -129, -128, -1, 0, 7, 8, 127, 128, 255, 256, 70_000], np.int32)
    for to in (2, 3, 4, 5):
        proto = Case("", "Cast", [x], {"to": to}).proto()
        actual = pf.run(proto, {"x0": x}, backend=backend, strict=True, ctx=backend_context)["y0"]
        np.testing.assert_array_equal(actual, x.astype(actual.dtype))


def test_products_of_int32_run_on_every_backend(backend: str, backend_context: Any) -> None:
    a, b = draw(2, 3, 7, high=30_000, dtype=np.int32), draw(7, 5, high=30_000, dtype=np.int32)
    check(Case("", "MatMul", [a, b]), backend, backend_context)
