from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, ops, prepared, random
from perframe.backends import evaluator
from perframe.ir.report import noting
from perframe.passes import load_pass, prepare

DEPTH, COLUMNS = 64, 24
DRAW = np.random.default_rng(1)
WHOLE = DRAW.integers(-8, 8, (DEPTH, COLUMNS))
SCALES, ONE = (DRAW.random((2, COLUMNS)) / 8).astype(np.float32), np.float32(0.25)
X = {"x": ["n", DEPTH]}
PLAIN = node("MatMul", "x v", "y")


def dequantize(given: str, **attributes: Any) -> Any:
    return node("DequantizeLinear", given, "v", **attributes)


BLOCKS = dequantize("w s", axis=0, block_size=32)
INT4 = {"w": WHOLE.astype(ml_dtypes.int4), "s": SCALES}
TURNED = {"w": INT4["w"].T.copy(), "s": SCALES.T.copy()}
UINT4 = {"w": (WHOLE + 8).astype(ml_dtypes.uint4), "s": SCALES, "z": DRAW.integers(0, 16, (2, COLUMNS)).astype("u1")}
UINT4["z"] = UINT4["z"].astype(ml_dtypes.uint4)
INT8 = {"w": (WHOLE * 16).astype(np.int8), "s": SCALES[0]}
UINT8 = {"w": (WHOLE * 16 + 128).astype(np.uint8), "s": SCALES[0], "z": (np.arange(COLUMNS) * 9).astype(np.uint8)}
GEMM = [node("Gemm", "x v b", "g", transB=1), node("Relu", "g", "y")]
FIRES: dict[str, tuple[Any, Any]] = {
    "blocks of int4": ([BLOCKS, PLAIN], INT4),
    "zero points": ([dequantize("w s z", axis=0, block_size=32), PLAIN], UINT4),
    "a scale for each column": ([dequantize("w s", axis=1), PLAIN], INT8),
    "a zero point for each column": ([dequantize("w s z", axis=-1), PLAIN], UINT8),
    "one scale": ([dequantize("w s"), PLAIN], INT8 | {"s": ONE}),
    "one scale and zero point": ([dequantize("w s z"), PLAIN], UINT8 | {"s": ONE, "z": np.uint8(99)}),
    "a Gemm": ([dequantize("w s", axis=1, block_size=32), *GEMM], TURNED | {"b": random(COLUMNS, seed=4)}),
    "a Transpose": (
        [
            dequantize("w s", axis=1, block_size=32),
            node("Transpose", "v", "t", perm=[1, 0]),
            node("MatMul", "x t", "y"),
        ],
        TURNED,
    ),
    "a block of a whole column": ([dequantize("w s", axis=0, block_size=100), PLAIN], INT4 | {"s": SCALES[:1]}),
}
LEFT: dict[str, tuple[Any, Any, str]] = {
    "a scale for each row": ([dequantize("w s", axis=0), PLAIN], INT8 | {"s": random(DEPTH)}, "belongs to a row"),
    "blocks along the columns": (
        [dequantize("w s", axis=1, block_size=8), PLAIN],
        INT4 | {"s": random(DEPTH, 3)},
        "several columns",
    ),
    "blocks of no whole words": (
        [dequantize("w s", axis=0, block_size=20), PLAIN],
        INT4 | {"s": random(4, COLUMNS)},
        "do not fill whole words",
    ),
    "an infinite scale": ([dequantize("w s"), PLAIN], INT8 | {"s": np.float32(np.inf)}, "too large"),
    "weights on the left": (
        [dequantize("w s", axis=0, block_size=32), node("MatMul", "v x", "y")],
        INT4,
        "",
    ),
    "an addend of each element": (
        [BLOCKS, node("Gemm", "x v b", "y")],
        INT4 | {"b": random(64, 1)},
        "a constant for each column",
    ),
    "a factor": ([BLOCKS, node("Gemm", "x v", "y", alpha=2.0)], INT4, "have factors"),
    "a transposed left operand": ([BLOCKS, node("Gemm", "x v", "y", transA=1)], INT4, "is transposed"),
    "16 bits": (
        [dequantize("w s"), PLAIN],
        {"w": WHOLE.astype(np.int16), "s": ONE},
        "no kernel reads weights of int16",
    ),
}


def model_of(case: tuple[Any, ...], rows: Any = "n") -> Any:
    nodes, constants = case[:2]
    return graph(nodes, {"x": [rows, DEPTH]}, constants)


@pytest.mark.parametrize("name", FIRES)
def test_it_fires(name: str) -> None:
    made = ops(prepared(model_of(FIRES[name])))
    assert made == ["PackedMatMul+Relu" if name == "a Gemm" else "PackedMatMul"]


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_fire(name: str) -> None:
    nodes, constants, said = LEFT[name]
    shape = [COLUMNS, 3] if name == "weights on the left" else [DEPTH, DEPTH]
    loaded = pf.load(graph(nodes, {"x": shape}, constants), optimize=False)
    with noting() as refusals:
        assert load_pass("pack_weights")(loaded, evaluator()) == 0
    assert [said in reason.reason for reason in refusals] == [True] * bool(said)


@pytest.mark.parametrize("rows", [1, 17])
@pytest.mark.parametrize("name", FIRES)
def test_the_numbers_stay(name: str, rows: int, backend: str, backend_context: Any) -> None:
    check_numbers_stay(model_of(FIRES[name], rows), {"x": random(rows, DEPTH, seed=7)}, backend, backend_context)


def test_products_share_their_weights() -> None:
    nodes = [BLOCKS, node("MatMul", "x v", "a"), node("MatMul", "z v", "b"), node("Add", "a b", "y")]
    made, changed = apply("pack_weights", graph(nodes, X | {"z": ["n", DEPTH]}, INT4))
    assert changed == 2
    first, second = (layer for layer in made.layers if layer.op == "PackedMatMul")
    assert first.inputs[1] is second.inputs[1] and first.inputs[2] is second.inputs[2]


def test_weights_that_the_model_outputs_stay() -> None:
    made = prepared(graph([BLOCKS, PLAIN], X, INT4, "v y"))
    assert ops(made) == ["DequantizeLinear", "MatMul"]


@pytest.mark.parametrize("target", ["cpu", "gpu_compute", "gpu_pixel"])
def test_packed_weights_never_become_floats(target: str) -> None:
    """Their dequantization goes before a pass could fold it, which takes many times their memory."""

    def evaluate(layer: Any, given: Any) -> Any:
        assert layer.op != "DequantizeLinear"
        return evaluator()(layer, given)

    made = prepare(pf.load(model_of(FIRES["a Transpose"])), evaluate, target)
    assert ops(made) == ["PackedMatMul"]
