"""Layers with native kernels on the CPU agree with NumPy, for every dtype that the kernels take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from perframe.backends.cpu import backend as cpu
from perframe.testing import Draw
from perframe.testing.cases import Array

draw = Draw(91)
WHOLE = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)


def run(op: str, *inputs: Array, constants: dict[int, Array] | None = None, outputs: int = 1, **attributes: Any) -> Any:
    """The outputs of one node. The inputs in `constants` are known before the run."""
    known = constants or {}
    given = dict(zip((i for i in itertools.count() if i not in known), inputs, strict=False))
    kinds = helper.np_dtype_to_tensor_dtype
    infos = [helper.make_tensor_value_info(f"x{i}", kinds(x.dtype), x.shape) for i, x in given.items()]
    names = [f"x{i}" for i in range(len(given) + len(known))]
    made = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, made, name="node", **attributes)],
        "g",
        infos,
        [onnx.ValueInfoProto(name=name) for name in made],
        [numpy_helper.from_array(value, f"x{i}") for i, value in known.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    fed = {f"x{i}": x for i, x in given.items()}
    results = list(
        pf.run(pf.load(onnx.shape_inference.infer_shapes(model), optimize=False), fed, backend="cpu").values()
    )
    return results if outputs > 1 else results[0]


@pytest.fixture(autouse=True)
def only_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """No layer of these tests may run in Python."""

    def refuse(layer: Any, *rest: Any) -> Any:
        raise AssertionError(f"{layer.op} has no kernel here")

    monkeypatch.setattr(cpu, "_python_step", refuse)


def ends(dtype: Any) -> Array:
    """Numbers of a whole dtype: its ends and those around 0."""
    info = np.iinfo(dtype)
    near = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
    return np.array([*near, *((-1, -2, -5) if info.min else (5,))], dtype)


def pairs(dtype: Any) -> tuple[Array, Array]:
    a, b = np.meshgrid(ends(dtype), ends(dtype))
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def truncated(a: Array, b: Array) -> Array:
    """Divide and round towards zero. A division by zero gives 0, and results that overflow wrap around."""
    result = [
        0 if not y else int(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1)
        for x, y in zip(a.flat, b.flat, strict=True)
    ]
    bits = np.iinfo(a.dtype).bits
    wrapped = [value % 2**bits for value in result]
    return np.array(wrapped, f"u{a.itemsize}").view(a.dtype).reshape(a.shape)


PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": truncated,
    "Mod": np.mod,
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "GreaterOrEqual": np.greater_equal,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseXor": np.bitwise_xor,
}
ALONE: dict[str, Callable[[Array], Array]] = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign}


@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers_wrap_around(op: str, dtype: Any) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = PAIRS[op](a, b)
    np.testing.assert_array_equal(run(op, a, b), expected)


@pytest.mark.parametrize("op", ALONE)
@pytest.mark.parametrize("dtype", [dtype for dtype in WHOLE if np.iinfo(dtype).min])
def test_one_whole_number_wraps_around(op: str, dtype: Any) -> None:
    x = ends(dtype)
    np.testing.assert_array_equal(run(op, x), ALONE[op](x))


@pytest.mark.parametrize("to", [*WHOLE, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("source", [*WHOLE, np.bool_])
def test_casts_of_whole_numbers(source: Any, to: Any) -> None:
    x = np.array([True, False, True]) if source is np.bool_ else ends(source)
    y = run("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))
    assert y.dtype == to
    np.testing.assert_array_equal(y, x.astype(to))


@pytest.mark.parametrize("to", [np.int32, np.int64, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_casts_of_floats(source: Any, to: Any) -> None:
    x = np.array([0, -0.0, 0.9, -0.9, 1.5, -2.5, 16777217, -3e7, 1e-30], source)
    if np.dtype(to).kind != "i":
        x = np.append(x, np.array([np.nan, np.inf, -np.inf], source))
    np.testing.assert_array_equal(run("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(to))), x.astype(to))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("shapes", [((3, 1, 5), (2, 5), (2, 1)), ((7,), (7,), ()), ((1, 1), (4, 6), (4, 1))])
def test_where_broadcasts_every_operand(dtype: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    condition = draw(*shapes[0], dtype=bool)
    a, b = draw(*shapes[1], low=0, high=9, dtype=dtype), draw(*shapes[2], low=0, high=9, dtype=dtype)
    np.testing.assert_array_equal(run("Where", condition, a, b), np.where(condition, a, b))


def test_logic() -> None:
    a, b = np.array([[True], [False]]), np.array([True, False, True])
    np.testing.assert_array_equal(run("And", a, b), a & b)
    np.testing.assert_array_equal(run("Or", a, b), a | b)
    np.testing.assert_array_equal(run("Xor", a, b), a ^ b)
    np.testing.assert_array_equal(run("Not", a), ~a)


# --- moves of every size of elements ---

SIZES = (np.bool_, np.int8, np.float16, np.float32, np.float64, np.int64)


@pytest.mark.parametrize("dtype", SIZES)
def test_moves_take_every_dtype_of_a_size(dtype: Any) -> None:
    x = draw(3, 7, 5, low=-9, high=9, dtype=dtype)
    np.testing.assert_array_equal(run("Transpose", x, perm=[2, 0, 1]), x.transpose(2, 0, 1))
    np.testing.assert_array_equal(run("Concat", x, x[:, :2], axis=1), np.concatenate([x, x[:, :2]], 1))
    first, second = run("Split", x, outputs=2, axis=2, constants={1: np.array([2, 3])})
    np.testing.assert_array_equal(first, x[..., :2])
    np.testing.assert_array_equal(second, x[..., 2:])
    shape = np.array([4, 3, 7, 5])
    np.testing.assert_array_equal(run("Expand", x, constants={1: shape}), np.broadcast_to(x, shape))
    bounds = {1: np.array([-1, 1]), 2: np.array([-99, 99]), 3: np.array([0, 2]), 4: np.array([-1, 2])}
    np.testing.assert_array_equal(run("Slice", x, constants=bounds), x[::-1, :, 1::2])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("widths", [((0, 0), (2, 1), (1, 3)), ((1, 1), (0, 0), (0, 0)), ((0, 2), (3, 0), (0, 0))])
def test_pads_of_every_mode(mode: Any, dtype: Any, widths: tuple[tuple[int, int], ...]) -> None:
    x = draw(3, 4, 5, low=-9, high=9, dtype=dtype)
    pads = np.array([before for before, _ in widths] + [after for _, after in widths])
    np.testing.assert_array_equal(run("Pad", x, constants={1: pads}, mode=mode), np.pad(x, widths, mode))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_by_indices_of_the_run(dtype: Any, kind: Any, axis: int) -> None:
    x, at = draw(3, 4, 17, low=-9, high=9, dtype=dtype), np.array([[2, -1], [0, -3]], kind)
    np.testing.assert_array_equal(run("Gather", x, at, axis=axis), np.take(x, at, axis))


@pytest.mark.parametrize("index", [3, -4, 2**40])
def test_a_gathered_index_outside_is_an_error(index: int) -> None:
    x, at = draw(3, 2), np.array([0, index])
    with pytest.raises(pf.PerframeError, match=f"node.*index {index} reaches beyond 3 elements"):
        run("Gather", x, at)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("rows", [1, 15, 16, 17, 300, 523])
def test_few_columns_to_rows_and_back(columns: int, rows: int) -> None:
    x = draw(2, columns, rows)
    y = run("Transpose", x, perm=[0, 2, 1])
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))
    np.testing.assert_array_equal(run("Transpose", y, perm=[0, 2, 1]), x)


# --- rows, short and long ---


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 31, 32, 67])
@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (71, 1), (3, 2), (2, 259)])
def test_softmax_of_any_rows(outer: int, size: int, inner: int) -> None:
    x = draw(outer, size, inner, low=-9, high=9)
    wanted = softmax(x, 1)
    np.testing.assert_allclose(run("Softmax", x, axis=1), wanted, 1e-5, 1e-7)
    np.testing.assert_allclose(run("LogSoftmax", x, axis=1), np.log(wanted), 1e-5, 1e-6)


@pytest.mark.parametrize("size", [2, 7, 40])
def test_a_softmax_keeps_nan_in_its_row(size: int) -> None:
    x = draw(70, size)
    x[3, 1], x[5, 0], x[68, :] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run("Softmax", x, axis=-1), softmax(x, -1), 1e-5, 1e-7)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 70, 130), (1, 1, 4099), (65, 2, 64), (9, 300, 3)])
def test_reductions_of_any_axes(axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = draw(*shape)
    wide, at = x.astype(np.float64), {1: np.array(axes)}
    count = x.size // np.prod([dim for axis, dim in enumerate(shape) if axis not in axes])
    np.testing.assert_allclose(run("ReduceSum", x, constants=at), wide.sum(axes, keepdims=True), 1e-5, 2e-6 * count)
    np.testing.assert_array_equal(run("ReduceMax", x, constants=at), x.max(axes, keepdims=True))
    np.testing.assert_allclose(run("ReduceL2", x, constants=at), np.sqrt((wide**2).sum(axes, keepdims=True)), 1e-5)
    wanted = np.log(np.exp(wide).sum(axes, keepdims=True))
    np.testing.assert_allclose(run("ReduceLogSumExp", x, constants=at), wanted, 1e-5, 1e-6)


def test_extremes_keep_nan() -> None:
    x = draw(4, 300)
    x[1, 299] = x[2, 5] = np.nan
    for op, function in (("ReduceMax", np.max), ("ReduceMin", np.min)):
        np.testing.assert_array_equal(run(op, x, constants={1: np.array([1])}, keepdims=0), function(x, 1))
        np.testing.assert_array_equal(run(op, x, constants={1: np.array([0])}, keepdims=0), function(x, 0))


@pytest.mark.parametrize("shape", [(2, 1, 3), (1, 5, 7), (2, 11, 300), (1, 3, 2, 2)])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_local_response(shape: tuple[int, ...], size: int) -> None:
    x = draw(*shape, low=-3, high=3)
    before = (size - 1) // 2
    squares = np.pad((x.astype(np.float64) ** 2), [(0, 0), (before, size - 1 - before), *((0, 0),) * (x.ndim - 2)])
    total = sum(squares[:, k : k + shape[1]] for k in range(size))
    wanted = x / (1.5 + 0.3 / size * total) ** 0.6
    np.testing.assert_allclose(run("LRN", x, size=size, alpha=0.3, beta=0.6, bias=1.5), wanted, 1e-5)


@pytest.mark.parametrize("inner", [1, 2, 3, 16, 63])
def test_short_rows_that_operands_repeat(inner: int) -> None:
    x, row, column = draw(3, 60, inner), draw(1, inner), draw(60, 1)
    np.testing.assert_array_equal(run("Add", x, row), x + row)
    np.testing.assert_array_equal(run("Add", x, constants={1: row}), x + row)
    np.testing.assert_array_equal(run("Mul", x, column), x * column)
    each = draw(3, 1, inner)
    np.testing.assert_array_equal(run("Sub", each, x), each - x)


# --- formulas over all numbers ---

ANGLES: dict[str, Callable[[Array], Array]] = {
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}


def everything(count: int, seed: int) -> Array:
    """Bits at random, numbers of the usual size, and special ones."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    usual = [random.uniform(-high, high, count).astype(np.float32) for high in (1, 20, 95)]
    special = [0, -0.0, 1, -1, 0.5, 2, -3, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 2**24, 2**24 + 2, -(2.0**90)]
    return np.concatenate([bits, *usual, np.array(special, np.float32)])


