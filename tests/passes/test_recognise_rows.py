"""Elements that are scattered with one index a row are scattered as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import perframe as pf
from passes.graphs import apply, graph, node, ops

random = np.random.default_rng(5)


def scatter(sizes: Sequence[Any] = ("n", 5, 2), target: Any = None, **attributes: Any) -> onnx.ModelProto:
    """Scatter `rows` of these sizes into x (?, 5, 2), by an index (n, 1, 1) that is repeated for each element."""
    constants: dict[str, Any] = {"column": [-1, 1, 1]}
    nodes = [node("Reshape", "index column", "one"), node("Shape", "rows", "sizes")]
    if target is not None:
        constants["sizes"] = target
        nodes.pop()
    nodes += [node("Expand", "one sizes", "all"), node("ScatterElements", "x all rows", "y", **attributes)]
    made = graph(nodes, {"x": ["m", 5, 2], "rows": sizes, "index": ["k"]}, constants)
    made.graph.input[2].CopyFrom(helper.make_tensor_value_info("index", TensorProto.INT64, ["k"]))
    made.graph.ClearField("value_info")  # of a float index
    return onnx.shape_inference.infer_shapes(made)


def check(model: onnx.ModelProto, inputs: Mapping[str, Any], backend: str, context: Any) -> None:
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, dict(inputs))[0]
    with pf.Worker(pf.load(model), backend, ctx=context) as worker:
        for _ in range(2):
            np.testing.assert_array_equal(worker.schedule(inputs).peek_output().numpy(), expected)


@pytest.mark.parametrize("axis", [0, -3])
@pytest.mark.parametrize("index", [[], [2], [6, 0, -1, 3]])
def test_rows_are_scattered(backend: str, gl_context: Any, axis: int, index: list[int]) -> None:
    model = scatter(axis=axis)
    changed, changes = apply("recognise_rows", model)
    assert changes == 1 and "ScatterND" in ops(changed) and "ScatterElements" not in ops(changed)
    x, rows = random.random((7, 5, 2), np.float32), random.random((len(index), 5, 2), np.float32)
    check(model, {"x": x, "rows": rows, "index": np.array(index, np.int64)}, backend, gl_context)


def test_one_index_for_several_rows_stays_one(backend: str, gl_context: Any) -> None:
    model = scatter((3, 5, 2), [3, 5, 2])
    assert apply("recognise_rows", model)[1] == 1
    rows = np.repeat(random.random((1, 5, 2), np.float32), 3, 0)
    inputs = {"x": random.random((4, 5, 2), np.float32), "rows": rows, "index": np.array([2])}
    check(model, inputs, backend, gl_context)


@pytest.mark.parametrize(
    "model",
    [
        scatter(axis=1),
        scatter(reduction="add"),
        scatter(("n", 4, 2), [3, 4, 2]),  # a part of each row
        scatter(("n", 5, "w")),
    ],
)
def test_what_is_not_by_whole_rows_stays(model: onnx.ModelProto) -> None:
    assert apply("recognise_rows", model)[1] == 0


def test_a_part_of_each_row_is_scattered_as_elements(backend: str, gl_context: Any) -> None:
    inputs = {"x": random.random((7, 5, 2), np.float32), "rows": random.random((3, 4, 2), np.float32)}
    check(scatter(("n", 4, 2), [3, 4, 2]), {**inputs, "index": np.array([4, 1, 0])}, backend, gl_context)
