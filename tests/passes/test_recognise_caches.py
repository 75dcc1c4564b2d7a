"""Rows that TensorScatter writes into the room behind a cache are joined to it, where they fill that room."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import perframe as pf
from passes.graphs import apply, node, ops
from perframe.testing.cases import expected_by_onnxruntime

random = np.random.default_rng(3)


def longer(
    begin: Any = "past", room: Any = "new", before: int = 0, axis: int = 2, rows: Any = (1, 2, "new", 4), **pad: Any
) -> onnx.ModelProto:
    """A cache (1, 2, past, 4) with room for `room` rows behind it, into which `new` rows go from `begin` on."""
    shape = [1, 2, 4]
    shape.insert(axis, "past")
    constants = {"zero": [before], "axes": [axis], "some": [begin], "more": [room]}
    nodes = [
        node("Shape", "cache", "past", start=axis, end=axis + 1),
        node("Shape", "rows", "new", start=axis, end=axis + 1),
        node("Concat", f"zero {room if isinstance(room, str) else 'more'}", "pads", axis=0),
        helper.make_node("Pad", ["cache", "pads", "", "axes"], ["wide"], **pad),
        node("TensorScatter", f"wide rows {begin if isinstance(begin, str) else 'some'}", "y", axis=axis),
    ]
    made = helper.make_graph(
        nodes,
        "cache",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims))
            for name, dims in (("cache", shape), ("rows", rows))
        ],
        [onnx.ValueInfoProto(name="y")],
        [
            onnx.numpy_helper.from_array(np.array(value, np.int64), name)
            for name, value in constants.items()
            if not isinstance(value[0], str)
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


@pytest.mark.parametrize("past, new", [(0, 3), (5, 1), (4, 0), (1, 7)])
def test_rows_are_joined(past: int, new: int, backend: str, backend_context: Any) -> None:
    proto = longer()
    assert "Concat" in ops(apply("recognise_caches", proto)[0])
    given = {
        "cache": random.standard_normal((1, 2, past, 4)).astype(np.float32),
        "rows": random.standard_normal((1, 2, new, 4)).astype(np.float32),
    }
    wanted = np.concatenate([given["cache"], given["rows"]], 2)
    made = pf.run(proto, given, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize(
    "proto",
    [
        longer(begin=0),
        longer(begin="new"),
        longer(room=3),
        longer(room="past"),
        longer(before=1),
        longer(mode="edge"),
        longer(rows=(1, 2, None, 4)),
    ],
    ids=["at the front", "elsewhere", "more room", "other room", "room in front", "copies", "unknown rows"],
)
def test_others_stay(proto: onnx.ModelProto) -> None:
    assert apply("recognise_caches", proto)[1] == 0


def test_a_row_of_another_size_is_an_error() -> None:
    """Whether or not they are joined."""
    given = {"cache": np.zeros((1, 2, 3, 4), np.float32), "rows": np.zeros((1, 2, 1, 5), np.float32)}
    for optimize in (True, False):
        model = pf.load(longer(rows=(1, 2, "new", "size")), optimize=optimize)
        with pytest.raises(pf.InferenceError), pf.Worker(model) as worker:
            worker.schedule(given)


def test_onnxruntime_agrees() -> None:
    given = {
        "cache": random.standard_normal((1, 2, 3, 4)).astype(np.float32),
        "rows": random.standard_normal((1, 2, 2, 4)).astype(np.float32),
    }
    np.testing.assert_array_equal(pf.run(longer(), given)["y"], expected_by_onnxruntime(longer(), given)[0])
