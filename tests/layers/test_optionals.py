"""Optionals of sequences: what they hold stays a sequence, within branches, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

import perframe as pf

SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.INT32, [4]))
ROWS = [np.array([index, 2, 3, 4], np.int32) for index in range(3)]


def value(name: str) -> Any:
    return helper.make_value_info(name, SEQUENCE)


def model_of(nodes: list[Any], output: Any, *more: Any) -> bytes:
    graph = helper.make_graph(nodes, "optionals", [value("s"), *more], [output])
    data: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    return data


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_element_of_an_optional_sequence_is_a_sequence(wrapped: bool, optimize: bool) -> None:
    nodes = [
        *([helper.make_node("Optional", ["s"], ["o"])] if wrapped else []),
        helper.make_node("OptionalGetElement", ["o" if wrapped else "s"], ["t"]),
        helper.make_node("SequenceLength", ["t"], ["y"]),
    ]
    model = pf.load(model_of(nodes, helper.make_tensor_value_info("y", TensorProto.INT64, [])), optimize=optimize)
    given: Any = {"s": ROWS}
    assert pf.run(model, given)["y"] == 3


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("which", [True, False])
def test_a_branch_returns_the_sequence_of_an_optional(which: bool, optimize: bool) -> None:
    bodies = [
        helper.make_graph([helper.make_node("OptionalGetElement", ["s"], [name])], name, [], [value(name)])
        for name in ("a", "b")
    ]
    branch = helper.make_node("If", ["which"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    data = model_of([branch], value("y"), helper.make_tensor_value_info("which", TensorProto.BOOL, []))
    given: Any = {"s": ROWS, "which": np.array(which)}
    np.testing.assert_array_equal(pf.run(pf.load(data, optimize=optimize), given)["y"], ROWS)


@pytest.mark.parametrize(("axes", "shape"), [([], (3,)), ([0], (3, 1))])
def test_an_old_squeeze_without_axes_takes_all(axes: list[int], shape: tuple[int, ...]) -> None:
    """Before opset 13 an empty list of axes is no list, as in ONNX's reference."""
    node = helper.make_node("Squeeze", ["x"], ["y"])
    node.attribute.append(helper.make_attribute("axes", axes, attr_type=AttributeProto.INTS))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 1])
    graph = helper.make_graph([node], "squeeze", [x], [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    assert pf.run(model, {"x": np.zeros((1, 3, 1), np.float32)})["y"].shape == shape
