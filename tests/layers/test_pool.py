"""Pooling windows of every kind: odd strides, dilation, auto_pad, ceil_mode, padding that counts or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(17)
PICTURE = (2, 3, 11, 13)


def windows(rank: int = 2) -> list[dict[str, Any]]:
    """Attributes that both kinds of pooling share."""
    return [
        {"kernel_shape": [3, 3]},
        {"kernel_shape": [1, 1]},
        {"kernel_shape": [11, 13]},
        {"kernel_shape": [2, 3], "strides": [2, 1]},
        {"kernel_shape": [2, 2], "strides": [3, 5]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 5], "strides": [2, 3], "pads": [0, 2, 1, 3]},
        {"kernel_shape": [2, 3], "dilations": [3, 2]},
        {"kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 2], "pads": [2, 1, 1, 0]},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [3, 4], "strides": [2, 3], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 4], "strides": [2, 3], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "VALID"},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "strides": [2, 4], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"kernel_shape": [2, 3], "strides": [3, 3], "pads": [1, 0, 0, 1], "ceil_mode": 1},
        {"kernel_shape": [1, 1], "strides": [4, 5], "pads": [0, 0, 0, 0], "ceil_mode": 1},
    ]


def pool(op: str, shape: tuple[int, ...], attributes: dict[str, Any], dtype: Any = np.float32, **options: Any) -> Case:
    said = " ".join(f"{key}={value}" for key, value in attributes.items())
    x = draw(*shape, low=-9, high=9, dtype=dtype)
    tolerance = 5e-3 if dtype == np.float16 else 1e-5
    options = {"reference": "onnxruntime", "rtol": tolerance, "atol": tolerance, "opset": 22} | options
    return Case(f"{shape} {np.dtype(dtype)} {said}", op, [x], attributes, **options)


def _norms(attributes: dict[str, Any]) -> Any:
    """By windows of a padded array; NumPy's own."""

    def reference(x: Any) -> Any:
        kernel, rank, p = attributes["kernel_shape"], x.ndim - 2, attributes["p"]
        strides, spread = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
        pads = attributes.get("pads", [0] * 2 * rank)
        padded = np.pad(np.abs(x), [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]) ** p
        extent = tuple(d * (k - 1) + 1 for d, k in zip(spread, kernel, strict=True))
        views = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=tuple(range(2, x.ndim)))
        steps = (..., *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in spread))
        return (views[steps].sum(tuple(range(-rank, 0))) ** (1 / p)).astype(x.dtype)

    return reference


# windows that reach far beyond the picture
WIDE: list[dict[str, Any]] = [
    {"kernel_shape": [1280, 1280], "strides": [1280, 1280], "ceil_mode": 1},
    {"kernel_shape": [40, 17], "strides": [40, 17], "ceil_mode": 1, "pads": [2, 3, 1, 0]},
    {"kernel_shape": [18, 3], "strides": [18, 2], "ceil_mode": 1, "dilations": [1, 2]},
]

