"""Suppression to a fixed number of rows is greedy suppression, and blending is MediaPipe's weighted suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Draw
from perframe.vision import BestBoxes, Detections, best_boxes
from vision.greedy import suppressed
from vision.running import close, run

draw = Draw(72)


def check(
    given: dict[str, Any], backend: str, ctx: Any, count: int, iou: float = 0.5, least: float = 0.0, **more: Any
) -> BestBoxes:
    def make(**named: Any) -> BestBoxes:
        return best_boxes(Detections(**named), count, iou_threshold=iou, score_threshold=least, **more)

    made = run(make, given, backend, ctx)
    has_batch = given["scores"].ndim == 2
    blend, candidates = more.get("blend", False), more.get("candidates", 256)
    for row in range(len(given["scores"]) if has_batch else 1):
        one = {name: value[row] for name, value in given.items()} if has_batch else given
        wanted = suppressed(one, count, iou, least, blend, candidates)
        for found, expected in zip(made, wanted, strict=True):
            if expected is None:
                assert found is None
            else:
                assert found is not None
                close(found[row] if has_batch else found, expected)
    return BestBoxes(*made)  # type: ignore[arg-type]


def drawn(*shape: int, labels: int = 0, points: int = 0) -> dict[str, Any]:
    """Boxes of which many overlap, and scores of which some are equal."""
    corner = draw(*shape, 2, low=0, high=3)
    made = {"boxes": np.concatenate([corner, corner + draw(*shape, 2, low=0.3, high=1)], -1)}
    made["scores"] = np.round(draw(*shape, low=0, high=1), 2).astype(np.float32)
    if labels:
        made["classes"] = draw(*shape, low=0, high=labels - 1, dtype=np.int64)
    if points:
        made["points"] = draw(*shape, points, 2)
    return made


@pytest.mark.parametrize("blend", [False, True])
@pytest.mark.parametrize(
    ("shape", "labels", "points", "count", "iou", "least"),
    [
        ((60,), 0, 0, 12, 0.3, 0.4),
        ((3, 45), 3, 2, 9, 0.2, 0.1),
        ((7,), 0, 1, 20, 0.5, 0.0),
        ((1,), 2, 0, 3, 0.5, 0.0),
        ((1, 300), 0, 3, 40, 0.0, 0.2),
        ((2, 30), 0, 0, 4, 0.4, 5.0),
    ],
)
def test_boxes_are_those_of_a_loop(
    shape: tuple[int, ...],
    labels: int,
    points: int,
    count: int,
    iou: float,
    least: float,
    blend: bool,
    backend: str,
    backend_context: Any,
) -> None:
    given = drawn(*shape, labels=labels, points=points)
    check(given, backend, backend_context, count, iou, least, blend=blend)


def test_the_best_of_many(backend: str, backend_context: Any) -> None:
    check(drawn(8400, labels=20), backend, backend_context, 50, 0.45, 0.25, candidates=300)


def test_scores_that_are_no_numbers_and_boxes_without_end(backend: str, backend_context: Any) -> None:
    """They are no candidates, and leave no NaN where boxes are blended."""
    given = drawn(20, points=1)
    given["scores"][::3] = np.nan
    given["scores"][1], given["scores"][4] = -1, 0
    for name in ("boxes", "points"):
        given[name][[0, 3, 4]] = np.inf
    for blend in (False, True):
        made = check(given, backend, backend_context, 25, 0.2, blend=blend)
        assert np.isfinite(made.boxes).all() and 0 < made.found < 14  # type: ignore[call-overload, operator]


def test_of_equal_scores_the_first_box_stays(backend: str, backend_context: Any) -> None:
    given = {"boxes": np.tile(np.array([0, 0, 2, 2], np.float32), (5, 1)), "scores": np.full(5, 0.5, np.float32)}
    made = check(given, backend, backend_context, 2)
    np.testing.assert_array_equal(made.indices, [0, -1])  # type: ignore[call-overload]


def test_nothing_above_the_threshold(backend: str, backend_context: Any) -> None:
    made = check(drawn(2, 9, labels=2, points=2), backend, backend_context, 3, least=1.0, blend=True)
    np.testing.assert_array_equal(made.found, [0, 0])  # type: ignore[call-overload]


def test_a_number_of_boxes_that_is_known_when_the_model_runs(backend: str, backend_context: Any) -> None:
    graph = pf.FunctionalGraph()
    boxes, scores = graph.add_input("float32", ("n", 4), "boxes"), graph.add_input("float32", ("n",), "scores")
    best = best_boxes(Detections(boxes, scores), 6, iou_threshold=0.3, candidates=20)
    model = graph.compile(best=best.boxes, indices=best.indices)
    with pf.Worker(model, backend, backend_context, strict=True) as worker:  # type: ignore[arg-type]
        for many in (30, 3, 1500, 18, 1100):
            given = drawn(many)
            worker.schedule(given)
            wanted = suppressed(given, 6, 0.3, 0.0, False, 20)
            close(worker.peek_output("best").download_to_array(), wanted[0])
            close(worker.peek_output("indices").download_to_array(), wanted[4])


ROWS = np.zeros((5, 4), np.float32)


def test_numbers_of_numpy_are_numbers() -> None:
    best = best_boxes(Detections(ROWS, ROWS[:, 0]), np.int64(3), candidates=np.int32(4))  # type: ignore[arg-type]
    assert best.boxes.shape[0] == 3
    with pytest.raises(pf.InputError, match="count"):
        best_boxes(Detections(ROWS, ROWS[:, 0]), True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("detections", "settings", "said"),
    [
        (Detections(ROWS, ROWS[:, 0]), {"count": 0}, "count"),  # type: ignore[arg-type]
        (Detections(ROWS, ROWS[:, 0]), {"count": 1, "candidates": 2000}, "1 to 1024"),  # type: ignore[arg-type]
        (Detections(ROWS, ROWS[:, 0]), {"count": 1, "iou_threshold": 1.5}, "share"),  # type: ignore[arg-type]
        (Detections(ROWS, ROWS[:, 0]), {"count": 1, "score_threshold": np.nan}, "NaN"),  # type: ignore[arg-type]
        (Detections(ROWS, ROWS), {"count": 1}, "scores one a box"),  # type: ignore[arg-type]
        (Detections(ROWS, ROWS[:3, 0]), {"count": 1}, "scores one a box"),  # type: ignore[arg-type]
        (Detections(ROWS[:0], ROWS[:0, 0]), {"count": 1}, "no box"),  # type: ignore[arg-type]
        (Detections(ROWS[:, :3], ROWS[:, 0]), {"count": 1}, "boxes has 4"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_an_error(detections: Detections, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(pf.InputError, match=said):
        best_boxes(detections, **settings)
