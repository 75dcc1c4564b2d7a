"""Weights that a file keeps without their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.testing.cases import expected_by_onnxruntime

X = np.arange(6, dtype=np.float32).reshape(2, 3)
BY_NUMBER, BY_ROW = [1, 6, 11], [[0, 1], [1, 2], [2, 3]]


def sparse(places: Any) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    indices = numpy_helper.from_array(np.array(places, np.int64), "places")
    return helper.make_sparse_tensor(values, indices, [3, 4])


def model(places: Any, constant: bool) -> onnx.ModelProto:
    nodes = [helper.make_node("Constant", [], ["w"], sparse_value=sparse(places))] if constant else []
    nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [2, 3]), ("y", [2, 4]))
    ]
    graph = helper.make_graph(nodes, "sparse", *ends, sparse_initializer=[] if constant else [sparse(places)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("constant", [False, True], ids=["initializer", "Constant"])
@pytest.mark.parametrize("places", [BY_NUMBER, BY_ROW], ids=["numbers", "rows"])
def test_zeros_come_back(places: Any, constant: bool, backend: str, backend_context: Any) -> None:
    proto = model(places, constant)
    (wanted,) = expected_by_onnxruntime(proto, {"x": X})
    np.testing.assert_allclose(pf.run(proto, {"x": X}, backend=backend, ctx=backend_context)["y"], wanted, 1e-5)


@pytest.mark.parametrize("places", [[1, 6, 12], [-1, 6, 11], [[0, 1], [1, 2], [3, 3]], [1, 2]])
def test_places_outside_are_reported(places: Any) -> None:
    with pytest.raises(pf.ModelError, match="sparse tensor 'w'"):
        pf.load(model(places, constant=False))
