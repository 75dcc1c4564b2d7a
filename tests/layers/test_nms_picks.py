"""PickBoxes chooses a fixed number of boxes that come in order, and tells to which one each box belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends.cpu.families.nms import compute
from perframe.layers.nms import Picking
from perframe.testing import Draw

draw = Draw(44)


def overlap(a: Any, b: Any) -> float:
    """Common area / area of both."""
    width, height = (max(min(a[i + 2], b[i + 2]) - max(a[i], b[i]), 0) for i in range(2))
    common = width * height
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / both if common else 0.0


def expected(boxes: Any, scores: Any, classes: Any, count: int, most: float, least: float) -> tuple[Any, Any]:
    """The picks and owners, box by box."""
    picks = np.full((len(boxes), count), -1)
    owners = np.full(scores.shape, -1)
    for batch, row in enumerate(boxes):
        chosen: list[int] = []
        for j, box in enumerate(row):
            if not scores[batch, j] > least:
                continue
            for pick, i in enumerate(chosen):
                if (classes is None or classes[batch, i] == classes[batch, j]) and overlap(row[i], box) > most:
                    owners[batch, j] = pick
                    break
            else:
                if len(chosen) < count:
                    owners[batch, j] = len(chosen)
                    chosen.append(j)
        picks[batch, : len(chosen)] = chosen
    return picks, owners


def drawn(batch: int, many: int, labels: int) -> tuple[Any, Any, Any]:
    """Boxes, scores in order (some equal), and classes."""
    corners = draw(batch, many, 2, low=0, high=3)
    boxes = np.concatenate([corners, corners + draw(batch, many, 2, low=0.2, high=1)], -1).astype(np.float32)
    scores = -np.sort(-np.round(draw(batch, many, low=0, high=1), 1)).astype(np.float32)
    return boxes, scores, np.round(draw(batch, many, low=0, high=labels)).astype(np.int64)


def made(boxes: Any, scores: Any, classes: Any, backend: str, context: Any, **settings: Any) -> list[Any]:
    graph = pf.FunctionalGraph()
    given = [value for value in (boxes, scores, classes) if value is not None]
    inputs = [graph.add_input(str(value.dtype), value.shape) for value in given]
    picks, owners = pf.functional.apply("PickBoxes", *inputs, **settings)
    fed = {x.name: value for x, value in zip(inputs, given, strict=True)}
    return list(pf.run(graph.compile(picks, owners), fed, backend=backend, ctx=context, strict=True).values())


@pytest.mark.parametrize(
    ("batch", "many", "labels", "count", "most", "least"),
    [
        (1, 40, 0, 10, 0.3, 0.2),
        (3, 37, 4, 9, 0.1, 0.5),
        (2, 129, 2, 200, 0.5, 0.0),
        (1, 1, 0, 3, 0.5, 0.5),
        (1, 1024, 0, 33, 0.6, -1.0),
        (2, 400, 0, 300, 0.4, 0.0),  # picks in each of a row's texels of bits
        (2, 260, 0, 7, 0.05, 2.0),
        (0, 5, 0, 2, 0.5, 0.0),
        (1, 0, 0, 2, 0.5, 0.0),
    ],
)
def test_picks_are_those_of_a_loop(
    batch: int, many: int, labels: int, count: int, most: float, least: float, backend: str, backend_context: Any
) -> None:
    boxes, scores, classes = drawn(batch, many, max(labels, 1))
    classes = classes if labels else None
    settings = {"picks": count, "iou_threshold": most, "score_threshold": least}
    picks, owners = made(boxes, scores, classes, backend, backend_context, **settings)
    wanted = expected(boxes, scores, classes, count, most, least)
    np.testing.assert_array_equal(picks, wanted[0])
    np.testing.assert_array_equal(owners, wanted[1])
    assert picks.dtype == owners.dtype == np.int64


def test_picks_alone(backend: str, backend_context: Any) -> None:
    """Without the second output, as best_boxes wants it."""
    boxes, scores, _ = drawn(2, 50, 1)
    graph = pf.FunctionalGraph()
    inputs = [graph.add_input("float32", value.shape, name) for name, value in (("b", boxes), ("s", scores))]
    picks, _ = pf.functional.apply("PickBoxes", *inputs, picks=8)
    fed = {"b": boxes, "s": scores}
    (found,) = pf.run(graph.compile(picks), fed, backend=backend, ctx=backend_context, strict=True).values()
    np.testing.assert_array_equal(found, expected(boxes, scores, None, 8, 0.5, 0.0)[0])


def test_numpy_agrees() -> None:
    """The CPU's reference, which runs until the kernel is compiled."""
    boxes, scores, classes = drawn(2, 60, 3)
    layer: Any = None
    found = compute(layer, Picking(2, 60, 12, 0.2, 0.3), [boxes, scores, classes], [])
    for one, other in zip(found, expected(boxes, scores, classes, 12, 0.2, 0.3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_that_are_no_numbers_are_no_candidates(backend: str, backend_context: Any) -> None:
    boxes, scores, _ = drawn(1, 20, 1)
    scores[0, :3] = np.nan
    picks, owners = made(boxes, scores, None, backend, backend_context, picks=30)
    wanted = expected(boxes, scores, None, 30, 0.5, 0.0)
    np.testing.assert_array_equal(picks, wanted[0])
    np.testing.assert_array_equal(owners, wanted[1])


@pytest.mark.parametrize(
    ("shapes", "count"),
    [([(2, 5), (2, 5)], 1), ([(1, 5, 4), (5,)], 1), ([(1, 5, 4), (1, 6)], 1), ([(1, 5, 4), (1, 5)], 0)],
)
def test_what_does_not_fit_is_an_error(shapes: list[tuple[int, ...]], count: int) -> None:
    arrays = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(pf.PerframeError):
        made(arrays[0], arrays[1], None, "cpu", None, picks=count)
