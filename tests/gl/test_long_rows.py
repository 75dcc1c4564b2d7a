"""Reductions, softmax, norms and recurrent products over long rows, few rows and odd sizes, in parts, and by lanes that
work together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import gl_choices
from perframe.testing import Case, check
from small import load, node
from support import GL_BACKENDS

SHAPES = [
    ((1, 70_001), (1,)),
    ((3, 4097), (1,)),
    ((1, 4096), (1,)),
    ((257, 13), (1,)),
    ((130, 64), (1,)),
    ((4097, 3), (0,)),
    ((2099, 8), (0,)),
    ((1031, 251), (0,)),
    ((3, 601, 7), (1,)),
    ((5, 7, 9, 11), (0, 2)),
    ((3, 8, 31, 37), (0, 2, 3)),
    ((2, 3, 64, 68), (2, 3)),
    ((2, 513, 6, 4), (1, 3)),
    ((601, 599), (0, 1)),
]
REDUCTIONS: dict[str, Any] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceL2": lambda x, axes: np.sqrt((x * x).sum(axes)),
    "ReduceLogSumExp": lambda x, axes: np.log(np.exp(x).sum(axes)),
}


LANES = {"gpu_compute": ("64", "1"), "gpu_pixel": ("1",)}


@pytest.fixture(params=[(name, lanes) for name in GL_BACKENDS for lanes in LANES[name]])
def where(request: pytest.FixtureRequest, gl_context: Any) -> Iterator[str]:
    """A backend; on gpu_compute with each variant of the lanes that share a row."""
    name, lanes = request.param
    with gl_choices(gl_context).trying("lanes", lanes):
        yield name


def numbers(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(0.3, 2, shape).astype(np.float32)


def run(op: str, where: str, ctx: Any, given: list[Any], **attributes: Any) -> Any:
    """The layer's first output. Inputs after the first are constants."""
    constants = {f"c{index}": value for index, value in enumerate(given[1:])}
    layers, dtypes = [node(op, " ".join(("x", *constants)), "y", **attributes)], {"x": given[0].dtype.name}
    model = load(layers, {"x": given[0].shape}, "y", constants, dtypes)
    return pf.run(model, {"x": given[0]}, where, strict=True, ctx=ctx)["y"]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str, where: str, gl_context: Any) -> None:
    for shape, axes in SHAPES:
        x = numbers(*shape)
        y = run(op, where, gl_context, [x, np.array(axes)], keepdims=0)
        wanted = REDUCTIONS[op](x.astype(np.float64), axes)
        largest = REDUCTIONS["ReduceL2"](x.astype(np.float64), axes).max()
        np.testing.assert_allclose(y, wanted, 2e-6, 2e-6 * largest, err_msg=f"{op} of {shape} over {axes}")


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_first_elements(dtype: str, where: str, gl_context: Any) -> None:
    """Few different numbers, so that many are equal, and in one row nothing else."""
    for shape, axes in SHAPES[:: 1 if dtype == "float32" else 4]:
        axis, x = axes[-1], np.round(numbers(*shape) * 3).astype(dtype)
        np.moveaxis(x, axis, -1)[(-1,) * (x.ndim - 1)] = 5
        for op, compared in (("ArgMax", x), ("ArgMin", -x)):
            for last in (0, 1):
                given = np.flip(compared, axis) if last else compared
                wanted = given.argmax(axis)
                wanted = x.shape[axis] - 1 - wanted if last else wanted
                y = run(op, where, gl_context, [x], axis=axis, keepdims=0, select_last_index=last)
                np.testing.assert_array_equal(y, wanted, f"{op} of {shape} along {axis}, last {last}")


def softmax(x: Any, axis: int) -> Any:
    shares = np.exp(x - x.max(axis, keepdims=True))
    return shares / shares.sum(axis, keepdims=True)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str, where: str, gl_context: Any) -> None:
    for shape, axes in SHAPES:
        axis, x = axes[-1], numbers(*shape)
        wanted = softmax(x.astype(np.float64), axis)
        wanted, least = (np.log(wanted), 1e-6) if op == "LogSoftmax" else (wanted, 1e-9)
        y = run(op, where, gl_context, [x], axis=axis)
        np.testing.assert_allclose(y, wanted, 5e-6, least, err_msg=f"{op} of {shape} along {axis}")


