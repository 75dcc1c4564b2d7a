"""A loop that appends a row to a state in each iteration collects the rows instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from garbage import collect_garbage
from passes.graphs import apply, ops
from perframe.tensor.memory import ledger

random = np.random.default_rng(11)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info = helper.make_tensor_value_info


def model(
    begin: Any, *, axis: int = 0, appends: str = "rows row", width: Any = 3, extra: Any = (), outputs: Any = ()
) -> Any:
    """A loop over the rows of `x` (n, 3), each times 2 and as (1, 3), with the sum of all rows as another state."""
    nodes = [
        helper.make_node("Gather", ["x", "index"], ["one"], axis=0),
        helper.make_node("Mul", ["one", "two"], ["twice"]),
        helper.make_node("Add", ["sum", "twice"], ["next_sum"]),
        helper.make_node("Unsqueeze", ["twice", "zero"], ["row"]),
        helper.make_node("Concat", appends.split(" "), ["next_rows"], axis=axis),
        helper.make_node("Identity", ["going"], ["goes_on"]),
        *extra,
    ]
    own = [info("index", INT64, []), info("going", BOOL, []), info("sum", FLOAT, None), info("rows", FLOAT, None)]
    made = [info("goes_on", BOOL, []), info("next_sum", FLOAT, None), info("next_rows", FLOAT, None), *outputs]
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in {"two": np.float32(2), "zero": [0]}.items()]
    body = helper.make_graph(nodes, "body", own, made, constants)
    names = ["last_sum", "y", *(f"all {value.name}" for value in outputs)]
    loop = helper.make_node("Loop", ["n", "", "start", "begin"], names, "loop", body=body)
    graph = helper.make_graph(
        [loop],
        "appends",
        [info("x", FLOAT, ["n", width]), info("n", INT64, [])],
        [info(name, FLOAT, None) for name in names],
        [
            numpy_helper.from_array(np.asarray(begin, np.float32), "begin"),
            numpy_helper.from_array(np.zeros(1, np.float32), "start"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(given: onnx.ModelProto, backend: str, context: Any, trips: int) -> None:
    session = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = {"x": random.standard_normal((max(trips, 1), 3)).astype(np.float32), "n": np.array(trips)}
    with pf.Worker(pf.load(given), backend, ctx=context) as worker:
        for _ in range(2):
            worker.schedule(inputs)
            for index, expected in enumerate(session.run(None, inputs)):
                made = worker.peek_output(index).numpy()
                assert made.shape == expected.shape
                np.testing.assert_allclose(made, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("trips", [0, 1, 7])
def test_rows_are_collected(backend: str, gl_context: Any, rows: int, trips: int) -> None:
    given = model(np.ones((rows, 3)))
    loaded, changed = apply("recognise_appends", given)
    assert changed == 1 and ops(loaded) == ["Loop", "Squeeze", "Concat"]
    assert "Concat" not in [layer.op for layer in loaded.layers[0].inner_models["body"].layers]
    check(given, backend, None if backend == "cpu" else gl_context, trips)


def test_other_outputs_keep_their_order(gl_context: Any) -> None:
    """A collected output that the loop has already comes before the rows."""
    given = model(
        np.zeros((0, 3)), extra=[helper.make_node("Neg", ["twice"], ["minus"])], outputs=[info("minus", FLOAT, None)]
    )
    assert apply("recognise_appends", given)[1] == 1
    check(given, "cpu", None, 5)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(model(np.zeros((1, 0)), axis=1), id="another axis"),
        pytest.param(model(np.zeros((0, 3)), appends="row rows"), id="before the rows"),
        pytest.param(model(np.zeros((0, 3)), appends="rows row row"), id="two rows"),
        pytest.param(model(np.ones((1, 3)), appends="rows rows"), id="doubled"),
        pytest.param(model(np.ones((1, 3)), appends="rows x"), id="many rows"),
        pytest.param(
            model(
                np.ones((1, 3)),
                extra=[helper.make_node("ReduceSum", ["rows"], ["read"])],
                outputs=[info("read", FLOAT, None)],
            ),
            id="read",
        ),
        pytest.param(
            model(
                np.ones((1, 3)),
                extra=[helper.make_node("ReduceSum", ["next_rows"], ["read"])],
                outputs=[info("read", FLOAT, None)],
            ),
            id="read after",
        ),
    ],
)
def test_other_loops_stay(given: onnx.ModelProto) -> None:
    assert apply("recognise_appends", given)[1] == 0


@pytest.mark.parametrize("rows", [0, 1])
def test_rows_that_do_not_fit_are_an_error(backend: str, gl_context: Any, rows: int) -> None:
    """The width of the appended rows is open, and differs from that of the state at the begin."""
    given = model(np.zeros((rows, 4)), width="w")
    assert apply("recognise_appends", given)[1] == 1
    inputs = {"x": np.ones((2, 3), np.float32), "n": np.array(2)}
    with (
        pf.Worker(pf.load(given), backend, ctx=None if backend == "cpu" else gl_context) as worker,
        pytest.raises(pf.PerframeError),
    ):
        worker.schedule(inputs).peek_output("y").numpy()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_counts_of_rows() -> None:
    width = 10000
    with pf.Worker(pf.load(model(np.zeros((0, width)), width=width))) as worker:

        def held_after(counts: range) -> int:
            for trips in counts:
                inputs = {"x": np.ones((trips, width), np.float32), "n": np.array(trips)}
                worker.schedule(inputs).peek_output("y").numpy()
            collect_garbage()
            return ledger.held

        before = held_after(range(60, 80))
        held_after(range(1, 60))
        assert held_after(range(60, 80)) < 1.3 * before