CASES = [
    *(pool(op, PICTURE, attributes) for op in ("MaxPool", "AveragePool") for attributes in WIDE),
    *(pool("AveragePool", PICTURE, attributes | {"count_include_pad": 1}) for attributes in WIDE),
    *(pool("MaxPool", PICTURE, attributes) for attributes in windows()),
    *(pool("AveragePool", PICTURE, attributes) for attributes in windows()),
    *(
        pool("AveragePool", PICTURE, attributes | {"count_include_pad": 1})
        for attributes in windows()
        if "pads" in attributes or "auto_pad" in attributes
    ),
    *(
        pool(op, (2, 3, 17), attributes)
        for op in ("MaxPool", "AveragePool")
        for attributes in (
            {"kernel_shape": [3], "strides": [2], "pads": [1, 0]},
            {"kernel_shape": [2], "dilations": [4]},
            {"kernel_shape": [4], "strides": [3], "auto_pad": "SAME_LOWER"},
            {"kernel_shape": [4], "strides": [3], "ceil_mode": 1},
        )
    ),
    *(
        pool(op, (2, 2, 5, 6, 7), attributes)
        for op in ("MaxPool", "AveragePool")
        for attributes in (
            {"kernel_shape": [2, 3, 2], "strides": [2, 1, 3], "pads": [1, 0, 1, 0, 1, 0]},
            {"kernel_shape": [2, 2, 2], "dilations": [2, 1, 3], "ceil_mode": 1},
            {"kernel_shape": [3, 3, 3], "auto_pad": "SAME_UPPER"},
        )
    ),
    *(
        pool(op, shape, attributes)
        for op in ("MaxPool", "AveragePool")
        for shape, attributes in (
            # several vectors in a line, and fewer than one
            ((2, 3, 9, 67), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
            ((2, 3, 9, 67), {"kernel_shape": [3, 5], "pads": [0, 2, 1, 4], "strides": [1, 2], "ceil_mode": 1}),
            ((1, 2, 7, 33), {"kernel_shape": [5, 2], "pads": [2, 0, 2, 1]}),
            ((1, 2, 150, 97), {"kernel_shape": [2, 3], "strides": [1, 3], "pads": [1, 1, 0, 0]}),
            ((2, 3, 5, 49), {"kernel_shape": [1, 9], "pads": [0, 4, 0, 4]}),
            ((2, 3, 49, 5), {"kernel_shape": [9, 1], "pads": [4, 0, 4, 0], "strides": [2, 1]}),
            ((1, 1, 3, 50_000), {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1]}),
            ((1, 2, 60_001), {"kernel_shape": [2], "strides": [2]}),
            ((2, 3, 4, 7, 35), {"kernel_shape": [3, 3, 3], "pads": [1, 1, 1, 1, 1, 1]}),
            ((2, 3, 5, 6, 37), {"kernel_shape": [3, 2, 3], "pads": [2, 1, 0, 1, 1, 2], "strides": [2, 1, 2]}),
            ((2, 3, 4, 5, 6), {"kernel_shape": [1, 3, 3], "strides": [1, 2, 2], "pads": [0, 1, 1, 0, 1, 1]}),
            ((2, 3, 6, 5, 7), {"kernel_shape": [3, 1, 1], "strides": [2, 1, 1], "pads": [1, 0, 0, 1, 0, 0]}),
            ((2, 3, 1, 9, 1), {"kernel_shape": [1, 4, 1]}),
        )
    ),
    pool("AveragePool", (2, 3, 4, 7, 35), {"kernel_shape": [3] * 3, "pads": [1] * 6, "count_include_pad": 1}),
    pool("AveragePool", (2, 3, 9, 67), {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
    pool("MaxPool", (1, 2, 7, 5), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 1, 0, 0]}, outputs=2),
    pool("MaxPool", (2, 3, 7, 5), {"kernel_shape": [2, 2], "storage_order": 1}, outputs=2),
    pool("MaxPool", (2, 3, 9), {"kernel_shape": [2], "dilations": [3]}, outputs=2),
    pool("MaxPool", (2, 3, 3, 4, 5), {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1]}, outputs=2),
    *(
        pool("LpPool", shape, attributes | {"p": p}, reference=_norms(attributes | {"p": p}), rtol=1e-4)
        for p in (1, 2, 3)
        for shape, attributes in (
            (PICTURE, {"kernel_shape": [3, 3]}),
            (PICTURE, {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 2]}),
            (PICTURE, {"kernel_shape": [2, 3], "dilations": [3, 2]}),
            ((2, 3, 17), {"kernel_shape": [4], "strides": [3]}),
            ((2, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2]}),
        )
    ),
    *(
        Case(f"{shape} p={p}", "GlobalLpPool", [draw(*shape)], {"p": p}, opset=2, reference="onnxruntime", rtol=1e-4)
        for shape in ((2, 3, 5, 7), (2, 3, 9))
        for p in (1, 2, 3)
    ),
    pool("MaxPool", (1, 2, 7, 5), {"kernel_shape": [3, 2]}, np.float64),
    pool("MaxPool", (1, 2, 7, 5), {"kernel_shape": [3, 2]}, np.float16),
    pool("MaxPool", (1, 2, 7, 5), {"kernel_shape": [3, 2], "pads": [1, 1, 1, 1]}, np.int8),
    pool("MaxPool", (1, 2, 7, 5), {"kernel_shape": [3, 2]}, np.uint8),
    *(
        pool("MaxPool", shape, attributes, dtype, outputs=2)
        for dtype in (np.int8, np.uint8)
        for shape, attributes in (
            ((2, 3, 7, 5), {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 1]}),
            ((2, 1, 17), {"kernel_shape": [4], "dilations": [3]}),
            ((1, 2, 3, 4, 5), {"kernel_shape": [2, 2, 2], "storage_order": 1}),
        )
    ),
    pool("AveragePool", (1, 2, 7, 5), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 0]}, np.float64, reference="onnx"),
    pool("AveragePool", (1, 2, 7, 5), {"kernel_shape": [3, 2]}, np.float16, reference="onnx"),
    pool("MaxPool", (0, 3, 5, 5), {"kernel_shape": [3, 3]}, reference=lambda x: np.zeros((0, 3, 3, 3), np.float32)),
    pool("MaxPool", (1, 37, 3, 3), {"kernel_shape": [2, 2]}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pool(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


_PLACES = np.array([[[[1, 3], [8, 14]]]], np.int64)
_UNPOOLED = np.array([[[[0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 0, 0], [0, 0, 8, 0]]]], np.float32)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (None, _UNPOOLED),
        ([1, 1, 5, 5], np.pad(_UNPOOLED, [(0, 0), (0, 0), (0, 1), (0, 1)])),
        ([1, 1, 3, 5], np.pad(_UNPOOLED, [(0, 0), (0, 0), (0, 0), (0, 1)])[:, :, :3]),
        ([2, 2, 4, 4], np.pad(_UNPOOLED, [(0, 1), (0, 1), (0, 0), (0, 0)])),
    ],
)
def test_elements_go_back_to_where_they_were(size: Any, expected: Any, backend: str, backend_context: Any) -> None:
    x = np.array([[[[5, 6], [7, 8]]]], np.float32)
    inputs = [x, _PLACES, *([] if size is None else [np.array(size, np.int64)])]
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    case = Case("", "MaxUnpool", inputs, attributes, opset=22, reference=lambda *_: expected)
    check(case, backend, backend_context)