def test_special_values(where: str, gl_context: Any) -> None:
    nan, inf = np.nan, np.inf
    for shape, axis in (((12, 4097), 1), ((1500, 12), 0), ((12, 10), 1)):
        x = np.moveaxis(numbers(*shape), axis, -1).copy()
        for row, values in enumerate(([nan], [inf], [-inf], [inf, nan], [inf, inf], [inf, -inf], [nan, -inf])):
            x[row, [0, -1, 5][: len(values)]] = values
        x[8], x[9], x[10] = -inf, inf, nan
        x = np.ascontiguousarray(np.moveaxis(x, -1, axis))
        with np.errstate(all="ignore"):
            for op, wanted in (("ReduceSum", x.sum(axis)), ("ReduceMax", x.max(axis)), ("ReduceMin", x.min(axis))):
                y = run(op, where, gl_context, [x, np.array([axis])], keepdims=0)
                np.testing.assert_allclose(y, wanted, 1e-4, 1e-3, err_msg=f"{op} of {shape}")
            for op, wanted in (("ArgMax", x.argmax(axis)), ("ArgMin", x.argmin(axis))):  # NaN is found first
                y = run(op, where, gl_context, [x], axis=axis, keepdims=0)
                np.testing.assert_array_equal(y, wanted, f"{op} of {shape}")
            wanted = softmax(x.astype(np.float64), axis)
        np.testing.assert_allclose(run("Softmax", where, gl_context, [x], axis=axis), wanted, 1e-5, 1e-9)


@pytest.mark.parametrize("shape", [(3, 4097), (1, 4096), (2, 70_001), (130, 64), (257, 13), (5, 1), (1, 300_007)])
def test_norms_of_rows(shape: tuple[int, int], where: str, gl_context: Any) -> None:
    x, scale, bias = numbers(*shape) + 100, numbers(shape[1]), numbers(shape[1])
    wide = x.astype(np.float64)
    y = run("LayerNormalization", where, gl_context, [x, scale, bias])
    wanted = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * scale + bias
    np.testing.assert_allclose(y, wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 4, 64, 64), (3, 2, 97, 101), (1, 8, 1, 1), (2, 12, 3, 4)])
def test_norms_of_channels(shape: tuple[int, ...], where: str, gl_context: Any) -> None:
    x, scale, bias = numbers(*shape), numbers(shape[1]), numbers(shape[1])
    for groups in (shape[1], 2):
        wide = x.astype(np.float64).reshape(shape[0], groups, -1)
        rows = (wide - wide.mean(2, keepdims=True)) / np.sqrt(wide.var(2, keepdims=True) + 1e-5)
        wanted = rows.reshape(shape) * scale[:, None, None] + bias[:, None, None]
        instance = groups == shape[1]
        op, more = ("InstanceNormalization", {}) if instance else ("GroupNormalization", {"num_groups": groups})
        y = run(op, where, gl_context, [x, scale, bias], **more)
        np.testing.assert_allclose(y, wanted, 1e-4, 1e-4, err_msg=f"{op} of {shape}")


def test_a_sum_has_the_accuracy_of_float32(where: str, gl_context: Any) -> None:
    """One float32 that adds up all numbers would be wrong by a hundredth."""
    x = np.full((1, 1 << 20), 0.1, np.float32)
    y = run("ReduceSum", where, gl_context, [x, np.array([1])])
    np.testing.assert_allclose(y, x.sum(dtype=np.float64), 1e-5)


@pytest.mark.parametrize("fixed", [True, False], ids=["constant weights", "weights as inputs"])
@pytest.mark.parametrize(("op", "gates", "more"), [("RNN", 1, 0), ("GRU", 3, 0), ("GRU", 3, 1), ("LSTM", 4, 0)])
def test_recurrent_layers(op: str, gates: int, more: int, fixed: bool, where: str, gl_context: Any) -> None:
    for steps, batch, hidden, way in ((4, 1, 128, "forward"), (3, 3, 67, "bidirectional"), (1, 1, 257, "reverse")):
        d = 2 if way == "bidirectional" else 1
        shapes = ((d, gates * hidden, 5), (d, gates * hidden, hidden), (d, 2 * gates * hidden))
        given = [numbers(steps, batch, 5), *(0.05 * numbers(*shape) for shape in shapes)]
        attributes = {"hidden_size": hidden, "direction": way} | ({"linear_before_reset": 1} if more else {})
        options: dict[str, Any] = {"constants": [1, 2, 3] if fixed else [], "reference": "onnxruntime"}
        outputs = 3 if op == "LSTM" else 2
        case = Case(f"{hidden} {way}", op, given, attributes, outputs, opset=22, rtol=1e-5, atol=1e-5, **options)
        check(case, where, gl_context)


@pytest.mark.parametrize(("op", "gates", "more", "each"), [("LSTM", 4, 0, 1), ("GRU", 3, 1, 1), ("GRU", 3, 0, 2)])
def test_a_step_of_a_recurrent_layer_is_one_launch(
    op: str, gates: int, more: int, each: int, where: str, gl_context: Any
) -> None:
    """A GRU that resets before the product needs its gates first: two launches."""
    attributes = {"hidden_size": 8, "direction": "bidirectional"} | ({"linear_before_reset": 1} if more else {})
    weights = {"w": numbers(2, gates * 8, 4), "r": numbers(2, gates * 8, 8)}
    launches = []
    for steps in (6, 12):
        model = load([node(op, "x w r", "y", **attributes)], {"x": (steps, 2, 4)}, "y", weights)
        with pf.Worker(model, where, gl_context, strict=True) as worker:
            worker.schedule(numbers(steps, 2, 4))
            launches.append(len(worker.report()))
    assert launches[1] - launches[0] <= 6 * each + 2  # and the states of six steps are joined at once
