"""Branches, loops and scans on every backend, and models whose shapes depend on data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import perframe as pf
from perframe.execution import control_flow

F, WHOLE, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def load(text: str) -> pf.Model:
    """A model of opset 17 in ONNX's own notation."""
    return pf.load(parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>\n{text}'))


BRANCH = """
branch (float[N, 3] x, bool up) => (float[N, 3] y) {
    double_x = Add(x, x)
    y = If (up) <
        then_branch = up_graph () => (float[N, 3] a) { a = Exp(double_x) },
        else_branch = down_graph () => (float[N, 3] b) { t = Neg(x)  b = Relu(t) }
    >
}"""


@pytest.fixture(params=["array", "tensor"])
def flag(request: pytest.FixtureRequest) -> Callable[[bool], Any]:
    """What gives a condition: an array decides the branch before the run, a tensor during it."""
    return np.array if request.param == "array" else lambda up: pf.Tensor(np.array(up))


@pytest.mark.parametrize("up", [True, False])
def test_a_branch_reads_values_of_the_model_around_it(
    backend: str, backend_context: Any, up: bool, flag: Callable[[bool], Any]
) -> None:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    y = pf.run(load(BRANCH), {"x": x, "up": flag(up)}, backend=backend, ctx=backend_context)["y"]
    np.testing.assert_allclose(y, np.exp(2 * x) if up else np.maximum(-x, 0), rtol=1e-5)


def test_one_worker_takes_both_branches_and_other_shapes(
    backend: str, backend_context: Any, flag: Callable[[bool], Any]
) -> None:
    with pf.Worker(load(BRANCH), backend, backend_context) as worker:
        for rows in (1, 4):
            for up in (True, False, True):
                x = np.full((rows, 3), 0.5, np.float32)
                y = worker.schedule({"x": x, "up": flag(up)}).peek_output().download_to_array()
                np.testing.assert_allclose(y, np.exp(2 * x) if up else np.zeros_like(x), rtol=1e-5)


def doubling() -> pf.Model:
    """Double x `trips` times. Outputs are all states and the largest so far; the body reads an outer constant."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "factor"], ["next"]),
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("ReduceMax", ["next"], ["top"], keepdims=0),
        ],
        "body",
        [
            helper.make_tensor_value_info("count", WHOLE, []),
            helper.make_tensor_value_info("going", B, []),
            helper.make_tensor_value_info("state", F, [2]),
        ],
        [
            helper.make_tensor_value_info("still", B, []),
            helper.make_tensor_value_info("next", F, [2]),
            helper.make_tensor_value_info("top", F, []),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "", "x"], ["last", "tops"], body=body)],
        "doubling",
        [helper.make_tensor_value_info("trips", WHOLE, []), helper.make_tensor_value_info("x", F, [2])],
        [helper.make_tensor_value_info("last", F, [2]), helper.make_tensor_value_info("tops", F, ["n"])],
        [helper.make_tensor("factor", F, (), [2.0])],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_a_loop_carries_its_state(backend: str, backend_context: Any, trips: int) -> None:
    x = np.array([1.0, -3.0], np.float32)
    inputs = {"trips": np.array(trips, np.int64), "x": x}
    result = pf.run(doubling(), inputs, backend=backend, ctx=backend_context)
    np.testing.assert_array_equal(result["last"], x * 2**trips)
    np.testing.assert_array_equal(result["tops"], [2.0 ** (k + 1) for k in range(trips)])


def test_a_shape_that_is_computed_from_data(backend: str, backend_context: Any) -> None:
    model = load(
        """
        cut (float[N] x, float[M] y) => (float[A, B] z) {
            one = Constant<value_ints = [1]>()
            total = ReduceSum<keepdims = 1>(x)
            rows = Cast<to = 7>(total)
            minus = Neg(one)
            shape = Concat<axis = 0>(rows, minus)
            doubled = Add(y, y)
            shaped = Reshape(doubled, shape)
            z = Relu(shaped)
        }"""
    )
    y = np.arange(-6, 6, dtype=np.float32)
    with pf.Worker(model, backend, backend_context) as worker:
        for rows in (2, 3, 4, 2):
            x = np.full(rows, 1.0, np.float32)
            z = worker.schedule({"x": x, "y": y}).peek_output()
            assert z.shape == (rows, 12 // rows)
            np.testing.assert_array_equal(z.download_to_array(), np.maximum(2 * y, 0).reshape(rows, -1))


def test_sequences_go_in_and_out(backend: str, backend_context: Any) -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("SequenceInsert", ["s", "r"], ["longer"]),
            helper.make_node("SequenceLength", ["longer"], ["n"]),
            helper.make_node("ConcatFromSequence", ["longer"], ["joined"], axis=0),
        ],
        "sequences",
        [
            helper.make_tensor_sequence_value_info("s", F, None),
            helper.make_tensor_value_info("x", F, [2]),
        ],
        [
            helper.make_tensor_sequence_value_info("longer", F, None),
            helper.make_tensor_value_info("n", WHOLE, []),
            helper.make_tensor_value_info("joined", F, ["k"]),
        ],
    )
    model = pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    given = {"s": [np.ones(1, np.float32), np.zeros(3, np.float32)], "x": np.array([-1, 2], np.float32)}
    result = pf.run(model, given, backend=backend, ctx=backend_context)
    assert [len(part) for part in result["longer"]] == [1, 3, 2] and result["n"] == 3
    np.testing.assert_array_equal(result["joined"], [1, 0, 0, 0, 0, 2])


def test_a_layer_at_a_time_through_a_branch(backend: str, backend_context: Any, flag: Callable[[bool], Any]) -> None:
    with pf.Worker(load(BRANCH), backend, backend_context) as worker:
        x = np.zeros((1, 3), np.float32)
        names = list(worker.schedule_iterable({"x": x, "up": flag(True)}))
        is_open = isinstance(flag(True), pf.Tensor)
        assert len(names) == 1 + is_open and worker.peek_output().download_to_array().tolist() == [[1.0, 1.0, 1.0]]


def test_what_a_body_lacks_is_reported_with_the_rest() -> None:
    body = helper.make_graph(
        [helper.make_node("NoSuchOperator", ["x"], ["a"])], "g", [], [helper.make_tensor_value_info("a", F, [1])]
    )
    graph = helper.make_graph(
        [
            helper.make_node("NoSuchEither", ["x"], ["z"]),
            helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
        ],
        "lacking",
        [helper.make_tensor_value_info("x", F, [1]), helper.make_tensor_value_info("c", B, [])],
        [helper.make_tensor_value_info("y", F, [1])],
    )
    with pytest.raises(pf.UnsupportedOperatorError) as caught:
        pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert {problem.operator for problem in caught.value.problems} == {"NoSuchOperator", "NoSuchEither"}


def test_a_loop_reads_back_nothing_but_its_condition(
    backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, states and collected rows stay there until a caller reads the outputs."""
    read: list[str] = []
    original = control_flow.downloaded

    def counted(value: Any) -> Any:
        if isinstance(value, pf.Tensor):
            read.append(value.name)
        return original(value)

    with pf.Worker(doubling(), backend, backend_context) as worker:
        inputs = {"trips": np.array(4, np.int64), "x": np.array([1.0, 3.0], np.float32)}
        worker.schedule(inputs)
        monkeypatch.setattr(control_flow, "downloaded", counted)
        worker.schedule(inputs)
        monkeypatch.undo()
        assert set(read) <= {"still"}, read
        assert worker.peek_output("tops").download_to_array().tolist() == [6.0, 12.0, 24.0, 48.0]
        assert worker.peek_output("last").download_to_array().tolist() == [16.0, 48.0]


def running_sums(direction: int, axis: int) -> pf.Model:
    """Running sums along an axis of Relu(x), which begin at Relu(start), and the last sum."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "slice"], ["sum_out"]),
            helper.make_node("Identity", ["sum_out"], ["row"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, F, [3]) for name in ("sum_in", "slice")],
        [helper.make_tensor_value_info(name, F, [3]) for name in ("sum_out", "row")],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Relu", ["start"], ["s"]),
            helper.make_node(
                "Scan",
                ["s", "r"],
                ["last", "sums"],
                body=body,
                num_scan_inputs=1,
                scan_input_axes=[axis],
                scan_input_directions=[direction],
                scan_output_axes=[axis],
            ),
        ],
        "running_sums",
        [helper.make_tensor_value_info("start", F, [3]), helper.make_tensor_value_info("x", F, [None, None])],
        [helper.make_tensor_value_info("last", F, [3]), helper.make_tensor_value_info("sums", F, [None, None])],
    )
    return pf.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize(("direction", "axis"), [(0, 0), (1, 1)])
def test_a_scan_reads_nothing_back(
    backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch, direction: int, axis: int
) -> None:
    """On a GPU, the scanned value is cut and the rows are joined without a readback."""
    downloads: list[Any] = []
    with pf.Worker(running_sums(direction, axis), backend, backend_context) as worker:
        storage = type(worker.empty_input("start").data_on_backend)
        original = storage.download

        def counted(self: Any, *arguments: Any) -> Any:
            downloads.append(self)
            return original(self, *arguments)

        for steps in (5, 2):
            x = np.random.default_rng(steps).normal(size=(steps, 3) if axis == 0 else (3, steps)).astype(np.float32)
            start = np.array([0.5, -1, 2], np.float32)
            with monkeypatch.context() as patch:
                patch.setattr(storage, "download", counted)
                worker.schedule({"start": start, "x": x})
            assert not downloads or backend == "cpu"
            rows = np.maximum(np.moveaxis(x, axis, 0), 0)[:: -1 if direction else 1]
            sums = np.maximum(start, 0) + np.cumsum(rows, 0)
            got = worker.peek_output("sums").download_to_array()
            np.testing.assert_allclose(np.moveaxis(got, axis, 0), sums, rtol=1e-5)
            np.testing.assert_allclose(worker.peek_output("last").download_to_array(), sums[-1], rtol=1e-5)
