"""float16 graphs compute in float32; what the file rounds by a cast stays rounded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import perframe as pf
from gl.graphs import graph
from perframe.backends import evaluator
from perframe.ir import Model
from perframe.passes import PASSES, PREPARATIONS, preparations, prepare
from perframe.tensor import DataType

HALF, FLOAT, BFLOAT = DataType.FLOAT16, DataType.FLOAT32, DataType.BFLOAT16
random = np.random.default_rng(3)


def draw(*shape: int, dtype: Any = np.float16) -> Any:
    return random.uniform(-1, 1, shape).astype(dtype)


def prepared(model: Model, backend: str = "gpu_compute") -> Model:
    made = prepare(model, evaluator(), backend)
    made.verify()
    return made


def dtypes(model: Model) -> dict[str, set[DataType]]:
    """The dtypes of what layers of each operator make."""
    found: dict[str, set[DataType]] = {}
    for layer in model.layers:
        found.setdefault(layer.op, set()).update(value.spec.dtype for value in layer.results)
    return found


def network(dtype: Any = np.float16, **layers: Any) -> Model:
    weights = {"w": draw(8, 3, 3, 3), "b": draw(8), "m": draw(8, 40)}
    return graph(
        [
            ("Conv", ["x", "w", "b"], ["c"]),
            ("Relu", ["c"], ["r"]),
            ("GlobalAveragePool", ["r"], ["g"]),
            ("Flatten", ["g"], ["f"]),
            ("MatMul", ["f", "m"], ["y"]),
        ],
        {"x": (1, 3, "height", 9)},
        constants={name: value.astype(dtype) for name, value in weights.items()},
        dtype=dtype,
        **layers,
    )


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("backend", list(PREPARATIONS))
@pytest.mark.parametrize(("dtype", "held"), [(np.float16, HALF), (ml_dtypes.bfloat16, BFLOAT)])
def test_layers_are_widened_between_inputs_and_outputs(
    dtype: Any, held: DataType, backend: str, optimize: bool
) -> None:
    model = network(dtype, optimize=optimize)
    made = prepared(model, backend)
    assert [value.dtype for value in (*made.inputs, *made.outputs)] == [held, held]
    assert dtypes(made).pop("Cast") == {FLOAT, held}
    assert set.union(*(kinds for op, kinds in dtypes(made).items() if op != "Cast")) == {FLOAT}
    assert held in {value.spec.dtype for layer in model.layers for value in layer.results}  # the model stays as it was
    fuses = any(layer.epilogue for layer in made.layers)
    assert fuses == optimize


def test_the_passes_of_float32_apply() -> None:
    ops = ["Conv", "BatchNormalization", "Relu"]
    norm = {name: draw(4) for name in ("scale", "shift", "mean")} | {"variance": np.float16([1, 2, 3, 4])}
    nodes = [
        ("Conv", ["x", "w"], ["c"]),
        ("BatchNormalization", ["c", *norm], ["n"]),
        ("Relu", ["n"], ["y"]),
    ]
    model = graph(nodes, {"x": (1, 3, 9, 9)}, constants={"w": draw(4, 3, 3, 3), **norm}, dtype=np.float16)
    assert [layer.op for layer in model.layers] == ops
    assert not {"BatchNormalization", "Relu"} & {layer.op for layer in prepared(model, "cpu").layers}
    assert preparations(model, "cpu") == ("widen_halves", *PASSES, *PREPARATIONS["cpu"][1:])


@pytest.mark.parametrize("backend", list(PREPARATIONS))
def test_models_of_other_dtypes_are_left_alone(backend: str) -> None:
    model = graph([("MatMul", ["x", "w"], ["y"])], {"x": (3, 9)}, constants={"w": draw(9, 40, dtype=np.float32)})
    assert preparations(model, backend) == PREPARATIONS[backend]
    made = prepared(model, backend)
    assert all(value.is_half is None for layer in made.layers for value in (*layer.operands, *layer.results))


def test_weights_of_float16_that_a_float32_graph_casts_are_left_alone() -> None:
    nodes = [("Cast", ["w"], ["v"], {"to": TensorProto.FLOAT}), ("MatMul", ["x", "v"], ["y"])]
    model = graph(nodes, {"x": (3, 20)}, constants={"w": draw(20, 40)})
    assert preparations(model, "gpu_pixel") == PREPARATIONS["gpu_pixel"]
    assert all(value.is_half is None for value in prepared(model).constant_values)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_casts_of_float32_still_round(dtype: int, backend: str, backend_context: Any) -> None:
    nodes = [("Cast", ["x"], ["h"], {"to": dtype}), ("Cast", ["h"], ["y"], {"to": TensorProto.FLOAT})]
    x = np.float32([1 / 3, 2049, 70000, -1e6, np.inf, np.nan, 0, -0.0, 257, 3.3895e38, 1.00390625, 1.01171875])
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    with np.errstate(over="ignore"):
        expected = x.astype(kind).astype(np.float32)
    found = pf.run(graph(nodes, {"x": x.shape}), {"x": x}, backend, ctx=backend_context, strict=backend != "cpu")["y"]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_casts_to_integers_read_rounded_numbers(backend: str, backend_context: Any) -> None:
    """0.1 * 30 in float16 is 3; without its last rounding it is less, and would be truncated to 2."""
    nodes = [("Mul", ["x", "k"], ["m"]), ("Cast", ["m"], ["y"], {"to": TensorProto.INT64})]
    x, k = np.float16([30, -30, 5]), np.float16(0.1)
    assert np.trunc(np.float32(x) * np.float32(k)).tolist() == [2, -2, 0]
    model = graph(nodes, {"x": (3,)}, constants={"k": k}, dtype=np.float16)
    found = pf.run(model, {"x": x}, backend, ctx=backend_context, strict=backend != "cpu")["y"]
    np.testing.assert_array_equal(found, (x * k).astype(np.int64))


def test_bits_are_those_of_the_file() -> None:
    nodes = [("Add", ["x", "x"], ["a"]), ("BitCast", ["a"], ["y"], {"to": TensorProto.INT16})]
    body = helper.make_graph(
        [helper.make_node(op, given, made, **(rest[0] if rest else {})) for op, given, made, *rest in nodes],
        "bits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [5])],
        [helper.make_tensor_value_info("y", TensorProto.INT16, [5])],
    )
    x = draw(5)
    proto = helper.make_model(body, opset_imports=[helper.make_opsetid("", 26)])
    np.testing.assert_array_equal(pf.run(proto, {"x": x})["y"], (x + x).view(np.int16))


def test_a_table_keeps_its_size() -> None:
    nodes = [("Gather", ["t", "i"], ["g"]), ("Mul", ["g", "g"], ["y"])]
    table, rows = draw(100, 5), np.array([3, 99])
    model = graph(nodes, {"i": (2,)}, constants={"t": table}, dtype=np.int64)
    made = prepared(model)
    assert [array.dtype for array in made.constants.values()] == [np.float16]
    assert dtypes(made) == {"Gather": {HALF}, "Cast": {FLOAT, HALF}, "Mul": {FLOAT}}
    np.testing.assert_array_equal(pf.run(model, {"i": rows})["y"], table[rows] * table[rows])


def test_branches_and_loops_get_the_dtypes_of_the_file(backend: str, backend_context: Any) -> None:
    half = TensorProto.FLOAT16
    branches = {
        name: helper.make_graph(
            [helper.make_node(op, ["a"] * count, ["r"])], name, [], [helper.make_tensor_value_info("r", half, [6])]
        )
        for name, op, count in (("then_branch", "Mul", 2), ("else_branch", "Neg", 1))
    }
    nodes = [
        ("Add", ["x", "x"], ["a"]),
        ("ReduceMax", ["a"], ["top"], {"keepdims": 0}),
        ("Greater", ["top", "limit"], ["is_large"]),
        ("If", ["is_large"], ["b"], branches),
        ("Sub", ["b", "a"], ["y"]),
    ]
    model = graph(nodes, {"x": (6,)}, constants={"limit": np.float16(8)}, dtype=np.float16)
    for x in (draw(6), 10 * np.abs(draw(6)) + np.float16(5)):
        a = x + x
        expected = (a * a if a.max() > 8 else -a) - a
        found = pf.run(model, {"x": x}, backend, ctx=backend_context)["y"]
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, expected, 2e-3)


def marks(model: Model) -> dict[str, bool | None]:
    return {value.name: value.is_half for layer in prepared(model).layers for value in layer.results}


def test_values_of_float32_stay_whole() -> None:
    nodes = [
        ("Cast", ["x"], ["wide"], {"to": TensorProto.FLOAT}),
        ("Exp", ["wide"], ["e"]),
        ("ReduceSum", ["e"], ["s"]),
        ("Cast", ["s"], ["h"], {"to": TensorProto.FLOAT16}),
        ("Mul", ["x", "h"], ["m"]),
        ("Softmax", ["m"], ["n"]),
        ("Erf", ["n"], ["y"]),
    ]
    found = marks(graph(nodes, {"x": (3, 9)}, dtype=np.float16))
    assert found["s"] is False and found["n"] is True


def test_values_that_passes_make_are_halves_in_a_file_without_float32() -> None:
    """The blocks of channels around a convolution are new."""
    nodes = [
        ("Softmax", ["x"], ["s"]),
        ("Conv", ["s", "w"], ["c"], {"pads": [1, 1, 1, 1]}),
        ("Softmax", ["c"], ["y"]),
    ]
    constants = {"w": draw(16, 16, 3, 3)}
    model = graph(nodes, {"x": (1, 16, 9, 9)}, constants=constants, dtype=np.float16)
    found = marks(model)
    assert found["s:blocks"] is found["c:blocks"] is True


def test_fused_weights_are_halves_only_near_their_numbers() -> None:
    def weights(factor: float) -> bool | None:
        constants = {"w": draw(16, 16, 3, 3), "k": np.full((16, 1, 1), factor, np.float16)}
        nodes = [("Conv", ["x", "w"], ["c"]), ("Mul", ["c", "k"], ["y"])]
        made = prepared(graph(nodes, {"x": (1, 16, 9, 9)}, constants=constants, dtype=np.float16))
        (found,) = [value for value in made.constant_values if value.constant is not None and value.constant.ndim >= 4]
        return found.is_half

    assert weights(0.3) is True
    assert weights(1e-5) is None  # 1e-5 of 1 leaves five bits to float16
