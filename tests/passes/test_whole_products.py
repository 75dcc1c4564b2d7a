from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import perframe as pf
from layers.test_quantized import PAIRS, WINDOWS, convolution, products, small
from passes.graphs import apply, graph, node, prepared
from perframe.backends import evaluator
from perframe.passes import load_pass
from perframe.testing import Case
from perframe.testing.cases import expected_by_onnxruntime

GPUS = ("gpu_compute", "gpu_pixel")


def check_exact(case: Case, backend: str, ctx: Any) -> None:
    proto = case.proto()
    actual = pf.run(proto, case.fed, backend=backend, strict=True, ctx=ctx)
    for value, want in zip(actual.values(), case.expected(proto), strict=True):
        assert value.dtype == want.dtype
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize("case", [case for pair in PAIRS for case in products(*pair)], ids=str)
@pytest.mark.parametrize("where", GPUS)
def test_products_are_exact(case: Case, where: str, gl_context: Any) -> None:
    check_exact(case, where, gl_context)


@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("where", GPUS)
def test_convolutions_are_exact(op: str, window: Any, where: str, gl_context: Any) -> None:
    x, w, attributes = window
    for a, b in PAIRS:
        check_exact(convolution(small(*x, dtype=a), small(*w, dtype=b), op, **attributes), where, gl_context)


def largest(op: str) -> Case:
    """A product of bytes at the ends of their range, whose sums are up to ten times 2^24."""
    if op == "ConvInteger":
        w = np.where(small(6, 201, 5, 5) > 40, 127, -128).astype(np.int8)
        return Case("", op, [np.full((1, 201, 5, 6), 255, np.uint8), w], {"pads": [2, 2, 2, 2]}, constants=[1])
    w = np.where(small(4001, 9) > 40, 127, -128).astype(np.int8)
    return Case("", op, [np.full((3, 4001), 255, np.uint8), w, np.array(1, np.uint8)], constants=[1, 2])


@pytest.mark.parametrize("op", ["ConvInteger", "MatMulInteger"])
@pytest.mark.parametrize("where", GPUS)
def test_sums_that_float32_does_not_hold_are_split(op: str, where: str, gl_context: Any) -> None:
    case = largest(op)
    assert np.abs(case.expected(case.proto())[0]).max() > 2**25
    made = prepared(case.proto(), where)
    assert len([layer for layer in made.layers if layer.op in ("MatMul", "BlockConv", "Conv")]) > 2
    check_exact(case, where, gl_context)


@pytest.mark.parametrize("where", GPUS)
def test_a_large_bias_is_added_as_int32(where: str, gl_context: Any) -> None:
    case = convolution(small(1, 8, 5, 5), small(4, 8, 3, 3, dtype=np.int8), "QLinearConv")
    case.inputs[8][:] = [2**30, -(2**30), 2**24 + 1, 7]  # type: ignore[index]
    assert "Add" in [layer.op for layer in prepared(case.proto(), where).layers]
    proto = case.proto()
    ((y, want),) = zip(
        pf.run(proto, case.fed, backend=where, strict=True, ctx=gl_context).values(), case.expected(proto), strict=True
    )
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("where", GPUS)
def test_bytes_between_convolutions(where: str, gl_context: Any) -> None:
    """Convolutions that take bytes and make bytes, and a pool of bytes between them."""
    draw, scale = np.random.default_rng(5), np.float32(0.01)
    numbers: dict[str, Any] = {"s": scale, "z": np.uint8(100), "t": np.float32(0.3), "o": np.int8(0)}
    for index, shape in enumerate([(12, 8, 3, 3), (8, 12, 1, 1)]):
        numbers[f"w{index}"] = draw.integers(-127, 128, shape).astype(np.int8)
        numbers[f"v{index}"] = draw.uniform(0.005, 0.02, shape[0]).astype(np.float32)
        numbers[f"o{index}"] = np.zeros(shape[0], np.int8)
    nodes = [
        node("QLinearConv", "x s z w0 v0 o0 t z", "a", pads=[1, 1, 1, 1]),
        node("MaxPool", "a", "b", kernel_shape=[2, 2], strides=[2, 2]),
        node("QLinearConv", "b t z w1 v1 o1 t z", "c"),
        node("QLinearConv", "c t z w0 v0 o0 t z", "y", pads=[2, 2, 2, 2]),
    ]
    proto = graph(nodes, {"x": [2, 8, 14, 11]}, numbers, "a y", "uint8")
    x = small(2, 8, 14, 11)
    # onnxruntime's sums of signed weights saturate on processors without VNNI; those of unsigned ones do not
    unsigned = {n: (v.astype(int) + 128).astype(np.uint8) if v.dtype == np.int8 else v for n, v in numbers.items()}
    wants = expected_by_onnxruntime(graph(nodes, {"x": [2, 8, 14, 11]}, unsigned, "a y", "uint8"), {"x": x})
    made = pf.run(proto, {"x": x}, backend=where, strict=True, ctx=gl_context)
    for value, want in zip(made.values(), wants, strict=True):
        assert value.dtype == want.dtype and len(np.unique(want)) > 100
        apart = np.abs(value.astype(int) - want.astype(int))  # onnxruntime multiplies the scales in another order
        assert apart.max() <= 1 and apart.mean() < 0.001


def test_zero_points_that_are_not_constant(backend: str, backend_context: Any) -> None:
    """Both factors and both zero points are inputs."""
    given = [small(2, 5, 33), small(33, 7, dtype=np.int8), np.array(200, np.uint8), np.array(-100, np.int8)]
    check_exact(Case("", "MatMulInteger", given, constants=[]), backend, backend_context)


def real(case: Case) -> bool:
    """Whether the pass makes a product of real numbers."""
    model = pf.load(case.proto())
    changed = load_pass("whole_products")(model, evaluator())
    model.verify()
    model.infer()
    kinds = {layer.input(0).spec.dtype.value for layer in model.layers if layer.op in ("Conv", "MatMul")}
    assert changed == ("float32" in kinds)
    return bool(changed)


def test_it_fires() -> None:
    assert real(Case("", "MatMulInteger", [small(3, 5), small(5, 4)], constants=[1]))
    assert real(convolution(small(1, 3, 5, 5), small(4, 3, 3, 3), "QLinearConv"))


def test_it_does_not_fire() -> None:
    assert not real(Case("a zero point a row", "MatMulInteger", [small(3, 5), small(5, 4), small(3)], constants=[1, 2]))
    deep = small(1, 1100, 3, 3), small(2, 550, 3, 3, dtype=np.int8) // 2 * 2 + 1
    groups = Case("groups that are too deep", "ConvInteger", [*deep], {"group": 2}, constants=[1])
    assert not real(groups)
    huge = np.array([[2**30], [2**30], [2**30], [2**30]], np.int32)  # their sum overflows int32
    layers = [node("Cast", "x", "a", to=TensorProto.INT32), node("MatMul", "a w", "y")]
    assert apply("whole_products", graph(layers, {"x": [3, 4]}, {"w": huge}, dtype="uint8"))[1] == 0
    assert apply("whole_products", graph([node("MatMul", "a b", "y")], {"a": [3, 4], "b": [4, 5]}))[1] == 0
