"""Tree ensembles: their results, tables with invalid entries, and paths that do not end."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf

# x[0] <= 1.5 ? (x[1] <= 0 ? 10 : 20) : 30
STUMP: dict[str, Any] = {
    "n_targets": 1,
    "tree_roots": [0],
    "nodes_featureids": [0, 1],
    "nodes_modes": np.array([0, 0], np.uint8),
    "nodes_splits": np.array([1.5, 0], np.float32),
    "nodes_truenodeids": [1, 0],
    "nodes_trueleafs": [0, 1],
    "nodes_falsenodeids": [2, 1],
    "nodes_falseleafs": [1, 1],
    "leaf_targetids": [0, 0, 0],
    "leaf_weights": np.array([10, 20, 30], np.float32),
}


def run(x: Any, **changed: Any) -> Any:
    given = {
        name: numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
        for name, value in (STUMP | changed).items()
    }
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", name="node", **given)
    x = np.array(x, np.float32)
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)
    graph = helper.make_graph([node], "trees", [info], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    return pf.run(helper.make_model(graph, opset_imports=opsets, ir_version=10), {"x": x})["y"]


def test_a_tree() -> None:
    np.testing.assert_array_equal(run([[1, -1], [1, 1], [2, 0]]), [[10], [20], [30]])


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"tree_roots": [2]}, "tree_roots has numbers from 2 to 2, and there are 2"),
        ({"nodes_featureids": [0, 5]}, "nodes_featureids"),
        ({"nodes_featureids": [-1, 0]}, "nodes_featureids"),
        ({"nodes_truenodeids": [9, 0]}, "nodes_truenodeids"),
        ({"nodes_falsenodeids": [3, 1]}, "nodes_falsenodeids"),
        ({"leaf_targetids": [0, 0, 1]}, "leaf_targetids"),
        ({"leaf_targetids": [0, 0]}, "leaf_targetids has 2 entries, and 3"),
        ({"nodes_modes": np.array([0, 9], np.uint8)}, "nodes_modes"),
        ({"aggregate_function": 4}, "aggregate_function"),
        ({"post_transform": -1}, "post_transform"),
        ({"n_targets": 0}, "n_targets"),
    ],
    ids=str,
)
def test_invalid_tables_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(pf.InferenceError, match=rf"'node' .*{says}"):
        run([[1, -1]], **changed)


def test_an_endless_path_is_an_error() -> None:
    with pytest.raises(pf.BackendError, match=r"'node' .*does not end"):
        run([[1, -1]], nodes_truenodeids=[1, 0], nodes_trueleafs=[0, 0])