def unpool(shape: tuple[int, ...], output: list[int] | None = None, **attributes: Any) -> Case:
    """A case that puts the largest elements of windows back to their positions."""
    rank = len(shape) - 2
    x = draw(*shape)
    pooled = Case("", "MaxPool", [x], attributes, outputs=2, opset=22, reference="onnxruntime")
    values, places = pooled.expected(pooled.proto())
    size = [] if output is None else [np.array([*shape[:2], *output], np.int64)]
    said = f"{shape} {output} {attributes}"
    strides = {"strides": attributes.get("strides", [1] * rank)}
    return Case(said, "MaxUnpool", [values, places, *size], attributes | strides, opset=22)


UNPOOLED = [
    unpool((2, 3, 6, 8), kernel_shape=[2, 2], strides=[2, 2]),
    unpool((2, 3, 6, 8), [7, 11], kernel_shape=[2, 2], strides=[2, 2]),
    unpool((1, 5, 7, 5), kernel_shape=[3, 3]),
    unpool((3, 2, 11), kernel_shape=[3], strides=[2]),
    unpool((1, 2, 4, 6, 5), kernel_shape=[2, 2, 1], strides=[2, 2, 1]),
    unpool((1, 1, 131, 151), kernel_shape=[1, 1]),  # in more than one pass
]


@pytest.mark.parametrize("case", UNPOOLED, ids=str)
def test_unpool(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.quick(cases=0)
@given(st.data())
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
def test_window_arithmetic_agrees_with_onnxruntime(data: Any) -> None:
    """Shapes and values agree with onnxruntime's for any window that it supports."""

    def two(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=2, max_size=2))

    size, kernel, strides, dilations = two(1, 9), two(1, 4), two(1, 4), two(1, 3)
    extent = [spread * (k - 1) + 1 for spread, k in zip(dilations, kernel, strict=True)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    auto_pad = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    begin, end = two(0, 3), two(0, 3)
    if auto_pad == "NOTSET":
        assume(all(pad < k for pad, k in zip([*begin, *end], kernel * 2, strict=True)))
        # a spread window may see padding alone: its largest is -inf here, and the lowest float in onnxruntime
        assume(dilations == [1, 1] or not any([*begin, *end]))
        attributes |= {"pads": [*begin, *end], "ceil_mode": data.draw(st.integers(0, 1))}
        assume(all(s + a + b >= e for s, a, b, e in zip(size, begin, end, extent, strict=True)))
    else:
        attributes["auto_pad"] = auto_pad
        if auto_pad == "VALID":
            assume(all(s >= e for s, e in zip(size, extent, strict=True)))
        else:  # onnxruntime takes neither dilation nor gaps between windows here
            assume(dilations == [1, 1] and all(s <= k for s, k in zip(strides, kernel, strict=True)))
    x = np.arange(2 * size[0] * size[1], dtype=np.float32).reshape(1, 2, *size)
    op = data.draw(st.sampled_from(["MaxPool", "AveragePool"]))
    if op == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    check(Case("drawn", op, [x], attributes, reference="onnxruntime", opset=22), "cpu")


LARGE = 2**30
FAR_LARGER: list[dict[str, Any]] = [
    {"kernel_shape": [LARGE, LARGE], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [50_000, 50_000], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3000, 3000], "pads": [2999] * 4, "strides": [999, 999]},
    {"kernel_shape": [3, 3], "dilations": [5 * 10**8] * 2, "pads": [LARGE] * 4, "strides": [LARGE, LARGE]},
]


