"""Graphs become models whose names, order, dims and constants are those that the caller gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InferenceError, InputError
from small import row

F = pf.functional
F32 = pf.DataType.FLOAT32


def inputs(count: int = 1, shape: Any = (2, "n")) -> tuple[pf.FunctionalGraph, list[pf.FunctionalTensor]]:
    graph = pf.FunctionalGraph("small")
    return graph, [graph.add_input(F32, shape, name) for name in "xyz"[:count]]


def test_names_order_and_dims_stay() -> None:
    graph, (x, y, z) = inputs(3)
    graph.add_output(z - x, "difference")
    model = graph.compile(x + z, doubled=x * 2)
    assert [value.name for value in model.inputs] == ["x", "y", "z"], "an input that nothing reads stays"
    assert [value.name for value in model.outputs] == ["difference", "output_1", "doubled"]
    assert {str(value.shape) for value in (*model.inputs, *model.outputs)} == {"(2, n)"}
    assert model.name == "small"
    assert graph.compile(y).output_names == ["difference", "output_1"], "outputs of a compilation do not stay"


def test_inputs_and_constants_may_be_outputs() -> None:
    graph, (x,) = inputs()
    y = x + 1
    model = graph.compile(same=x, one=F.constant([1.5, 2]), first=y, again=y)
    got = pf.run(model, {"x": np.ones((2, 3), np.float32)})
    assert [*got] == ["same", "one", "first", "again"]
    np.testing.assert_array_equal(got["same"], np.ones((2, 3)))
    np.testing.assert_array_equal(got["one"], row(1.5, 2))
    np.testing.assert_array_equal(got["again"], got["first"])


def test_an_output_may_be_called_like_a_value_between() -> None:
    """Values between are named after their operators."""
    graph, (x,) = inputs()
    model = graph.compile(add=(x + 1) * 2, mul=x * 3 - (x * 2 + 1) / 4)
    got = pf.run(model, {"x": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(got["add"], np.full((2, 3), 4, np.float32))
    np.testing.assert_array_equal(got["mul"], np.full((2, 3), 2.25, np.float32))


def test_names_are_made_where_none_are_given() -> None:
    graph = pf.FunctionalGraph()
    first, second = graph.add_input("float32", (3,)), graph.add_input(F32, None)
    assert (first.name, second.name) == ("input_0", "input_1")
    assert graph.compile(first + second).output_names == ["output_0"]


def test_optimised_or_not_the_values_are_the_same() -> None:
    graph, (x,) = inputs()
    y = F.relu((x * 2 + 1) * F.constant([[0.5], [3.0]]) - 0.25).softmax(0)
    plain, small = graph.compile(y, optimize=False), graph.compile(y)
    assert len(small.layers) < len(plain.layers)
    values = {"x": np.linspace(-2, 2, 10, dtype=np.float32).reshape(2, 5)}
    np.testing.assert_allclose(*(pf.run(model, values)["output_0"] for model in (plain, small)), rtol=1e-6)


def test_a_constant_is_a_copy_of_the_array() -> None:
    graph, (x,) = inputs()
    offset = row(1, 2, 3)
    model = graph.compile(y=x + offset)
    offset[:] = 0
    assert offset.flags.writeable
    np.testing.assert_array_equal(pf.run(model, {"x": np.zeros((2, 3), np.float32)})["y"][0], row(1, 2, 3))


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&": lambda a, b: (a > 1) & (b > 1),
    "|": lambda a, b: (a > 1) | (b > 1),
    "^": lambda a, b: (a > 1) ^ (b > 1),
    "@": lambda a, b: a * b if isinstance(a, float) or isinstance(b, float) else a @ b,
}


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_are_numpys(sign: str) -> None:
    """Of two tensors, and of a tensor and an array or a number on either side."""
    values, others = row(0.5, 1, 2.5, 3), row(2, 1, 0.5, 1.5)
    calls = {"tensors": (values, others), "array": (values, others), "number": (values, 1.5)}
    graph = pf.FunctionalGraph()
    x, y = graph.add_input(F32, ("n",), "x"), graph.add_input(F32, ("n",), "y")
    of, made = OPERATORS[sign], {}
    for what, (_, other) in calls.items():
        second = y if what == "tensors" else other
        made[what], made[f"{what}_reflected"] = of(x, second), of(second, x)
    got = pf.run(graph.compile(**made), {"x": values, "y": others})
    for what, (one, other) in calls.items():
        np.testing.assert_allclose(got[what], of(one, other), 1e-6, 1e-6)
        np.testing.assert_allclose(got[f"{what}_reflected"], of(other, one), 1e-6, 1e-6)


def test_operators_of_integers_and_signs() -> None:
    graph = pf.FunctionalGraph()
    x = graph.add_input("int64", (3,), "x")
    made = {"left": x << 2, "right": x >> 1, "not": ~x, "minus": -x, "plus": +x, "size": abs(-x), "five": 5 - x}
    got = pf.run(graph.compile(**made), {"x": np.array([1, 6, 9])})
    want = {"left": [4, 24, 36], "right": [0, 3, 4], "not": [-2, -7, -10], "minus": [-1, -6, -9]}
    want |= {"plus": [1, 6, 9], "size": [1, 6, 9], "five": [4, -1, -4]}
    assert {name: value.tolist() for name, value in got.items()} == want


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        ("float16", 2.5, "float16"),
        ("int64", 2.5, "float32"),
        ("uint8", 300, "uint8"),
        ("bool", 1, "int64"),
        ("bool", True, "bool"),
        ("int32", np.zeros(1, np.int64), "int64"),
        ("int64", np.zeros(1, np.float32), "float32"),
        ("int64", np.zeros((), np.float64), "float64"),
        ("float32", np.zeros((), np.float64), "float32"),
        ("uint8", np.zeros(1, np.int8), "int16"),
        ("float16", F.constant([1.0], "bfloat16"), "float32"),
    ],
)
def test_dtypes_are_promoted_as_in_pytorch(a: str, b: Any, dtype: str) -> None:
    x = pf.FunctionalGraph().add_input(a, (3,))
    assert (x + b).dtype == dtype
    assert (b + x).dtype == dtype


def test_float64_arrays_follow_the_floats_of_the_graph() -> None:
    graph = pf.FunctionalGraph()
    x, half = graph.add_input(F32, (1, 2, 4, 4), "x"), graph.add_input("float16", (3,), "half")
    wide = graph.add_input("float64", (3,), "wide")
    row, kernel = np.array([0.5, 1.5, 2]), np.full((3, 2, 3, 3), 0.1)
    assert (x[0, 0, 0, :3] * row).dtype == (row + x[0, 0, 0, :3]).dtype == F32
    assert (half * row).dtype == "float16" and (wide * row).dtype == (half + wide).dtype == "float64"
    assert (half * F.constant(row)).dtype == "float16" and (half * F.constant(row, "float64")).dtype == "float64"
    made = [
        F.conv2d(x, kernel),
        F.matmul(x, np.eye(4)),
        F.where(x > 0, x, np.ones(4)),
        F.layer_norm(x, (4,), row.repeat(2)[:4]),
    ]
    made += [F.cat([x, np.ones((1, 1, 4, 4))], 1)]
    assert {one.dtype for one in made} == {F32}
    model = graph.compile(F.conv2d(x, kernel), half * row, wide * row)
    assert F.constant(row).dtype == "float64"
    assert [value.dtype for value in model.outputs] == [F32, "float16", "float64"]


def test_sizes_may_be_names_and_tensors() -> None:
    graph = pf.FunctionalGraph()
    x, y = graph.add_input(F32, ("b", "c", "h", "w"), "x"), graph.add_input(F32, ("k",), "y")
    made = {
        "named": x.reshape("b", "c", -1),
        "tensor": y.expand(F.size(x, 0), -1),
        "like": F.zeros_like(x),
        "counted": F.arange(y.size(0)),
        "filled": F.full((2, y.size(0)), 7),
        "resized": F.interpolate(x, ("w", "h")),
    }
    assert [str(made[name].shape) for name in ("named", "tensor", "resized")] == [
        "(b, c, h*w)",
        "(b, k)",
        "(b, c, w, h)",
    ]
    got = pf.run(graph.compile(**made), {"x": np.ones((2, 3, 4, 5), np.float32), "y": row(1, 2, 3)})
    shapes = {"named": (2, 3, 20), "tensor": (2, 3), "like": (2, 3, 4, 5), "counted": (3,), "filled": (2, 3)}
    assert {name: value.shape for name, value in got.items()} == shapes | {"resized": (2, 3, 5, 4)}


# --- wrong use ---


def wrong_uses() -> dict[str, tuple[Callable[[pf.FunctionalTensor], Any], str]]:
    """Each is an error at the call, and the error names the function, what it got, and the reason."""
    other = pf.FunctionalGraph().add_input(F32, (2, 3), "other")
    return {
        "shapes": (lambda x: x + F.ones(4, 4), r"functional.add\(input=float32 \(2, 3\), other=float32 \(4, 4\)\)"),
        "dim": (lambda x: F.softmax(x, 5), r"functional.softmax\(.*dim=5\): there is no dim 5: dims go from -2 to 1"),
        "dtype": (lambda x: F.softmax(x.int(), 1), "floats are expected, not int32: convert them by x.float"),
        "matrix": (lambda x: x @ x, r"functional.matmul.*3 columns and 2 rows"),
        "reshape": (lambda x: x.reshape(4, 4), "functional.reshape.*6 elements are not 16"),
        "name": (lambda x: x.reshape("q", -1), "no dim is named 'q'"),
        "conv": (lambda x: F.conv2d(x, F.ones(1, 1, 3, 3)), r"functional.conv2d.*\(2, 3\) is neither"),
        "channels": (lambda x: F.conv1d(x, F.ones(1, 9, 1)), "functional.conv1d.*9 channels"),
        "same": (lambda x: F.conv1d(x, F.ones(1, 2, 3), stride=2, padding="same"), "needs a stride of 1"),
        "mode": (lambda x: F.interpolate(x[None, None], 5, mode="area2"), "mode 'area2' does not fit"),
        "graphs": (lambda x: x + other, "other: float32 .* belongs to another graph"),
        "list": (lambda x: F.relu([x, x]), "a list of functional tensors is not a tensor"),
        "object": (lambda x: x + object(), "cannot become a tensor"),
        "text": (lambda x: F.full((2,), "a", dtype="float32"), "'a' is not a number: give an int or a float"),
        "truth": (bool, "has no truth yet.*where"),
        "array": (np.asarray, "has no values yet"),
        "topk": (lambda x: F.topk(x, 9), "functional.topk.*no 9 elements"),
        "range": (lambda x: F.arange(0, 5, 0), "functional.arange.*step is 0"),
        "huge": (lambda x: F.linspace(0, 1, 10**15), "too large"),
        "huge fill": (lambda x: F.zeros(10**6, 10**6, 10**6), "too large"),
        "training": (lambda x: F.dropout(x, training=True), "do not train"),
        "bits": (lambda x: x & 1, "functional.bitwise_and.*those of float32"),
        "types": (lambda x: F.pad(x, "ab"), "functional.pad.*pad='ab'.: malformed arguments .ValueError"),
        "text for a dim": (lambda x: x.sum("a"), "a dim is an integer, not 'a'"),
        "pieces": (lambda x: F.unbind(F.tile(x, 90000), 1), "functional.unbind.*pieces are too many"),
        "repeat": (lambda x: F.repeat(x, 2), "1 counts are fewer than the dims"),
    }


@pytest.mark.parametrize("what", wrong_uses())
def test_wrong_use_raises_at_the_call(what: str) -> None:
    call, said = wrong_uses()[what]
    x = pf.FunctionalGraph().add_input(F32, (2, 3), "x")
    with pytest.raises((InputError, InferenceError), match=said):
        call(x)


def test_unknown_parameters_are_pythons_own_error() -> None:
    x = pf.FunctionalGraph().add_input(F32, (2, 3), "x")
    said = "pf.functional.softmax: got an unexpected keyword argument 'axis'; its arguments are input, dim, dtype"
    with pytest.raises(TypeError, match=said) as caught:
        F.softmax(x, axis=1)
    assert caught.value.__suppress_context__


def test_wrong_graphs() -> None:
    graph, (x,) = inputs()
    with pytest.raises(InputError, match="a model needs an output"):
        graph.compile()
    with pytest.raises(InputError, match="already is an input or an output 'x'"):
        graph.add_input(F32, (1,), "x")
    with pytest.raises(InputError, match="already is an input or an output 'x'"):
        graph.compile(x=x)
    with pytest.raises(InputError, match="a dim is a number from 0, a name or None, not -1"):
        graph.add_input(F32, (-1,))
    with pytest.raises(InputError, match="a shape is a list of dims"):
        graph.add_input(F32, "n")
    with pytest.raises(InputError, match="'float33' is not one of float32, "):
        graph.add_input("float33", (1,))
    with pytest.raises(InputError, match="belongs to another graph"):
        graph.compile(pf.FunctionalGraph().add_input(F32, (1,)))
    with pytest.raises(InputError, match="the number of its dims is not known"):
        graph.add_input(F32, None).shape  # noqa: B018
