"""Non-maximum suppression leaves out boxes that overlap a better one: limits, thresholds, formats, ties."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import perframe as pf
from perframe.backends.cpu.families.nms import compute
from perframe.layers.nms import Suppression
from perframe.testing import Case, Draw

draw = Draw(43)


def nms(
    batch: int = 1, classes: int = 2, boxes: int = 30, most: Any = 9, overlap: Any = 0.5, least: Any = 0.2, **more: Any
) -> Case:
    corners = draw(batch, boxes, 4, low=0, high=1)
    scores = np.round(draw(batch, classes, boxes, low=0, high=1), 1)  # some are equal
    numbers = [None if most is None else np.array([most], np.int64)]
    numbers += [None if value is None else np.array([value], np.float32) for value in (overlap, least)]
    name = f"{batch} {classes} {boxes} {most} {overlap} {least} {more}"
    return Case(name, "NonMaxSuppression", [corners, scores, *numbers], more, constants=[])


CASES = [
    nms(),
    nms(batch=3, classes=4),
    nms(overlap=0.0),
    nms(overlap=0.9, most=100),
    nms(center_point_box=1),
    nms(least=2.0),
    nms(boxes=0),
    nms(most=0),
    nms(least=None),
    nms(boxes=1),
    nms(boxes=131, most=37, least=0.0),
    nms(boxes=96, most=96, overlap=0.99, least=None),  # a whole block stays
    nms(batch=2, classes=3, boxes=397, most=50, overlap=0.2, center_point_box=1),
    nms(boxes=1201, classes=1, most=2000, overlap=0.3),  # too many to count their ranks: runs are merged
    nms(batch=0),
    nms(classes=0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nms(case: Case, backend: str, backend_context: Any) -> None:
    inputs = list(case.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    case = Case(case.name, case.op, inputs, case.attributes, constants=[])
    proto = case.proto()
    (expected,) = case.expected(proto)
    (actual,) = pf.run(proto, case.fed, backend=backend, ctx=backend_context, strict=True).values()
    np.testing.assert_array_equal(actual, expected.reshape(-1, 3))
    assert actual.dtype == np.int64


def test_a_run_leaves_nothing_to_the_next(backend: str, backend_context: Any) -> None:
    """With an odd number of blocks, and with an even one."""
    for boxes in (70, 150):
        cases = [nms(boxes=boxes, most=40) for _ in range(2)]
        with pf.Worker(pf.load(cases[0].proto()), backend, backend_context, strict=True) as worker:
            for case in (*cases, *cases):
                made = worker.schedule(case.fed).peek_output().download_to_array()
                np.testing.assert_array_equal(made, case.expected(case.proto())[0])


def test_without_a_limit_nothing_is_chosen(backend: str, backend_context: Any) -> None:
    case = Case("", "NonMaxSuppression", nms().inputs[:2], constants=[])
    (actual,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context, strict=True).values()
    assert actual.shape == (0, 3)


def test_without_a_threshold_nothing_may_overlap(backend: str, backend_context: Any) -> None:
    """The reference needs an explicit threshold."""
    given = nms(overlap=0.0, least=None)
    want = ReferenceEvaluator(given.proto()).run(None, given.fed)[0]
    for inputs in (given.inputs[:3], [*given.inputs[:3], np.zeros(0, np.float32), np.zeros(0, np.float32)]):
        case = Case("", "NonMaxSuppression", inputs, constants=[])
        (made,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context, strict=True).values()
        np.testing.assert_array_equal(made, want)


def test_the_limit_may_change_from_run_to_run(backend: str, backend_context: Any) -> None:
    case = nms(boxes=60, overlap=0.9)
    fed = case.fed
    with pf.Worker(pf.load(case.proto()), backend, backend_context, strict=True) as worker:
        for most in (3, 0, 50, 3):
            made = worker.schedule(fed | {"x2": np.array([most], np.int64)}).peek_output().download_to_array()
            assert np.all(np.bincount(made[:, 1], minlength=2) <= most) and bool(len(made)) == bool(most)


def test_the_limit_may_be_computed(backend: str, backend_context: Any) -> None:
    """Half of a number that is an input: the plan knows it before it runs."""
    proto = nms().proto()
    proto.graph.node[0].input[2] = "half"
    divide = helper.make_node("Div", ["x2", "two"], ["half"])
    nodes = [helper.make_node("Constant", [], ["two"], value_ints=[2]), divide, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    fed = nms().fed | {"x2": np.array([8], np.int64)}
    want = ReferenceEvaluator(proto).run(None, fed)[0]
    made = pf.run(proto, fed, backend=backend, ctx=backend_context, strict=True)["y0"]
    np.testing.assert_array_equal(made, want)


def test_what_is_no_number_is_never_chosen(backend: str, backend_context: Any) -> None:
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]]], np.float32)
    scores = np.array([[[np.nan, -np.inf, 0.5, np.inf]]], np.float32)
    most = np.array([9], np.int64)
    case = Case("", "NonMaxSuppression", [boxes, scores, most], constants=[])
    (actual,) = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context, strict=True).values()
    assert actual[:, 2].tolist() == [3, 2, 1]


def _apart(boxes: int, groups: int) -> Any:
    """Boxes of several classes, moved apart as detectors do before they suppress all at once."""
    low = draw(boxes, 2, low=0, high=300)
    corners = np.concatenate([low, low + draw(boxes, 2, low=1, high=120)], axis=1)
    return (corners + 421 * (np.arange(boxes) % groups)[:, None]).astype(np.float32)


def _tall(boxes: int) -> Any:
    """Boxes that reach through all cells."""
    corners = _apart(boxes, 1)
    corners[::2, 2] += 300
    return corners


def _with_odd_values(boxes: int) -> Any:
    """Boxes without ends, without an area, and with NaN."""
    corners = _apart(boxes, 3)
    for first, value in enumerate((np.nan, np.inf, -np.inf, 0)):
        corners[first::97, first % 2] = value
    corners[5::100, 2:] = corners[5::100, :2]
    return corners


@pytest.mark.parametrize("boxes", [700, 3001])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy says what NaN does
@pytest.mark.parametrize("make", [partial(_apart, groups=9), _tall, _with_odd_values])
def test_many_boxes_in_cells(boxes: int, make: Any) -> None:
    """More boxes than one cell takes: the choice is that of the definition, which compares all pairs."""
    corners, scores = make(boxes)[None], draw(1, 1, boxes, low=0, high=1)
    limits = np.array([boxes], np.int64), np.array([0.45], np.float32), np.array([0.1], np.float32)
    form = Suppression(1, 1, boxes, boxes, False)
    (expected,) = compute(None, form, [corners, scores, *limits], [])  # type: ignore[arg-type]
    proto = Case("many", "NonMaxSuppression", [corners, scores, *limits], {}, constants=[]).proto()
    names = [value.name for value in proto.graph.input]
    fed = dict(zip(names, (corners, scores, *limits), strict=True))
    (actual,) = pf.run(proto, fed, strict=True).values()
    np.testing.assert_array_equal(actual, expected[0, 0][expected[0, 0, :, 0] >= 0])
