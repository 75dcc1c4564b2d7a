"""Quantized operators of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from layers.test_contrib import check, model
from perframe.testing import Draw
from perframe.testing.cases import Array

draw = Draw(73)


def number(value: float) -> Array:
    return np.array(value, np.float32)


def small(*shape: int, dtype: Any = np.uint8) -> Array:
    info = np.iinfo(dtype)
    return draw(*shape, low=info.min, high=info.max, dtype=np.int64).astype(dtype)


def signed(*shape: int) -> Array:
    """Weights of seven bits: without VNNI, onnxruntime's sums of two products with larger ones saturate at int16."""
    return draw(*shape, low=-64, high=63, dtype=np.int64).astype(np.int8)


def zero(value: int, dtype: Any = np.uint8) -> Array:
    return np.array(value, dtype)


S = [number(0.03), zero(120)]
T = [number(0.05), zero(-3, np.int8)]
PICTURE = small(2, 3, 5, 4)
CASES: list[tuple[str, str, list[Array | None], dict[str, Any]]] = [
    ("", "QLinearAdd", [small(2, 3), *S, small(2, 3), number(0.02), zero(90), number(0.05), zero(100)], {}),
    ("int8", "QLinearAdd", [small(2, 3, dtype=np.int8), *T, small(3, dtype=np.int8), *T, *T], {}),
    ("", "QLinearMul", [small(2, 3), *S, small(2, 1), number(0.02), zero(90), number(0.07), zero(100)], {}),
    ("", "QLinearWhere", [np.array([[True], [False]]), small(2, 3), *S, small(2, 3), number(0.02), zero(90), *S], {}),
    ("", "QLinearSigmoid", [small(4, 5), *S, number(1 / 256), zero(0)], {}),
    ("int8", "QLinearSigmoid", [small(4, 5, dtype=np.int8), *T, number(1 / 256), zero(-128, np.int8)], {}),
    ("", "QLinearLeakyRelu", [small(4, 5), *S, number(0.02), zero(30)], {"alpha": 0.2}),
    ("", "QLinearSoftmax", [small(4, 5), *S, number(1 / 256), zero(0)], {"axis": -1, "opset": 13}),
    ("", "QLinearGlobalAveragePool", [PICTURE, *S, number(0.02), zero(30)], {}),
    ("last", "QLinearGlobalAveragePool", [PICTURE, *S, number(0.02), zero(30)], {"channels_last": 1}),
    ("", "QLinearAveragePool", [PICTURE, *S, number(0.02), zero(30)], {"kernel_shape": [2, 2], "strides": [2, 1]}),
    (
        "last",
        "QLinearAveragePool",
        [PICTURE, *S, *S],
        {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1], "channels_last": 1},
    ),
    ("", "QLinearConcat", [*S, small(2, 3), *S, small(2, 2), number(0.02), zero(90)], {"axis": 1}),
    ("", "QuantizeLinear", [draw(2, 3, low=-3, high=3), number(0.03), zero(128)], {}),
    ("axis", "QuantizeLinear", [draw(2, 3, low=-3, high=3), draw(3, low=0.01, high=0.1), small(3)], {"axis": 1}),
    ("int16", "QuantizeLinear", [draw(2, 3, low=-3, high=3), number(0.003), zero(128, np.uint16)], {}),
    ("", "DequantizeLinear", [small(2, 3), number(0.03), zero(128)], {}),
    ("axis", "DequantizeLinear", [small(2, 3), draw(2, low=0.01, high=0.1), small(2)], {"axis": 0}),
    ("int32", "DequantizeLinear", [draw(2, 3, low=-99, high=99, dtype=np.int32), number(0.03)], {}),
    ("", "QGemm", [small(3, 4), *S, small(4, 5), number(0.02), zero(100), None, number(0.4), zero(90)], {}),
    ("real", "QGemm", [small(3, 4), *S, small(5, 4), number(0.02), zero(100)], {"transB": 1, "alpha": 0.5}),
    (
        "columns",
        "QGemm",
        [
            *(small(3, 4), *S, signed(4, 5), draw(5, low=0.01, high=0.1), np.zeros(5, np.int8)),
            draw(5, low=-999, high=999, dtype=np.int32),
        ],
        {},
    ),
    ("", "MatMulIntegerToFloat", [small(3, 4), small(4, 5), number(0.02), number(0.03)], {}),
    (
        "columns",
        "MatMulIntegerToFloat",
        [small(2, 3, 4), small(4, 5), number(0.02), draw(5, low=0.01, high=1), zero(100), small(5), draw(5)],
        {},
    ),
    ("", "DynamicQuantizeMatMul", [draw(3, 4), small(4, 5), number(0.03)], {}),
    ("zero", "DynamicQuantizeMatMul", [draw(2, 3, 4), small(4, 5), number(0.03), zero(130), draw(5)], {}),
    ("int8", "DynamicQuantizeMatMul", [draw(3, 4), signed(4, 5), draw(5, low=0.1, high=1)], {}),
    ("still", "DynamicQuantizeMatMul", [np.zeros((3, 4), np.float32), small(4, 5), number(0.03)], {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[0]}".rstrip("-"))
def test_against_onnxruntime(case: Any, backend: str, backend_context: Any) -> None:
    _, op, inputs, attributes = case
    pool = "Pool" in op  # onnxruntime wants those as constants
    constants = [index for index in range(1, len(inputs)) if inputs[index] is not None] if pool else ()
    check(backend, backend_context, op, inputs, attributes, constants=constants, tolerance=1e-4)


def test_zero_points_that_are_left_out(backend: str, backend_context: Any) -> None:
    left, right = small(2, 3), small(2, 3)
    given = [left, number(0.02), None, right, number(0.03), None, number(0.06)]
    wanted = np.clip(np.rint((left * 0.02 + right * 0.03) / 0.06), 0, 255).astype(np.uint8)
    check(backend, backend_context, "QLinearAdd", given, wanted=[wanted])


@pytest.mark.parametrize("last", [0, 1])
def test_conv(last: int, backend: str, backend_context: Any) -> None:
    x, w = small(1, 3, 6, 5), signed(4, 3, 3, 3)
    x = x.transpose(0, 2, 3, 1).copy() if last else x
    inputs = [x, *S, w, number(0.02), zero(0, np.int8), number(0.4), zero(90)]
    attributes = {"kernel_shape": [3, 3], "channels_last": last, "pads": [1, 1, 1, 1]}
    check(backend, backend_context, "QLinearConv", inputs, attributes, constants=range(1, 8))


@pytest.mark.parametrize(  # onnxruntime has no real zero points for 8 bits
    "bits, zeros", [(bits, zeros) for bits in (2, 4, 8) for zeros in ("", "packed", "real")[: 2 if bits == 8 else 3]]
)
@pytest.mark.parametrize("depth", [32, 80])
def test_packed_weights(bits: int, zeros: str, depth: int, backend: str, backend_context: Any) -> None:
    rows, block = 6, 16
    blocks = depth // block
    packed, scales = small(rows, blocks, block * bits // 8), draw(rows * blocks, low=0.01, high=0.1)
    inputs: list[Array | None] = [draw(2, 3, depth), packed, scales]
    if zeros == "packed":
        inputs.append(small(rows * (-(-blocks * bits // 8))))
    elif zeros == "real":
        inputs.append(draw(rows, blocks, low=0, high=9))
    attributes = {"bits": bits, "block_size": block, "N": rows, "K": depth, "accuracy_level": 0}
    constants = range(1, len(inputs))
    check(backend, backend_context, "MatMulNBits", inputs, attributes, constants=constants, tolerance=2e-4, native=True)


def test_packed_weights_with_a_bias(backend: str, backend_context: Any) -> None:
    inputs = [draw(3, 40), small(4, 3, 8), draw(12, low=0.01, high=0.1), None, None, draw(4)]
    attributes = {"bits": 4, "block_size": 16, "N": 4, "K": 40}
    check(backend, backend_context, "MatMulNBits", inputs, attributes, constants=(1, 2, 5), tolerance=2e-4, native=True)


def lstm_inputs(directions: int, batch: int, hidden: int, per_gate: bool, dtype: Any) -> list[Array | None]:
    steps, depth = 5, 7
    scales = (directions, 4 * hidden) if per_gate else (directions,)
    draw_weights = signed if dtype is np.int8 else small
    weights = [draw_weights(directions, size, 4 * hidden) for size in (depth, hidden)]
    x, bias = draw(steps, batch, depth), draw(directions, 8 * hidden)
    states = [draw(directions, batch, hidden) for _ in range(2)]
    zeros = [np.full(scales, 128 if dtype is np.uint8 else 0, dtype) for _ in range(2)]
    w_scale, r_scale = (draw(*scales, low=0.001, high=0.004) for _ in range(2))
    return [x, *weights, bias, None, *states, None, w_scale, zeros[0], r_scale, zeros[1]]


@pytest.mark.parametrize(
    "directions, batch, hidden, per_gate, dtype",
    [(1, 1, 16, False, np.uint8), (2, 3, 19, True, np.int8), (1, 40, 5, False, np.int8), (2, 1, 64, False, np.uint8)],
)
def test_lstm(
    directions: int, batch: int, hidden: int, per_gate: bool, dtype: Any, backend: str, backend_context: Any
) -> None:
    inputs = lstm_inputs(directions, batch, hidden, per_gate, dtype)
    attributes = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
    constants = (1, 2, 3, 8, 9, 10, 11)
    check(
        *(backend, backend_context, "DynamicQuantizeLSTM", inputs, attributes),
        outputs=3,
        constants=constants,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 0), (2, 3)])
def test_rows_of_a_packed_table(bits: int, zeros: bool, shape: Any, backend: str, backend_context: Any) -> None:
    rows, blocks, block = 7, 3, 16
    packed, scales = small(rows, blocks * block * bits // 8), draw(rows, blocks, low=0.01, high=0.1)
    indices = np.random.default_rng(bits).integers(0, rows, shape)
    inputs: list[Array | None] = [packed, indices, scales]
    if zeros:
        inputs.append(small(rows, -(-blocks * bits // 8)))
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    constants = [index for index in range(len(inputs)) if index != 1]
    check(backend, backend_context, "GatherBlockQuantized", inputs, attributes, constants=constants, native=True)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_rows_of_a_table_of_small_numbers(dtype: str, backend: str, backend_context: Any) -> None:
    codes = np.random.default_rng(1).integers(0, 8, (5, 32)).astype(pf.DataType(dtype).numpy)
    inputs: list[Array | None] = [codes, np.array([[4, 0], [1, 4]]), draw(5, 2, low=0.01, high=0.1)]
    attributes = {"block_size": 16}
    check(backend, backend_context, "GatherBlockQuantized", inputs, attributes, constants=(0, 2), native=True)


def test_other_tables_are_reported() -> None:
    inputs = [small(4, 16), np.array([1]), draw(4, 2)]
    with pytest.raises(pf.UnsupportedOperatorError, match="whose rows are gathered"):
        attributes = {"gather_axis": 1, "quantize_axis": 0, "block_size": 16}
        pf.load(model("GatherBlockQuantized", inputs, attributes, constants=(0, 2)))


def test_weights_that_are_no_constant_are_reported() -> None:
    inputs = [draw(3, 32), small(4, 2, 8), draw(8)]
    with pytest.raises(pf.UnsupportedOperatorError, match="'x1' is not a constant"):
        pf.load(model("MatMulNBits", inputs, {"bits": 4, "block_size": 16, "N": 4, "K": 32}))
    with pytest.raises(pf.UnsupportedOperatorError, match="bits=3"):
        pf.load(model("MatMulNBits", inputs, {"bits": 3, "block_size": 16, "N": 4, "K": 32}, constants=(1, 2)))
