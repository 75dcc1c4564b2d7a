"""Valid models whose corners once ended in an error or in other numbers, on all backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.testing.cases import Draw, expected_by_onnxruntime

draw = Draw(5)
TYPES = {"f": TensorProto.FLOAT, "l": TensorProto.INT64, "i": TensorProto.INT32}


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """A node by names in one text."""
    return helper.make_node(op, inputs.split(" "), output.split(" "), **attributes)


def model(nodes: list[onnx.NodeProto], inputs: dict[str, Any], constants: dict[str, Any], outputs: str = "y") -> Any:
    """A model with the shapes (or open dims) and dtypes of these arrays as its inputs."""
    declared = [
        helper.make_tensor_value_info(name, TYPES[value.dtype.char], value.shape) for name, value in inputs.items()
    ]
    made = helper.make_graph(
        nodes,
        "corner",
        declared,
        [onnx.ValueInfoProto(name=name) for name in outputs.split(" ")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


PRODUCTS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ("Conv", (1, 4, 6, 6), (8, 4, 3, 3), {}),
    "pointwise Conv": ("Conv", (2, 4, 6, 6), (8, 4, 1, 1), {}),
    "depthwise Conv": ("Conv", (1, 4, 6, 6), (4, 1, 3, 3), {"group": 4}),
    "Conv along a line": ("Conv", (1, 4, 9), (8, 4, 3), {}),
    "Conv in space": ("Conv", (1, 4, 5, 5, 5), (4, 4, 3, 3, 3), {}),
    "ConvTranspose": ("ConvTranspose", (1, 4, 5, 5), (4, 8, 3, 3), {}),
    "ConvTranspose in runs": ("ConvTranspose", (1, 4, 6, 6), (4, 8, 2, 2), {"strides": [2, 2]}),
    "ConvTranspose of one pixel": ("ConvTranspose", (1, 3, 1, 1), (3, 1, 1, 3), {}),
    "Gemm": ("Gemm", (3, 16), (16, 8), {}),
    "Gemm of a row": ("Gemm", (1, 16), (16, 1), {}),
}


@pytest.mark.parametrize("fixed", ["", "w", "b", "x", "xw"])
@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_any_operand_of_a_product_may_be_an_input(
    product: tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]],
    fixed: str,
    backend: str,
    backend_context: Any,
) -> None:
    op, x_shape, w_shape, attributes = product
    columns = w_shape[0] if op == "Conv" else w_shape[1]
    values = {"x": draw(*x_shape), "w": draw(*w_shape), "b": draw(columns)}
    fed = {name: value for name, value in values.items() if name not in fixed}
    constants = {name: value for name, value in values.items() if name in fixed}
    made = model([node(op, "x w b", "c", **attributes), node("Relu", "c", "y")], fed, constants)
    (want,) = expected_by_onnxruntime(made, fed)
    given = pf.run(made, fed, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_allclose(given, want, 1e-4, 1e-5)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_products_of_no_depth(op: str, backend: str, backend_context: Any) -> None:
    for rows, columns in ((3, 4), (3, 0), (0, 4)):
        fed = {"x": np.zeros((rows, 0), np.float32)}
        made = model([node(op, "x w", "y")], fed, {"w": np.zeros((0, columns), np.float32)})
        given = pf.run(made, fed, backend=backend, ctx=backend_context)["y"]
        np.testing.assert_array_equal(given, np.zeros((rows, columns), np.float32))


def test_a_number_is_added_to_a_product_of_vectors(backend: str, backend_context: Any) -> None:
    fed = {"x": draw(5)}
    made = model([node("MatMul", "x w", "p"), node("Add", "p k", "y")], fed, {"w": draw(5), "k": np.float32(1.5)})
    (want,) = expected_by_onnxruntime(made, fed)
    np.testing.assert_allclose(pf.run(made, fed, backend=backend, ctx=backend_context)["y"], want, 1e-5)


@pytest.mark.parametrize("where", ["gpu_compute", "gpu_pixel"])
@pytest.mark.parametrize("channels", [1, 3, 4, 9])
def test_a_convolution_of_a_constant(channels: int, where: str, backend: str, backend_context: Any) -> None:
    if backend != where:
        pytest.skip("the other backend")
    fed = {"x": np.zeros((2, channels, 6, 5), np.float32)}
    fill = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.5])
    nodes = [node("Shape", "x", "s"), node("ConstantOfShape", "s", "d", value=fill), node("Conv", "d w", "y")]
    made = model(nodes, fed, {"w": draw(4, channels, 3, 3)})
    (want,) = expected_by_onnxruntime(made, fed)
    np.testing.assert_allclose(pf.run(made, fed, backend=backend, ctx=backend_context)["y"], want, 1e-5, 1e-6)


def test_branches_that_do_not_run_need_not_fit(backend: str, backend_context: Any) -> None:
    """PyTorch writes squeeze(dim) so."""
    operands = {"Reshape": np.array([4, 4]), "MatMul": draw(7, 2), "Add": draw(2, 7), "Conv": draw(1, 1, 3, 3)}
    output = [onnx.ValueInfoProto(name="s")]
    other = helper.make_graph([node("Identity", "x", "s")], "other", [], output)
    fed = {"x": draw(2, 3)}
    for op, operand in operands.items():
        dead = helper.make_graph([node(op, "x t", "s")], "dead", [], output)
        branch = helper.make_node("If", ["b"], ["y"], then_branch=dead, else_branch=other)
        made = model([branch], fed, {"t": operand, "b": np.array(False)})
        given = pf.run(made, fed, backend=backend, ctx=backend_context)["y"]
        np.testing.assert_array_equal(given, fed["x"])
    chosen = model([branch], fed, {"t": operand, "b": np.array(True)})
    with pytest.raises(pf.PerframeError, match="Conv"):
        pf.run(chosen, fed, backend=backend, ctx=backend_context)


def test_a_function_hands_an_input_through(backend: str, backend_context: Any) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
    agraph (float[H] x) => (float[H] y, float[H] z) { y, z = local.f (x) }
    <opset_import: [ "" : 18 ], domain: "local"> f (x) => (x, z) { z = Neg(x) }"""
    fed = {"x": draw(3)}
    given = pf.run(onnx.parser.parse_model(text), fed, backend=backend, ctx=backend_context)
    np.testing.assert_array_equal(given["y"], fed["x"])
    np.testing.assert_array_equal(given["z"], -fed["x"])


