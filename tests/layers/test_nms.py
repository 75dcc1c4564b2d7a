"""Boxes of which those that overlap a better one are left out: limits, thresholds, formats, ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from layers.runner import Case, Draw

draw = Draw(43)


def nms(
    batch: int = 1, classes: int = 2, boxes: int = 30, most: Any = 9, overlap: Any = 0.5, least: Any = 0.2, **more: Any
) -> Case:
    corners = draw(batch, boxes, 4, low=0, high=1)
    scores = np.round(draw(batch, classes, boxes, low=0, high=1), 1)  # some are equal
    numbers = [None if most is None else np.array([most], np.int64)]
    numbers += [None if value is None else np.array([value], np.float32) for value in (overlap, least)]
    name = f"{batch} {classes} {boxes} {most} {overlap} {least} {more}"
    return Case(name, "NonMaxSuppression", [corners, scores, *numbers], more, constants=[], gl=False)


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
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nms(case: Case, backend: str, backend_context: Any) -> None:
    inputs = list(case.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    case = Case(case.name, case.op, inputs, case.attributes, constants=[])
    proto = case.proto()
    (expected,) = case.expected(proto)
    (actual,) = pf.run(proto, case.fed, backend=backend, ctx=backend_context).values()
    np.testing.assert_array_equal(actual, expected.reshape(-1, 3))


def test_without_a_limit_nothing_is_chosen() -> None:
    case = Case("", "NonMaxSuppression", nms().inputs[:2], constants=[])
    (actual,) = pf.run(case.proto(), case.fed).values()
    assert actual.shape == (0, 3)
