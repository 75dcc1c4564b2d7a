"""Operators of ai.onnx.ml that need no forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from perframe.testing import Draw
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(61)
WORDS = np.array([["a", "b"], ["?", "c"]], object)
NUMBERS = np.array([[1.0, np.nan], [3.0, 7.0]], np.float32)


def model(op: str, inputs: list[Array], opset: int, **attributes: Any) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(len(inputs))]
    kinds = [helper.np_dtype_to_tensor_dtype(v.dtype) if v.dtype != object else 8 for v in inputs]
    given = zip(names, kinds, inputs, strict=True)
    infos = [helper.make_tensor_value_info(name, kind, value.shape) for name, kind, value in given]
    node = helper.make_node(op, names, ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], op, infos, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", opset)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


CASES: list[tuple[str, list[Array], int, dict[str, Any]]] = [
    ("LabelEncoder", [WORDS], 2, {"keys_strings": ["a", "b", "c"], "values_int64s": [5, 6, 7]}),
    ("LabelEncoder", [WORDS], 2, {"keys_strings": ["a", "b"], "values_floats": [0.5, 6], "default_float": 9.0}),
    ("LabelEncoder", [WORDS], 2, {"keys_strings": ["a", "b"], "values_strings": ["x", "y"]}),
    ("LabelEncoder", [NUMBERS], 4, {"keys_floats": [1.0, np.nan], "values_int64s": [4, 5], "default_int64": 3}),
    ("LabelEncoder", [draw(7, low=0, high=3, dtype=np.int64)], 2, {"keys_int64s": [0, 2], "values_floats": [1.5, 2]}),
    (
        "LabelEncoder",
        [WORDS],
        4,
        {
            "keys_tensor": numpy_helper.from_array(np.array(["a", "c"], object)),
            "values_tensor": numpy_helper.from_array(np.array([3, 4], np.int16)),
            "default_tensor": numpy_helper.from_array(np.array([8], np.int16)),
        },
    ),
    ("Binarizer", [draw(3, 5)], 1, {"threshold": 0.2}),
    ("ArrayFeatureExtractor", [draw(3, 5), np.array([4, 0], np.int64)], 1, {}),
    ("ArrayFeatureExtractor", [draw(5), np.array([[1, 3]], np.int64)], 1, {}),
    ("ArrayFeatureExtractor", [draw(2, 3, 5), np.array([4], np.int64)], 1, {}),
    ("Scaler", [draw(3, 5)], 1, {"offset": [1.0, 2, 3, 4, 5], "scale": [2.0, 0.5, 1, 3, 4]}),
    ("Scaler", [draw(3, 5, low=-9, high=9, dtype=np.int64)], 1, {"offset": [1.0], "scale": [0.5]}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {sorted(case[3])}")
def test_against_onnxruntime(
    case: tuple[str, list[Array], int, dict[str, Any]], backend: str, backend_context: Any
) -> None:
    op, inputs, opset, attributes = case
    proto = model(op, inputs, opset, **attributes)
    fed = {f"x{index}": value for index, value in enumerate(inputs)}
    (wanted,) = expected_by_onnxruntime(proto, fed)
    made = pf.run(proto, fed, backend=backend, ctx=backend_context)["y"]
    assert made.shape == wanted.shape and made.dtype == wanted.dtype
    if wanted.dtype == object:
        assert made.tolist() == wanted.tolist()
    else:
        np.testing.assert_allclose(made, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("x", [np.array([2, 0, 9]), np.array(["b", "?", "a"], object)])
def test_classes_of_the_first_opset(x: Array, backend: str, backend_context: Any) -> None:
    proto = model("LabelEncoder", [x], 1, classes_strings=["a", "b", "c"], default_string="none", default_int64=-7)
    made = pf.run(proto, {"x0": x}, backend=backend, ctx=backend_context)["y"]
    assert made.tolist() == (["c", "a", "none"] if x.dtype == np.int64 else [1, -7, 0])
