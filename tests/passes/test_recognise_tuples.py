"""Elements that ScatterND replaces, with a tuple of indices each, become rows with a tuple each."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import perframe as pf
from passes.graphs import apply, graph, node, ops

random = np.random.default_rng(6)
SHAPE = 2, 3, 7, 5


def scatter(axis: int, shape: tuple[int, ...] = SHAPE, count: int = 2, **changes: Any) -> onnx.ModelProto:
    """x[..., at, ...] = rows, with `count` indices along `axis`, as PyTorch exports it: a tuple for each element.

    `changes` replace constants, by the axes that these index.
    """
    sizes = [count if at == axis else size for at, size in enumerate(shape)]
    constants: dict[str, Any] = {"sizes": sizes, "flat": [-1], "last": [1]}
    nodes, columns = [], []
    for at in range(len(shape)):
        constants[f"dims{at}"] = [-1 if other == at else 1 for other in range(len(shape))]
        if at == axis:
            nodes.append(node("Reshape", f"at dims{at}", "placed"))
            nodes.append(node("Expand", "placed sizes", f"all{at}"))
            nodes.append(node("Reshape", f"all{at} flat", f"line{at}"))
            nodes.append(node("Unsqueeze", f"line{at} last", f"column{at}"))
        else:
            constants[f"column{at}"] = changes.get(f"column{at}", np.indices(sizes)[at].reshape(-1, 1))
        columns.append(f"column{at}")
    nodes.append(node("Concat", " ".join(columns), "tuples", axis=changes.get("join", -1)))
    nodes.append(node("Reshape", "rows flat", "updates"))
    reduction = changes.get("reduction", "none")
    nodes.append(node("ScatterND", "x tuples updates", "y", reduction=reduction))
    made = graph(nodes, {"x": shape, "rows": sizes, "at": [count]}, constants)
    made.graph.input[2].CopyFrom(helper.make_tensor_value_info("at", TensorProto.INT64, [count]))
    made.graph.ClearField("value_info")  # of float indices
    return onnx.shape_inference.infer_shapes(made)


def tuples_of(model: pf.Model) -> Any:
    (layer,) = (layer for layer in model.layers if layer.op == "ScatterND")
    return tuple(layer.indices.spec.shape or ())


@pytest.mark.parametrize("at", [[0, 6], [-1, 3], [2, 2]])
@pytest.mark.parametrize(("axis", "tuples"), [(0, (2, 1, 1)), (1, (4, 1, 2)), (2, (12, 1, 3))])
def test_whole_rows_are_replaced(axis: int, tuples: Any, at: list[int], backend: str, gl_context: Any) -> None:
    model = scatter(axis)
    changed, changes = apply("recognise_tuples", model)
    changed.infer()
    assert changes == 1 and tuples_of(changed) == tuples
    x = random.random(SHAPE, np.float32)
    rows = random.random([2 if at == axis else size for at, size in enumerate(SHAPE)], np.float32)
    inputs = {"x": x, "rows": rows, "at": np.array(at, np.int64) % SHAPE[axis] - (at[0] < 0)}
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    with pf.Worker(pf.load(model), backend, ctx=gl_context) as worker:
        for _ in range(2):
            np.testing.assert_array_equal(worker.schedule(inputs).peek_output().numpy(), expected)


@pytest.mark.parametrize(
    "model",
    [
        scatter(3),  # the indices of each row differ
        scatter(2, reduction="add"),
        scatter(2, column3=np.tile(np.arange(5)[::-1], 12).reshape(-1, 1)),  # backwards
        scatter(2, column3=np.tile([0, 1, 2, 3, 3], 12).reshape(-1, 1)),
        scatter(2, column1=np.tile([0, 1, 2, 0, 1, 2, 0, 1, 2, 0], 6).reshape(-1, 1)),  # differs within a row
    ],
)
def test_what_is_not_by_whole_rows_stays(model: onnx.ModelProto) -> None:
    changed, changes = apply("recognise_tuples", model)
    assert changes == 0 and "Slice" not in ops(changed)


def test_a_cache_that_is_carried_is_replaced_by_rows(backend: str, gl_context: Any) -> None:
    with pf.Worker(pf.load(scatter(2, count=1)), backend, ctx=gl_context, carry={"y": "x"}) as worker:
        expected = np.zeros(SHAPE, np.float32)
        for run in range(9):
            at, rows = run * 5 % 7, random.random((2, 3, 1, 5), np.float32)
            expected[:, :, at] = rows[:, :, 0]
            worker.schedule(rows=rows, at=np.array([at]))
            np.testing.assert_array_equal(worker.state().numpy(), expected)
        (part,) = worker.parts.planned_parts()
        assert part.latest_plan is not None and part.latest_plan.outputs["rows of y"].shape == (6,)
