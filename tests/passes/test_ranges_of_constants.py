"""Constants are folded into each other only if no order of the products leaves float32's range."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import perframe as pf
from passes.graphs import graph, node, random
from perframe.testing.cases import expected_by_onnxruntime


def normal(*shape: int, seed: int = 0, times: float = 1) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * times).astype(np.float32)


def product(*nodes: onnx.NodeProto, x: Any, **constants: Any) -> tuple[onnx.ModelProto, Any]:
    return graph(nodes, {"x": x.shape}, {name: np.float32(value) for name, value in constants.items()}), x


def norm(given: str, made: str, scale: str) -> onnx.NodeProto:
    return node("BatchNormalization", f"{given} {scale} zeros zeros ones", made)


ZEROS = {"zeros": np.zeros(4), "ones": np.ones(4)}
SCALE, MATMUL = node("Mul", "x k", "s"), node("MatMul", "s w", "y")
CONV = node("Conv", "x w", "s")
W, PICTURE = normal(4, 4, 3, 3, seed=1), normal(1, 4, 5, 5)
CASES = {
    "a factor and weights, too large": product(
        SCALE, MATMUL, x=normal(3, 8, times=1e-20), k=1e30, w=normal(8, 4, times=1e20)
    ),
    "a factor and weights, too small": product(
        SCALE, MATMUL, x=normal(3, 8, times=1e25), k=1e-30, w=normal(8, 4, times=1e-20)
    ),
    "a factor that would save what is lost": product(
        SCALE, MATMUL, x=normal(3, 8, times=1e-30), k=1e-20, w=normal(8, 4, times=1e20)
    ),
    "a divisor": product(node("Div", "x k", "s"), MATMUL, x=normal(3, 8, times=1e-10), k=1e-37, w=normal(8, 4)),
    "two products": product(
        node("MatMul", "x a", "s"),
        MATMUL,
        x=normal(3, 8, times=1e-25),
        a=normal(8, 6, times=1e20),
        w=normal(6, 4, times=1e25),
    ),
    "two products of small weights": product(
        node("MatMul", "x a", "s"),
        MATMUL,
        x=normal(3, 8, times=1e30),
        a=normal(8, 6, times=1e-25),
        w=normal(6, 4, times=1e-20),
    ),
    "a convolution and a norm": product(
        CONV, norm("s", "y", "g"), x=PICTURE * 1e-25, w=W * 1e20, g=np.full(4, 1e25), **ZEROS
    ),
    "a convolution and a small norm": product(
        CONV, norm("s", "y", "g"), x=PICTURE * 1e30, w=W * 1e-20, g=np.full(4, 1e-25), **ZEROS
    ),
    "a convolution and two factors": product(
        CONV, node("Mul", "s k", "t"), node("Mul", "t l", "y"), x=PICTURE * 1e-20, w=W * 1e20, k=1e25, l=1e-25
    ),
    "three norms": product(
        norm("x", "s", "g"),
        norm("s", "t", "g"),
        norm("t", "y", "h"),
        x=PICTURE * 1e-25,
        g=np.full(4, 1e25),
        h=np.full(4, 1e-25),
        **ZEROS,
    ),
    "a transposed convolution and a norm": product(
        node("ConvTranspose", "x w", "s"),
        norm("s", "y", "g"),
        x=PICTURE * 1e-25,
        w=W * 1e20,
        g=np.full(4, 1e25),
        **ZEROS,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_folding_keeps_the_range(case: tuple[onnx.ModelProto, Any], backend: str, backend_context: Any) -> None:
    model, x = case
    x = x.astype(np.float32)
    (want,) = expected_by_onnxruntime(model, {"x": x})
    made = pf.run(model, {"x": x}, backend=backend, ctx=backend_context)["y"]
    if backend != "cpu":  # GPUs may take numbers below 1.2e-38 for 0
        want, made = (np.where(np.abs(value) < 1.2e-38, 0, value) for value in (want, made))
    np.testing.assert_allclose(made, want, 1e-3, 0)


def test_a_factor_before_a_product_may_keep_it_in_range(backend: str, backend_context: Any) -> None:
    q, k, v = (normal(2, *shape, seed=at) for at, shape in enumerate([(4, 8), (8, 4), (4, 3)]))
    scaled = [node("Mul", "q c", "s"), node("MatMul", "s k", "y")]
    attention = [*scaled[:1], node("MatMul", "s k", "p"), node("Softmax", "p", "w"), node("MatMul", "w v", "y")]
    for nodes, fed in (
        (scaled, {"q": q * np.float32(1e22), "k": k * np.float32(1e22)}),
        (attention, {"q": q * np.float32(1e20), "k": k * np.float32(1e19), "v": v}),
    ):
        model = graph(nodes, {name: value.shape for name, value in fed.items()}, {"c": np.float32(1e-20)})
        (want,) = expected_by_onnxruntime(model, fed)
        made = pf.run(model, fed, backend=backend, ctx=backend_context)["y"]
        np.testing.assert_allclose(made, want, 1e-3, 1e-5)


def test_usual_constants_are_folded() -> None:
    """A channel that training has switched off, with a scale of almost nothing, hinders no folding."""
    scale = np.array([1, 0.5, 1e-30, 0], np.float32)
    constants = {"w": random(4, 4, 3, 3), "g": scale, **{n: v.astype(np.float32) for n, v in ZEROS.items()}}
    model = pf.load(graph([CONV, norm("s", "y", "g")], {"x": [1, 4, 5, 5]}, constants))
    assert [layer.op for layer in model.layers] == ["Conv"]


@pytest.mark.parametrize("op", ["MatMul", "Conv"])
def test_sums_of_bytes_stay_within_int32(op: str, backend: str, backend_context: Any) -> None:
    """Quantizers saturate biases at the end of int32; and a deep sum of large bytes may pass it without any bias."""
    draw = np.random.default_rng(0)
    for depth, last in ((16, 2**31 - 1), (80_000, 0)):
        shape = (depth, 4) if op == "MatMul" else (4, depth, 1, 1)
        weights = np.full(shape, 127, np.int8) if depth > 16 else draw.integers(-127, 128, shape).astype(np.int8)
        xs, ws = np.float32(0.5), np.float32(7.8e-10)
        constants: dict[str, Any] = {"xs": xs, "xz": np.uint8(0), "ws": ws, "wz": np.int8(0), "w": weights}
        constants |= {"b": np.array([last, -last, 5, last // 2], np.int32), "bs": xs * ws, "bz": np.int32(0)}
        given = [
            node("QuantizeLinear", "x xs xz", "xq"),
            node("DequantizeLinear", "xq xs xz", "xd"),
            node("DequantizeLinear", "w ws wz", "wd"),
            node("DequantizeLinear", "b bs bz", "bd"),
        ]
        product = node("Gemm" if op == "MatMul" else "Conv", "xd wd bd", "y")
        x = np.full((2, depth) if op == "MatMul" else (2, depth, 1, 1), 120, np.float32)
        model = graph([*given, product], {"x": x.shape}, constants)
        (want,) = expected_by_onnxruntime(model, {"x": x})
        made = pf.run(model, {"x": x}, backend=backend, ctx=backend_context)["y"]
        np.testing.assert_allclose(made, want, 1e-4 if depth == 16 else 1e-2, 1e-6)