@pytest.mark.parametrize("op", ANGLES)
def test_formulas_are_right_to_a_millionth(op: str) -> None:
    x = everything(20000, 5)
    with np.errstate(all="ignore"):
        wanted = ANGLES[op](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(run(op, x), wanted, 1e-6, 1e-37)


def test_powers_are_right_to_a_millionth() -> None:
    a, b = everything(20000, 6), everything(20000, 7)[::-1].copy()
    special = a[-16:]
    a, b = np.concatenate([a, np.repeat(special, 16)]), np.concatenate([b, np.tile(special, 16)])
    for base in (a, np.abs(a)):
        with np.errstate(all="ignore"):
            wanted = np.power(base.astype(np.float64), b.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(run("Pow", base, b), wanted, 1e-6, 1e-37)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 0.5, -1.5])
def test_powers_by_a_known_number(exponent: float) -> None:
    x, known = everything(2000, 8), np.array(exponent, np.float32)
    with np.errstate(all="ignore"):
        # by an array: for one number NumPy takes the root of -inf, which is no number
        wanted = np.power(x.astype(np.float64), np.full(x.shape, exponent)).astype(np.float32)
    np.testing.assert_allclose(run("Pow", x, constants={1: known}), wanted, 1e-6, 1e-37)


@pytest.mark.parametrize("kernel", [(3, 3, 3), (3, 1, 1), (1, 3, 3), (9, 9, 1)], ids=str)
def test_windows_over_three_spatial_dims(kernel: tuple[int, ...]) -> None:
    x, w = draw(2, 3, 9, 10, 11), draw(5, 3, *kernel)
    pads = [k // 2 for k in kernel] * 2
    made = run("Conv", x, constants={1: w}, pads=pads)
    padded = np.pad(x, [(0, 0), (0, 0), *((k // 2, k // 2) for k in kernel)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3, 4))
    np.testing.assert_allclose(made, np.einsum("nczyxijk,ocijk->nozyx", windows, w), rtol=1e-4, atol=1e-4)
    pooled = run("AveragePool", x, kernel_shape=kernel, pads=pads, count_include_pad=1)
    np.testing.assert_allclose(pooled, windows.mean((-1, -2, -3)), rtol=1e-5, atol=1e-5)
