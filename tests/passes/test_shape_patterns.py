"""Shape arithmetic as PyTorch's exporters write it: which entries are known before any shape, and where it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.ir.sizes.partial import DynamicTensorShape
from small import specs


def node(op: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(" "), [output], name=output, **attributes)


CONSTANTS = {
    **{f"i{number}": np.array(number) for number in range(4)},
    **{f"l{number}": np.array([number]) for number in range(4)},
    **{"rest": np.array([-1]), "four": np.array([4]), "far": np.array([2**63 - 1]), "minus": np.array(-1)},
    **{"pair": np.array([-1, 2]), "backwards": np.array([-(2**63) + 1]), "two": np.float32(2), "none": np.float32([])},
    **{"zeros": np.array([0, 0, 0, 0]), "padding": np.array([1, 2, 3, 4]), "ones": np.float32([1, 1])},
}


def dims_of(number: int, axis: int) -> list[Any]:
    """A dim of x{number} as a scalar."""
    return [
        node("Shape", f"x{number}", f"s{number}{axis}"),
        node("Gather", f"s{number}{axis} i{axis}", f"d{number}{axis}"),
        node("Unsqueeze", f"d{number}{axis} l0", f"u{number}{axis}"),
    ]


def concat(parts: str, output: str) -> Any:
    return node("Concat", parts, output, axis=0)


PATTERNS: dict[str, tuple[list[Any], list[list[Any]], Any]] = {
    "view(b, -1)": (
        [*dims_of(0, 0), concat("u00 rest", "t"), node("Reshape", "x0 t", "y")],
        [["b", 4, 3]],
        ("b", 12),
    ),
    "view(-1, c * h * w)": (
        [
            *(part for axis in (1, 2) for part in dims_of(0, axis)),
            node("Mul", "d01 d02", "size"),
            node("Unsqueeze", "size l0", "size1"),
            concat("rest size1", "t"),
            node("Reshape", "x0 t", "y"),
        ],
        [["b", 4, 3]],
        ("b", 12),
    ),
    "reshape(b, h * w, c)": (
        [
            *(part for axis in (0, 2, 3) for part in dims_of(0, axis)),
            node("Mul", "d02 d03", "size"),
            node("Unsqueeze", "size l0", "size1"),
            concat("u00 size1 four", "t"),
            node("Transpose", "x0", "last", perm=[0, 2, 3, 1]),
            node("Reshape", "last t", "y"),
        ],
        [["b", 4, 8, 6]],
        ("b", 48, 4),
    ),
    "heads": (
        [
            *(part for axis in (0, 1) for part in dims_of(0, axis)),
            concat("u00 u01 four rest", "t"),
            node("Reshape", "x0 t", "r"),
            node("Transpose", "r", "y", perm=[0, 2, 1, 3]),
        ],
        [["b", "s", 32]],
        ("b", 4, "s", 8),
    ),
    "arange(s)": ([*dims_of(0, 1), node("Range", "i0 d01 i1", "y")], [["b", "s"]], ("s",)),
    "a mask from lengths": (
        [
            *dims_of(0, 1),
            node("Range", "i0 d01 i1", "places"),
            node("Unsqueeze", "places l0", "row"),
            node("Unsqueeze", "n l1", "column"),
            node("Less", "row column", "y"),
        ],
        [["b", "s", 3]],
        ("b", "s"),
    ),
    "expand(b, -1, -1)": (
        [
            *dims_of(0, 0),
            concat("u00 rest rest", "t"),
            node("Shape", "t", "rank"),
            node("ConstantOfShape", "rank", "ones3", value=numpy_helper.from_array(np.array([1]))),
            node("Mul", "ones3 minus", "minus3"),
            node("Equal", "t minus3", "same"),
            node("Where", "same ones3 t", "shape"),
            node("Expand", "x1 shape", "y"),
        ],
        [["b", 7, 3], [1, 5, 3]],
        ("b", 5, 3),
    ),
    "interpolate by a factor": (
        [
            *(part for axis in (0, 1, 2, 3) for part in dims_of(0, axis)),
            *(node("Cast", f"u0{axis}", f"f{axis}", to=TensorProto.FLOAT) for axis in (2, 3)),
            *(node("Mul", f"f{axis} two", f"m{axis}") for axis in (2, 3)),
            *(node("Floor", f"m{axis}", f"w{axis}") for axis in (2, 3)),
            *(node("Cast", f"w{axis}", f"z{axis}", to=TensorProto.INT64) for axis in (2, 3)),
            concat("u00 u01 z2 z3", "t"),
            node("Resize", "x0 none none t", "y"),
        ],
        [["b", 3, 224, "w"]],
        ("b", 3, 448, None),
    ),
    "Resize by scales": (
        [node("Concat", "ones two1", "scales", axis=0), node("Resize", "x0  scales", "y")],
        [["b", "c", 8, "w"]],
        ("b", "c", 16, "2*w"),
    ),
    "the size of another": (
        [
            *(part for number, axis in ((0, 0), (0, 1), (1, 2), (1, 3)) for part in dims_of(number, axis)),
            concat("u00 u01 u12 u13", "t"),
            node("Resize", "x0 none none t", "y"),
        ],
        [["b", 3, "h", "w"], ["b", 8, "H", 12]],
        ("b", 3, "H", 12),
    ),
    "the tokens of a KV cache": (
        [
            *dims_of(1, 2),
            node("Concat", "x0 x1", "both", axis=2),
            node("Slice", "both u12 far l2", "y"),
        ],
        [["b", 4, "past", 16], ["b", 4, "s", 16]],
        ("b", 4, "past", 16),
    ),
    "rows from the end of a part that is known": (
        [node("Shape", "x0", "s"), node("Slice", "s l1 l3 l0", "y")],
        [["b", "h", 5, 6]],
        (2,),
    ),
    "a slice that takes all": (
        [*dims_of(0, 1), node("Slice", "x0 l0 u01 l1", "y")],
        [["b", "s", 3]],
        ("b", "s", 3),
    ),
    "only what is cut changes": (
        [*dims_of(1, 1), node("Slice", "x0 l0 u11 l1", "y")],
        [["b", 64, 3], ["b", "s", 3]],
        ("b", "min(s, 64)", 3),
    ),
    "pads as PyTorch turns them": (
        [
            concat("padding zeros", "all"),
            node("Reshape", "all pair", "pairs"),
            node("Slice", "pairs rest backwards l0 rest", "turned"),
            node("Transpose", "turned", "columns", perm=[1, 0]),
            node("Reshape", "columns rest", "pads"),
            node("Cast", "pads", "pads64", to=TensorProto.INT64),
            node("Pad", "x0 pads64", "y", mode="constant"),
        ],
        [["b", 3, 8, 6]],
        ("b", 3, 15, 9),
    ),
    "zeros before": (
        [
            *dims_of(0, 0),
            concat("u00 l1 l3", "t"),
            node("ConstantOfShape", "t", "zeros3"),
            node("Concat", "zeros3 x0", "y", axis=1),
        ],
        [["b", 5, 3]],
        ("b", 6, 3),
    ),
    "repeat": (
        [*dims_of(0, 0), concat("l1 l3 l1", "t"), node("Tile", "x0 t", "y")],
        [["b", 5, "s"]],
        ("b", 15, "s"),
    ),
    "the product of a shape": (
        [
            node("Shape", "x0", "s"),
            node("Slice", "s l1 far l0", "rest3"),
            node("ReduceProd", "rest3", "size", keepdims=1),
            concat("rest size", "t"),
            node("Reshape", "x0 t", "y"),
        ],
        [["b", 4, 3]],
        ("b", 12),
    ),
}


def pattern(name: str) -> pf.Model:
    nodes, shapes, _ = PATTERNS[name]
    read = {value for part in nodes for value in part.input}
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, dims) for i, dims in enumerate(shapes)]
    inputs += [helper.make_tensor_value_info("n", TensorProto.INT64, ["b"])] if "n" in read else []
    constants = {**CONSTANTS, "two1": np.float32([2, 2])}
    graph = helper.make_graph(
        nodes,
        name,
        inputs,
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(value, key) for key, value in constants.items() if key in read],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), optimize=False)


@pytest.mark.parametrize("name", PATTERNS)
def test_dims_that_follow_are_known(name: str) -> None:
    made = specs(pattern(name))["y"]
    assert made.shape == PATTERNS[name][2]


@pytest.mark.parametrize("name", PATTERNS)
def test_the_gpu_computes_no_shapes(name: str, backend: str, backend_context: Any) -> None:
    """Of a strict worker on a GPU: all of the shape arithmetic is done when the plan is made, for every shape."""
    sizes = {"b": 2, "s": 5, "h": 4, "w": 6, "H": 7, "c": 3, "past": 3}
    for change in (0, 1):
        bound = {key: value + change for key, value in sizes.items()}
        model = pattern(name)
        fed: dict[str, Any] = {}
        for value in model.inputs:
            assert value.shape is not None
            shape = value.shape.with_dims(bound).to_shape()
            fed[value.name] = np.zeros(shape, value.dtype.numpy)
        made = pf.run(model, fed, backend=backend, ctx=backend_context, strict=True)["y"]
        wanted = DynamicTensorShape(PATTERNS[name][2]).with_dims(bound)
        assert wanted.accepts(made.shape)