# --- whole numbers ---

WIDE = {
    "Mul": ([node("Mul", "x k", "y")], [100_000, 3], [10**10, 300_000]),
    "ReduceSum": ([node("ReduceSum", "x", "y", keepdims=0)], [2**31 - 1, 2**31 - 1], 2**32 - 2),
    "CumSum": ([node("CumSum", "x zero", "y")], [2**31 - 1, 1, 1], [2**31 - 1, 2**31, 2**31 + 1]),
    "Neg": ([node("Neg", "x", "y")], [-(2**31), 5], [2**31, -5]),
    "moved": ([node("Mul", "x k", "p"), node("Reshape", "p line", "y")], [100_000, 3], [10**10, 300_000]),
    "read again": ([node("Mul", "x k", "p"), node("Sub", "p x", "y")], [100_000, 3], [10**10 - 100_000, 299_997]),
}


@pytest.mark.parametrize(("nodes", "x", "want"), WIDE.values(), ids=WIDE)
def test_whole_numbers_beyond_32_bits(nodes: Any, x: Any, want: Any, backend: str, backend_context: Any) -> None:
    """A GPU's are int32, so that these layers run on the CPU."""
    fed = {"x": np.array(x)}
    constants = {"k": np.array(100_000), "zero": np.array(0), "line": np.array([-1])}
    read = {name for one in nodes for name in one.input}
    made = model(nodes, fed, {name: value for name, value in constants.items() if name in read})
    given = pf.run(made, fed, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(given, np.array(want))
    pf.run(made, fed, backend=backend, ctx=backend_context, strict=True)  # they come from the host: nothing waits


def test_a_mean_of_whole_numbers_whose_sum_is_beyond_32_bits(backend: str, backend_context: Any) -> None:
    x = np.array([[2**31 - 1, 2**31 - 3, 2**31 - 5, 7], [5, 6, 7, 9]], np.int32)
    made = model([node("ReduceMean", "x k", "y", keepdims=0)], {"x": x}, {"k": np.array([1])})
    given = pf.run(made, {"x": x}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(given, [1610612735, 6])


def test_wide_numbers_of_the_gpu_are_a_reason_to_wait(backend: str, backend_context: Any) -> None:
    x = draw(3, 700)
    nodes = [node("ArgMax", "x", "a", axis=1), node("Mul", "a k", "y")]
    made = model(nodes, {"x": x}, {"k": np.array(2**40)})
    given = pf.run(made, {"x": x}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(given, np.argmax(x, 1, keepdims=True) * 2**40)
    if backend != "cpu":
        with pytest.raises(pf.FallbackError):
            pf.run(made, {"x": x}, backend=backend, ctx=backend_context, strict=True)


def test_real_numbers_become_whole_ones_beyond_32_bits(backend: str, backend_context: Any) -> None:
    fed = {"x": np.array([1e10, -1e10, 3.9], np.float32)}
    made = model([node("Cast", "x", "y", to=TensorProto.INT64)], fed, {})
    given = pf.run(made, fed, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(given, [10**10, -(10**10), 3])


WITHIN = {
    "clipped numbers": [node("Clip", "x low high", "c"), node("Cast", "c", "y", to=TensorProto.INT64)],
    "indices": [node("ArgMax", "x", "a", axis=1), node("Mul", "a k", "y")],
    "counts": [
        node("Greater", "x low", "g"),
        node("Cast", "g", "n", to=TensorProto.INT64),
        node("ReduceSum", "n", "y"),
    ],
    "remainders": [node("ArgMax", "x", "a", axis=1), node("Mod", "a k", "r"), node("Add", "r k", "y")],
}


@pytest.mark.parametrize("nodes", WITHIN.values(), ids=WITHIN)
def test_whole_numbers_that_are_known_to_be_small_stay(nodes: Any, backend: str, backend_context: Any) -> None:
    fed = {"x": draw(3, 7, low=-9, high=9)}
    constants = {"low": np.float32(-5), "high": np.float32(5), "k": np.array(1000)}
    read = {name for one in nodes for name in one.input}
    made = model(nodes, fed, {name: value for name, value in constants.items() if name in read})
    (want,) = expected_by_onnxruntime(made, fed)
    np.testing.assert_array_equal(pf.run(made, fed, backend=backend, ctx=backend_context, strict=True)["y"], want)


def test_bounds_of_clip_are_single_numbers() -> None:
    fed = {"x": draw(1, 3, 1, 1)}
    with pytest.raises(pf.PerframeError, match="must be one number"):
        pf.load(model([node("Clip", "x low", "y")], fed, {"low": np.zeros((1, 3), np.float32)}))
    single = model([node("Clip", "x low", "y")], fed, {"low": np.zeros((1, 1, 1, 1, 1), np.float32)})
    assert pf.run(single, fed)["y"].shape == (1, 3, 1, 1)


# --- GPUs' compilers know algebra that holds for real numbers only ---

ENDS = np.array([[-3, -1, -0.0, 0, 1, 2, np.nan, np.inf, -np.inf, 1e20, -1e20, 100, 88]], np.float32)
CHAINS = {
    "exp(log x)": ([node("Log", "x", "a"), node("Exp", "a", "y")], lambda x: np.exp(np.log(x))),
    "log(exp x)": ([node("Exp", "x", "a"), node("Log", "a", "y")], lambda x: np.log(np.exp(x))),
    "sqrt(exp x)": ([node("Exp", "x", "a"), node("Sqrt", "a", "y")], lambda x: np.sqrt(np.exp(x))),
    "exp(2 log x)": (
        [node("Log", "x", "a"), node("Mul", "a two", "b"), node("Exp", "b", "y")],
        lambda x: np.exp(np.log(x) * 2),
    ),
    "a - a": ([node("Abs", "x", "a"), node("Neg", "a", "b"), node("Add", "a b", "y")], lambda x: np.abs(x) - np.abs(x)),
    "sqrt squared": ([node("Sqrt", "x", "a"), node("Mul", "a a", "y")], lambda x: np.sqrt(x) * np.sqrt(x)),
    "root of the square": ([node("Mul", "x x", "a"), node("Sqrt", "a", "y")], lambda x: np.sqrt(x * x)),
}


@pytest.mark.parametrize(("nodes", "exact"), CHAINS.values(), ids=CHAINS)
def test_infinities_and_nan_pass_chains(nodes: Any, exact: Any, backend: str, backend_context: Any) -> None:
    read = {name for one in nodes for name in one.input}
    made = model(nodes, {"x": ENDS}, {"two": np.float32(2)} if "two" in read else {})
    with np.errstate(all="ignore"):
        want = exact(ENDS).astype(np.float32)
    finite = np.isfinite(ENDS) & ((want == 0) | (np.abs(want) > 1.2e-38) | ~np.isfinite(want))  # GPUs flush tiny ones
    given = pf.run(made, {"x": ENDS}, backend=backend, ctx=backend_context)["y"]
    keep = finite | ~np.isfinite(ENDS)
    np.testing.assert_allclose(given[keep], want[keep], 1e-4)


@pytest.mark.parametrize("op", ["Sin", "Cos", "Tan"])
def test_angles_of_all_sizes(op: str, backend: str, backend_context: Any) -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    quarters = np.arange(2000, dtype=np.float32) * np.float32(np.pi / 2)
    x = np.concatenate([bits[np.isfinite(bits) & (np.abs(bits) > 1e-37)], quarters, [3e8, -3.4e38, np.inf, np.nan]])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        want = getattr(np, op.lower())(x.astype(np.float64))
    given = pf.run(model([node(op, "x", "y")], {"x": x}, {}), {"x": x}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(np.isnan(given), np.isnan(want))
    known = ~np.isnan(want)
    apart = np.abs(given[known] - want[known]) / np.maximum(1, np.abs(want[known]))
    assert apart.max() < 1e-6


# --- selection ---


@pytest.mark.parametrize(("size", "count"), [(1025, 3), (5000, 17), (5000, 100), (3001, 128), (3000, 129), (70_000, 1)])
@pytest.mark.parametrize("largest", [0, 1])
def test_the_first_few_of_a_long_row(size: int, count: int, largest: int, backend: str, backend_context: Any) -> None:
    x = np.round(draw(2, size, 2, low=-50, high=50)).astype(np.float32)  # with many ties
    x[0, 5, 0], x[1, size // 2, 1] = np.nan, np.inf
    made = model([node("TopK", "x k", "y i", axis=1, largest=largest)], {"x": x}, {"k": np.array([count])}, "y i")
    order = np.argsort(np.where(np.isnan(x), np.inf, x) * (-1 if largest else 1), axis=1, kind="stable")
    if largest:  # NaN comes before an infinity
        order = np.argsort(np.where(np.isnan(x), -np.inf, -np.where(np.isinf(x), 1e38, x)), axis=1, kind="stable")
    given = pf.run(made, {"x": x}, backend=backend, ctx=backend_context)
    np.testing.assert_array_equal(given["i"], order[:, :count])
    np.testing.assert_array_equal(given["y"], np.take_along_axis(x, order[:, :count], 1))


@pytest.mark.parametrize("shape", [(2, 4), (3, 700), (5, 9, 3)])
@pytest.mark.parametrize("op", ["ArgMin", "ArgMax"])
def test_nan_is_found_first(op: str, shape: tuple[int, ...], backend: str, backend_context: Any) -> None:
    x = draw(*shape)
    x[0, 2], x[-1, 1], x[-1, 3] = np.nan, np.nan, np.nan
    made = model([node(op, "x", "y", axis=1, keepdims=0)], {"x": x}, {})
    want = (np.argmin if op == "ArgMin" else np.argmax)(x, axis=1)
    np.testing.assert_array_equal(pf.run(made, {"x": x}, backend=backend, ctx=backend_context)["y"], want)
