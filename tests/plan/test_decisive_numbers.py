"""Inputs whose numbers decide shapes: templates follow them, and shape arithmetic on them comes before the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from perframe.execution.deciding import DecidingPart
from perframe.plan.refit import FittedPlan
from perframe.testing.checks import trace
from support import GL_BACKENDS

random = np.random.default_rng(17)
node, info = helper.make_node, helper.make_tensor_value_info
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
CONSTANTS = {"axes": [2, 3], "one": 1, "two": [2], "first": [0], "all": [1, 3], "base": [1, 3, 4, 4]}


def model(nodes: Sequence[onnx.NodeProto], **integers: int) -> onnx.ModelProto:
    """A model of `x` (1, 3, 20, 20) and vectors of integers by their lengths, 0 for a number. It makes `y`."""
    inputs = [info("x", FLOAT, [1, 3, 20, 20])]
    inputs += [info(name, INT64, [count] if count else []) for name, count in integers.items()]
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in CONSTANTS.items()]
    graph = helper.make_graph(nodes, "decisive", inputs, [info("y", FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


CROP = model(
    [
        node("Resize", ["x", "", "", "sizes"], ["resized"], mode="linear"),
        node("Slice", ["resized", "starts", "ends", "axes"], ["y"]),
    ],
    sizes=4,
    starts=2,
    ends=2,
)
PADDED = model([node("Pad", ["x", "pads", "", "axes"], ["y"])], pads=4)
DATA_TOO = model(  # the number decides a shape, and is data as well
    [
        node("Cast", ["one"], ["one_float"], to=FLOAT),
        node("Concat", ["all", "size", "size"], ["sizes"], axis=0),
        node("Expand", ["one_float", "sizes"], ["ones"]),
        node("Cast", ["size"], ["number"], to=FLOAT),
        node("Mul", ["ones", "number"], ["y"]),
    ],
    size=1,
)


SCATTERED = model(  # a number names the dim that another number sets
    [
        node("Cast", ["one"], ["one_float"], to=FLOAT),
        node("Unsqueeze", ["at", "first"], ["places"]),
        node("ScatterND", ["base", "places", "size"], ["sizes"]),
        node("Expand", ["one_float", "sizes"], ["y"]),
    ],
    at=1,
    size=1,
)


def ints(**numbers: Sequence[int]) -> dict[str, Any]:
    return {name: np.array(value, np.int64) for name, value in numbers.items()}


def crops(*numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [ints(sizes=[1, 3, h, w], starts=[a, b], ends=[c, d]) for h, w, a, b, c, d in numbers]


CASES = {
    "crop": (
        CROP,
        crops((30, 31, 2, 3, 20, 21), (31, 30, 3, 4, 21, 22), (29, 31, 2, 5, 20, 22)),
        crops(
            (20, 31, 0, 1, 20, 21),
            (61, 7, 3, 2, 1000, 7),
            (30, 31, -20, 3, -2, 2**40),
            (5, 1, 0, 0, 1, 1),
            (9, 9, 5, 5, 5, 9),
        ),
    ),
    "pad": (
        PADDED,
        [ints(pads=row) for row in ([2, 3, 4, 5], [7, 2, 2, 3], [20, 30, 3, 2])],
        [ints(pads=row) for row in ([0, 1, 0, 0], [-3, 2, -4, 5], [-20, 0, 1, 2])],
    ),
    "scattered": (
        SCATTERED,
        [ints(at=[at], size=[size]) for at, size in ((2, 7), (2, 6), (2, 5))],
        [ints(at=[at], size=[size]) for at, size in ((3, 7), (0, 2), (1, 5), (3, 0))],
    ),
    "data too": (DATA_TOO, [ints(size=[n]) for n in (5, 7, 6)], [ints(size=[n]) for n in (40, 2, 1, 0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_followed(backend: str, gl_context: Any, case: str) -> None:
    """After a trace, other numbers of the same kind need no planning. Others are planned. All results are right."""
    given, alike, others = CASES[case]
    session = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    x = random.standard_normal((1, 3, 20, 20)).astype(np.float32)
    with pf.Worker(pf.load(given), backend, ctx=None if backend == "cpu" else gl_context) as worker:

        def check(numbers: Mapping[str, Any]) -> Any:
            inputs = {"x": x, **numbers}
            made = worker.schedule({n: v for n, v in inputs.items() if n in names}).peek_output().numpy()
            (expected,) = session.run(None, {n: v for n, v in inputs.items() if n in asked})
            assert made.shape == expected.shape
            np.testing.assert_allclose(made, expected, rtol=1e-5, atol=2e-5)
            return list(worker.parts.planned_parts())[-1].latest_plan

        names, asked = {value.name for value in worker.model.inputs}, {value.name for value in session.get_inputs()}
        check(alike[0])
        trace(worker)
        for numbers in alike[1:]:
            assert isinstance(check(numbers), FittedPlan)
        for numbers in (*others, *alike, *others):
            check(numbers)
            trace(worker)


def looped() -> onnx.ModelProto:
    """A loop that cuts a row of `x` at numbers which arithmetic on a table gives, and sums what it cuts."""
    body = helper.make_graph(
        [
            node("Gather", ["table", "index"], ["bounds"], axis=0),
            node("Split", ["bounds"], ["low", "high"], axis=0, num_outputs=2),
            node("Concat", ["low", "first"], ["lows"], axis=0),
            node("ReduceMax", ["lows"], ["begin"], keepdims=1),
            node("Add", ["high", "one"], ["end"]),
            node("Slice", ["row", "begin", "end", "first"], ["part"]),
            node("ReduceSum", ["part"], ["total"], keepdims=0),
            node("Add", ["sum", "total"], ["next"]),
            node("Identity", ["going"], ["goes_on"]),
        ],
        "body",
        [
            info("index", INT64, []),
            info("going", BOOL, []),
            info("sum", FLOAT, []),
        ],
        [
            info("goes_on", BOOL, []),
            info("next", FLOAT, []),
            info("total", FLOAT, []),
        ],
        [numpy_helper.from_array(np.array([1]), "one"), numpy_helper.from_array(np.array([0]), "first")],
    )
    graph = helper.make_graph(
        [
            node("Shape", ["table"], ["dims"]),
            node("Gather", ["dims", "zero"], ["count"], axis=0),
            helper.make_node("Loop", ["count", "", "start"], ["y", "all"], "loop", body=body),
        ],
        "looped",
        [info("row", FLOAT, [50]), info("table", INT64, ["n", 2])],
        [info("y", FLOAT, []), info("all", FLOAT, None)],
        [numpy_helper.from_array(np.array(0), "zero"), numpy_helper.from_array(np.float32(0), "start")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_arithmetic_comes_before_the_plan(backend: str, gl_context: Any) -> None:
    """The plan of the body depends on the bounds of a cut, and not on the table from which they are computed."""
    given = looped()
    session = onnxruntime.InferenceSession(given.SerializeToString(), providers=["CPUExecutionProvider"])
    with pf.Worker(pf.load(given), backend, ctx=None if backend == "cpu" else gl_context) as worker:
        loop = next(part for part in worker.parts._parts if hasattr(part, "body"))
        parts = loop.body("body")._parts
        assert isinstance(parts[0], DecidingPart) and "Slice" not in [layer.op for layer in parts[0]._layers]
        for count in (3, 7, 0, 20, 7):
            table = np.sort(random.integers(-3, 49, (count, 2)), axis=1)
            inputs = {"row": random.standard_normal(50).astype(np.float32), "table": table}
            worker.schedule(inputs)
            for index, expected in enumerate(session.run(None, inputs)):
                np.testing.assert_allclose(worker.peek_output(index).numpy(), expected, rtol=1e-5, atol=1e-5)
            trace(worker)
        planned = [part for part in parts if part is not parts[0]]
        table = np.array([[11, 31], [12, 33], [7, 29]])
        worker.schedule({"row": np.ones(50, np.float32), "table": table})
        assert worker.peek_output("y").numpy() == 66
        assert any(isinstance(part.latest_plan, FittedPlan) for part in planned if hasattr(part, "latest_plan"))


@pytest.mark.parametrize("name", GL_BACKENDS)
def test_a_plan_that_is_made_ahead_knows_the_numbers(name: str, gl_context: Any) -> None:
    numbers = {"x": np.zeros((1, 3, 20, 20), np.float32), **ints(size=[9])}
    with pf.Worker(pf.load(DATA_TOO), name, gl_context) as worker:  # type: ignore[arg-type]
        assert list(worker.parts.plan_ahead(numbers))
        (part,) = worker.parts.planned_parts()
        made = part.latest_plan
        assert worker.schedule(numbers).peek_output().shape == (1, 3, 9, 9) and part.latest_plan is made is not None
