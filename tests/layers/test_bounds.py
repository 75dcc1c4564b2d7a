"""Indices and lengths that reach outside: an error on the CPU, on a GPU where they are known when a plan is made or
where checks are asked for. Elsewhere on a GPU they read 0 and write nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InferenceError
from perframe.ir import Value
from perframe.ir.bounds import Bounds
from perframe.testing import Case, ints

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
PICTURES = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
U = np.full((1, 3), 9, np.float32)
RESIZED = {"output_height": 1, "output_width": 1}
# the layer, the input with numbers outside, and a GPU's result
CASES: list[tuple[Case, int, Any]] = [
    (Case("", "Gather", [X, ints(1, 5, -3)]), 1, [[4, 5, 6], [0, 0, 0], [0, 0, 0]]),
    (Case("", "GatherElements", [X, np.array([[1, 7, -9]])]), 1, [[4, 0, 0]]),
    (Case("", "GatherND", [X, np.array([[1, 2], [1, 3], [-3, 0]])]), 1, [6, 0, 0]),
    (Case("", "ScatterElements", [X, np.array([[1, 7, -9]]), U]), 1, [[1, 2, 3], [9, 5, 6]]),
    (Case("", "ScatterND", [X, np.array([[2]]), U]), 1, X),
    (Case("", "ScatterND", [X, np.array([[5]]), U], {"reduction": "add"}), 1, X),
    (
        Case("", "MaxUnpool", [PICTURES[:, :, :1, :2], np.array([[[[-1, 99]]]])], {"kernel_shape": [1, 1]}),
        1,
        [[[[0, 0]]]],
    ),
    (Case("", "RoiAlign", [PICTURES, np.float32([[0, 0, 3, 3]]), ints(7)], RESIZED), 2, [[[[0]]]]),
    (Case("", "RoiAlign", [PICTURES, np.float32([[0, 0, 3, 3]]), ints(-1)], RESIZED), 2, [[[[0]]]]),
    (Case("", "MaxRoiPool", [PICTURES, np.float32([[3, 0, 0, 3, 3]])], {"pooled_shape": [1, 1]}), 1, [[[[0]]]]),
    (Case("", "ReverseSequence", [X, ints(1, 9, 2)]), 1, [[1, 5, 6], [4, 2, 3]]),
    (Case("", "TensorScatter", [PICTURES, PICTURES[:, :, :1], ints(9)]), 2, PICTURES),
]
IDS = [f"{case.op}-{index}" for index, (case, _, _) in enumerate(CASES)]


def run(case: Case, known: int | None, backend: str, ctx: Any) -> Any:
    """The result with one input known before the run, or none."""
    given = Case(case.name, case.op, case.inputs, case.attributes, constants=[] if known is None else [known])
    return pf.run(pf.load(given.proto(), optimize=False), given.fed, backend=backend, ctx=ctx)["y0"]


@pytest.mark.parametrize(("case", "which", "left_out"), CASES, ids=IDS)
def test_known_ones_are_an_error(case: Case, which: int, left_out: Any, backend: str, backend_context: Any) -> None:
    with pytest.raises(pf.PerframeError, match=f"'node' .{case.op}.*reaches beyond"):
        run(case, which, backend, backend_context)


@pytest.mark.parametrize(("case", "which", "left_out"), CASES, ids=IDS)
def test_those_of_a_run_are_an_error_or_left_out(
    case: Case, which: int, left_out: Any, backend: str, backend_context: Any
) -> None:
    if backend == "cpu":
        with pytest.raises(pf.BackendError, match=f"'node' .{case.op}.*reaches beyond"):
            run(case, None, backend, backend_context)
    else:
        np.testing.assert_array_equal(run(case, None, backend, backend_context), left_out)


@pytest.mark.parametrize(("case", "which", "left_out"), CASES, ids=IDS)
def test_with_checks_those_of_a_run_are_an_error_everywhere(
    case: Case, which: int, left_out: Any, backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFRAME_CHECK", "1")
    with pytest.raises(pf.BackendError, match=f"'node' .{case.op}.*reaches beyond"):
        run(case, None, backend, backend_context)


def test_checks_let_good_indices_pass(backend: str, backend_context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFRAME_CHECK", "1")
    case = Case("", "Gather", [X, ints(1, -2)])
    np.testing.assert_array_equal(run(case, None, backend, backend_context), X[[1, 0]])


@pytest.mark.parametrize("number", [2**32 + 1, 2**40, -(2**31) - 1])
@pytest.mark.parametrize("known", [None, 1])
def test_no_index_wraps_around(number: int, known: int | None, backend: str, backend_context: Any) -> None:
    with pytest.raises(pf.PerframeError, match=str(number)):
        run(Case("", "Gather", [X, ints(number)]), known, backend, backend_context)


def test_no_whole_number_wraps_around(backend: str, backend_context: Any) -> None:
    case = Case("", "Add", [ints(2**40, 5), ints(1)])  # it may leave 32 bits, and runs on the CPU
    np.testing.assert_array_equal(run(case, None, backend, backend_context), [2**40 + 1, 6])
    case = Case("", "Max", [ints(2**40, 5), ints(1)])
    if backend == "cpu":
        np.testing.assert_array_equal(run(case, None, backend, backend_context), [2**40, 5])
    else:
        with pytest.raises(pf.InputError, match=f"input '.*holds {2**40}, and integers on a GPU are int32"):
            run(case, None, backend, backend_context)


# --- shapes: no kernel reads outside of its inputs, with followed sizes either ---

SHAPES: list[tuple[str, list[tuple[int, ...]], dict[str, Any], str]] = [
    ("GatherElements", [(3, 5), (8, 1)], {"axis": 1}, "reach beyond .* on axis 0"),
    ("GatherElements", [(3, 5), (3,)], {"axis": 1}, "do not have the rank"),
    ("GatherND", [(3, 5), (4, 1)], {"batch_dims": 1}, "batch dims of the indices"),
    ("ScatterElements", [(3, 5), (8, 1), (8, 1)], {"axis": 1}, "reach beyond .* on axis 0"),
    ("ScatterElements", [(3, 5), (2, 1), (3, 1)], {"axis": 1}, "updates .* do not fit"),
    ("ScatterND", [(3, 5), (2, 1), (2, 4)], {}, "updates .* do not fit"),
    ("ScatterND", [(3, 5), (2, 3), (2,)], {}, "do not name elements"),
    ("MaxUnpool", [(1, 1, 2, 2), (1, 1, 2, 3)], {"kernel_shape": [2, 2]}, "one index for each element"),
    ("RoiAlign", [(1, 1, 4, 4), (2, 3), (2,)], {}, "are not 4 numbers"),
    ("RoiAlign", [(1, 1, 4, 4), (3, 4), (2,)], {}, "for each of the batch_indices"),
    ("MaxRoiPool", [(1, 1, 4, 4), (2, 4)], {"pooled_shape": [1, 1]}, "regions are rows"),
    ("ReverseSequence", [(4, 2), (3,)], {}, "do not fit the sequences"),
    ("TensorScatter", [(2, 1, 4, 4), (2, 1, 1, 4), (3,)], {}, "not one for each batch"),
]
RANKS = [("Reshape", 65), ("Expand", 70), ("ConstantOfShape", 100)]


@pytest.mark.parametrize(("op", "rank"), RANKS)
def test_no_tensor_has_more_dims_than_an_array(op: str, rank: int, backend: str, backend_context: Any) -> None:
    given = [np.ones(rank, np.int64)] if op == "ConstantOfShape" else [X[:1], np.ones(rank, np.int64)]
    case = Case("", op, given, constants=[len(given) - 1])
    with pytest.raises(pf.InferenceError, match=f"'node' .*64.*{rank}|'node' .*{rank} dims, and 64"):
        pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context)


INDICES = {"RoiAlign": 2, "TensorScatter": 2}  # which input they are, where it is not the second


@pytest.mark.parametrize("opened", [False, True], ids=["declared", "open"])
@pytest.mark.parametrize(("op", "shapes", "attributes", "says"), SHAPES, ids=str)
def test_shapes_that_do_not_fit_are_refused(
    op: str,
    shapes: list[tuple[int, ...]],
    attributes: dict[str, Any],
    says: str,
    opened: bool,
    backend: str,
    backend_context: Any,
) -> None:
    at = None if op == "MaxRoiPool" else INDICES.get(op, 1)
    inputs = [np.zeros(shape, np.int64 if index == at else np.float32) for index, shape in enumerate(shapes)]
    case = Case("", op, inputs, attributes, constants=[])
    proto = case.proto()
    if opened:
        for index, info in enumerate(proto.graph.input):
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = f"dim_{index}_{axis}"
        del proto.graph.output[0].type.tensor_type.shape.dim[:]
        proto.graph.output[0].ClearField("type")
    with pytest.raises(pf.InferenceError, match=f"'node' .*{says}"):
        pf.run(proto, case.fed, backend=backend, ctx=backend_context)


def test_a_size_that_was_followed_is_checked_for_the_next() -> None:
    model = pf.Model(
        [
            Value("x", pf.DataType.FLOAT32, pf.DynamicTensorShape(["n", 5])),
            Value("i", pf.DataType.INT64, pf.DynamicTensorShape(["m", 1])),
        ],
        [Value("y", pf.DataType.FLOAT32, None)],
        [pf.Layer("GatherElements", "picks", ["x", "i"], ["y"], {"axis": 1})],
        {},
    )
    x = np.arange(60, dtype=np.float32).reshape(12, 5)
    with pf.Worker(model, pf.BackendType.CPU) as worker:
        for rows, count in ((8, 8), (9, 4), (12, 7), (6, 6)):
            result = worker.schedule(x[:rows], np.ones((count, 1), np.int64)).peek_output("y").download_to_array()
            np.testing.assert_array_equal(result, x[:count, 1:2])
        for rows, count in ((4, 5), (8, 12), (3, 100)):
            with pytest.raises(pf.InferenceError, match=r"'picks' .*reach beyond"):
                worker.schedule(x[:rows], np.ones((count, 1), np.int64))


def test_bounds_look_at_columns() -> None:
    bounds = Bounds(1, (3, None, 2))
    bounds.check(np.array([[2, 99, -2], [-3, -99, 1]]))
    with pytest.raises(InferenceError, match="index 2 reaches beyond 2 elements"):
        bounds.check(np.array([[0, 0, 1], [0, 0, 2]]))
    Bounds(1, (4,), from_end=False, what="length").check(np.array([0, 4]))
    with pytest.raises(InferenceError, match="length 5 reaches"):
        Bounds(1, (4,), from_end=False, what="length").check(np.array([0, 5]))
    with pytest.raises(InferenceError, match="index nan reaches"):
        bounds.check(np.array([[np.nan, 0, 0]]))