@pytest.mark.parametrize("counting", [0, 1])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("window", FAR_LARGER, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_windows_far_larger_than_their_input(
    window: dict[str, Any], op: str, counting: int, dtype: Any, backend: str, backend_context: Any
) -> None:
    """Kernels skip taps beside the input: there are too many to visit."""
    attributes = window | ({"count_include_pad": counting} if op == "AveragePool" else {})
    if counting and op != "AveragePool":
        return
    x = np.full((1, 2, 4, 4), 3, dtype)
    case = Case("", op, [x], attributes, opset=22)
    (made,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context).values()
    whole = made[0, :, -1, -1]  # sees the whole input, or its first element where taps lie far apart
    seen = 1 if "dilations" in window else 16
    if op == "AveragePool" and counting:
        assert np.all(whole < 3) and np.all(whole >= 0)
    else:
        np.testing.assert_allclose(whole, 3 * seen**0.5 if op == "LpPool" else 3, rtol=1e-5)


def test_padding_counts_in_windows_far_larger_than_their_input(backend: str, backend_context: Any) -> None:
    attributes = {"kernel_shape": [9000] * 3, "pads": [8999] * 6, "strides": [9000] * 3, "count_include_pad": 1}
    for size in ((2, 2, 2), (2, 2)):
        kept = {
            name: value[: len(size) * (2 if name == "pads" else 1)]
            for name, value in attributes.items()
            if isinstance(value, list)
        }
        case = Case("", "AveragePool", [np.full((1, 1, *size), 9e12, np.float32)], kept | {"count_include_pad": 1})
        (made,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context).values()
        np.testing.assert_allclose(made.sum(), 9e12 * 2 ** len(size) / 9000.0 ** len(size), rtol=1e-4)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 1, 6), (1, 1, 1, 6), (1, 1, 1, 1, 6)], ids=str)
def test_norms_of_infinite_numbers_and_nan(shape: tuple[int, ...], p: int, backend: str, backend_context: Any) -> None:
    x = np.float32([1, 2, np.nan, 4, np.inf, -3]).reshape(shape)
    kernel = [1] * (len(shape) - 3) + [2]
    case = Case("", "LpPool", [x], {"kernel_shape": kernel, "p": p}, opset=22)
    (made,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context).values()
    wanted = [(1 + 2.0**p) ** (1 / p), np.nan, np.nan, np.inf, np.inf]
    np.testing.assert_allclose(made.ravel(), wanted, rtol=1e-4)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("strides", [[1, 1], [1, 2], [2, 3]])
def test_nan_and_infinities_stay_in_the_windows_that_hold_them(op: str, strides: list[int]) -> None:
    x = draw(1, 2, 6, 75)
    x[0, 0, 2, 40], x[0, 0, 5, 3], x[0, 1, 0, 0], x[0, 1, 3, 60] = np.nan, np.inf, -np.inf, np.nan
    attributes = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": strides}
    (made,) = pf.run(Case("", op, [x], attributes, opset=22).proto(), {"x0": x}, backend="cpu").values()
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf if op == "MaxPool" else 0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, :: strides[0], :: strides[1]]
    wanted = windows.max((-1, -2)) if op == "MaxPool" else windows.sum((-1, -2))
    np.testing.assert_array_equal(np.isnan(made), np.isnan(wanted))
    np.testing.assert_array_equal(np.isposinf(made), np.isposinf(wanted))
    np.testing.assert_array_equal(np.isneginf(made), np.isneginf(wanted))
