"""Tracks of scenes whose truth is known, and regions that follow on each backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError

RATE = 30.0


def boxes_of(centers: Any, size: float = 40.0) -> Any:
    centers = np.asarray(centers, np.float64)
    return np.concatenate([centers - size / 2, centers + size / 2], 1)


class Scene:
    """Boxes that move evenly, in a random order and with jitter; each may be hidden for some frames."""

    def __init__(self, begins: Any, velocities: Any, jitter: float = 0.0, seed: int = 0) -> None:
        self.begins, self.velocities, self.jitter = np.asarray(begins, float), np.asarray(velocities, float), jitter
        self.random = np.random.default_rng(seed)

    def truth(self, time: float) -> Any:
        return boxes_of(self.begins + self.velocities * time)

    def seen(self, time: float, shown: Any = None) -> tuple[Any, Any]:
        """Boxes as a detector finds them, and whose they are."""
        whose = np.arange(len(self.begins)) if shown is None else np.flatnonzero(shown)
        whose = self.random.permutation(whose)
        return self.truth(time)[whose] + self.random.normal(0, self.jitter, (len(whose), 4)), whose


def test_separated_boxes_keep_their_ids_in_any_order() -> None:
    begins = [(100 * (k % 4), 120 * (k // 4)) for k in range(12)]
    velocities = np.random.default_rng(1).uniform(-20, 20, (12, 2))
    scene, tracker, owner = Scene(begins, velocities, jitter=1.0), pf.vision.Tracker(), dict[int, int]()
    for frame in range(60):
        boxes, whose = scene.seen(frame / RATE)
        tracks = tracker.update(boxes, time=frame / RATE, frame=frame)
        assert len(tracks) == 12 and tracks.frame == frame and tracks.time == frame / RATE
        for number, row in zip(tracks.ids.tolist(), tracks.rows.tolist(), strict=True):
            assert owner.setdefault(number, whose[row]) == whose[row]
    assert sorted(owner) == list(range(12))


def test_boxes_that_cross_keep_their_ids() -> None:
    scene = Scene([(0, 0), (200, 10), (100, -112)], [(100, 0), (-100, 0), (0, 100)])
    tracker, owner = pf.vision.Tracker(), dict[int, int]()
    for frame in range(60):
        boxes, whose = scene.seen(frame / RATE)
        tracks = tracker.update(boxes, time=frame / RATE)
        for number, row in zip(tracks.ids.tolist(), tracks.rows.tolist(), strict=True):
            assert owner.setdefault(number, whose[row]) == whose[row]
    assert len(owner) == 3


def test_a_hidden_box_moves_on_and_is_found_again() -> None:
    scene, tracker = Scene([(0, 0), (0, 300)], [(240, 0), (240, 0)]), pf.vision.Tracker(lost_after=0.5)
    for frame in range(60):
        hidden = 30 <= frame < 42  # 96 pixels: more than twice its width
        boxes, _ = scene.seen(frame / RATE, [not hidden, True])
        tracks = tracker.update(boxes, time=frame / RATE)
        assert sorted(tracks.ids) == [0, 1] and np.count_nonzero(tracks.rows == -1) == hidden
        if hidden:
            np.testing.assert_allclose(np.sort(tracks.boxes, 0), np.sort(scene.truth(frame / RATE), 0), atol=1.0)
    still = pf.vision.Tracker(lost_after=0.5, motion="none")
    for frame in range(60):
        still.update(scene.seen(frame / RATE, [not 30 <= frame < 42, True])[0], time=frame / RATE)
    assert 0 not in still.tracks.ids or 1 not in still.tracks.ids


def test_a_track_that_is_lost_for_too_long_ends_and_its_id_does_not_come_back() -> None:
    tracker, box = pf.vision.Tracker(lost_after=0.2), boxes_of([(50, 50)])
    assert tracker.update(box, time=0.0).ids.tolist() == [0]
    assert tracker.update(np.zeros((0, 4)), time=0.2).ids.tolist() == [0]
    assert tracker.update([], time=0.21).ids.tolist() == []
    assert tracker.update(box, time=0.3).ids.tolist() == [1]
    tracker.reset()
    assert tracker.update(box, time=0.0).ids.tolist() == [2]


def test_things_enter_and_leave() -> None:
    scene = Scene([(0, 0), (100, 0), (200, 0)], np.zeros((3, 2)))
    tracker, alive = pf.vision.Tracker(lost_after=0.1), []
    for frame in range(40):
        boxes, _ = scene.seen(frame / RATE, [frame < 20, frame >= 10, True])
        alive.append(tracker.update(boxes, time=frame / RATE).ids.tolist())
    assert [len(ids) for ids in alive[::9]] == [2, 2, 3, 2, 2]
    assert len({number for ids in alive for number in ids}) == 3


def test_the_prediction_of_an_even_motion_is_off_by_less_than_a_pixel() -> None:
    scene, tracker = Scene([(0, 0), (0, 200)], [(150, 20), (-90, 60)]), pf.vision.Tracker()
    random, time = np.random.default_rng(2), 0.0
    for _ in range(20):
        time += float(random.uniform(0.01, 0.06))
        boxes, _ = scene.seen(time)
        tracks = tracker.update(boxes, time=time)
    predicted, order = tracks.at(time + 0.1), np.argsort(tracks.boxes[:, 1])
    np.testing.assert_allclose(predicted[order], scene.truth(time + 0.1), atol=1.0)
    assert np.abs(tracks.boxes[order] - scene.truth(time + 0.1)).max() > 9  # the last boxes would lag
    np.testing.assert_allclose(tracks.velocities[order][:, :2], scene.velocities, atol=2.0)


def test_a_kalman_filter_reduces_jitter() -> None:
    scene, tracker, errors = Scene([(100, 100)], [(0, 0)], jitter=2.0), pf.vision.Tracker(), []
    for frame in range(300):
        boxes, _ = scene.seen(frame / RATE)
        errors.append((tracker.update(boxes, time=frame / RATE).boxes - scene.truth(0), boxes - scene.truth(0)))
    smooth, given = (np.std([pair[k] for pair in errors[30:]]) for k in range(2))
    assert smooth < 0.75 * given


def test_the_largest_overlap_wins() -> None:
    tracker = pf.vision.Tracker()
    tracker.update(boxes_of([(0, 0), (20, 0)]), time=0)
    tracks = tracker.update(boxes_of([(18, 0), (9, 0)]), time=0.0)
    assert tracks.rows.tolist() == [1, 0] and tracks.ids.tolist() == [0, 1]


def test_boxes_that_do_not_count() -> None:
    boxes = boxes_of([(0, 0), (100, 0), (200, 0), (300, 0)])
    boxes[1, 0], boxes[2, 3] = np.nan, np.inf
    tracks = pf.vision.Tracker(threshold=0.4).update(boxes, [0.9, 0.9, 0.9, 0.4], time=0)
    assert tracks.rows.tolist() == [0] and tracks.scores.tolist() == [0.9]


def test_a_box_that_shrinks_ends_as_a_point() -> None:
    tracker = pf.vision.Tracker()
    for frame in range(10):
        tracker.update(boxes_of([(0, 0)], 40 - 2 * frame), time=frame / RATE)
    left, top, right, bottom = tracker.tracks.at(5.0)[0]
    assert right >= left and bottom >= top


def test_the_loop_of_a_landmark_network_skips_the_detector_while_all_are_found() -> None:
    scene, tracker, detections = Scene([(0, 0), (0, 300)], [(60, 0), (30, 0)]), pf.vision.Tracker(), []
    for frame in range(90):
        time = frame / RATE
        if tracker.needs_detection(time, wanted=2, max_age=1.01):
            detections.append(frame)
            tracker.update(scene.seen(time)[0], time=time, frame=frame)
        else:
            ids = tracker.tracks.ids
            order = np.argsort(tracker.tracks.boxes[:, 1])
            landmarks = np.empty((2, 4))
            landmarks[order] = scene.truth(time)
            tracker.move(ids, landmarks, [0.9, 0.2 if frame == 50 else 0.9], time=time, frame=frame)
    assert detections == [0, 31, 51, 82]
    assert tracker.tracks.ids.tolist() == [0, 1]


def test_rows_of_tracks_that_have_ended_do_not_count() -> None:
    tracker = pf.vision.Tracker()
    tracker.update(boxes_of([(0, 0), (100, 0)]), time=0)
    tracks = tracker.move([7, 1], boxes_of([(500, 0), (104, 0)]), time=0.1)
    assert tracks.ids.tolist() == [0, 1] and tracks.rows.tolist() == [-1, 1]
    assert abs(tracks.boxes[1, 0] - 84) < 0.5
    assert tracker.needs_detection(0.1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pf.vision.Tracker(overlap=1), "overlap is a number"),
        (lambda: pf.vision.Tracker(threshold=np.nan), "threshold is a finite"),
        (lambda: pf.vision.Tracker(lost_after=-1), "lost_after is a number of seconds"),
        (lambda: pf.vision.Tracker(motion="sort"), "motion is one of kalman, none"),  # type: ignore[arg-type]
        (lambda: pf.vision.Tracker().update(np.zeros((1, 2, 4)), time=0), r"not \(1, 2, 4\) and \(1,\): for one"),
        (lambda: pf.vision.Tracker().update(np.zeros((2, 4)), [1.0], time=0), "scores n"),
        (lambda: pf.vision.Tracker().update([["a"] * 4], time=0), "are numbers"),
        (lambda: pf.vision.Tracker().update([], time=np.nan), "time is that of the picture"),
        (lambda: pf.vision.Tracker().move([0.5], np.zeros((1, 4)), time=0), "ids are integers"),
        (lambda: pf.vision.Tracker().move([0, 1], np.zeros((1, 4)), time=0), "one for each box"),
    ],
)
def test_what_is_no_track(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def test_time_does_not_go_back() -> None:
    tracker = pf.vision.Tracker()
    tracker.update([], time=1.0)
    with pytest.raises(InputError, match="not before the last one"):
        tracker.update([], time=0.9)


# --- regions that follow on the device ---


def followed(regions: Any, scores: Any, found: Any, found_scores: Any) -> tuple[Any, Any]:
    """`follow_regions`, row by row."""

    def box(region: Any) -> Any:
        return (
            region if len(region) == 4 else np.concatenate([region[:2] - region[2:4] / 2, region[:2] + region[2:4] / 2])
        )

    def overlap(a: Any, b: Any) -> float:
        sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
        return float(sides.prod() / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - sides.prod()))

    stays = [region for region, score in zip(regions, scores, strict=True) if score > 0.5]
    fresh = [
        region
        for region, score in zip(found, found_scores, strict=True)
        if score > 0.5 and not any(overlap(box(region), box(other)) > 0.3 for other in stays)
    ]
    rows = [
        region if score > 0.5 else (fresh.pop(0) if fresh else np.zeros_like(region))
        for region, score in zip(regions, scores, strict=True)
    ]
    return np.stack(rows), (scores > 0.5).astype(np.float32)


@pytest.mark.parametrize("numbers", [4, 5])
@pytest.mark.parametrize("counts", [(3, 5), (6, 2), (1, 1)], ids=str)
def test_regions_follow(backend: str, backend_context: Any, numbers: int, counts: tuple[int, int]) -> None:
    graph = pf.FunctionalGraph()
    inputs = [
        graph.add_input("float32", (counts[k], *tail), name)
        for name, k, tail in (("regions", 0, (numbers,)), ("scores", 0, ()), ("found", 1, (numbers,)), ("sure", 1, ()))
    ]
    regions, kept = pf.vision.follow_regions(*inputs)
    model, random = graph.compile(chosen=regions, kept=kept), np.random.default_rng(4)
    with pf.Worker(model, backend, backend_context, strict=True) as worker:  # type: ignore[arg-type]
        for _ in range(12):
            places = [
                random.choice([0, 50, 100, 150], (count, 2)) + random.normal(0, 2, (count, 2)) for count in counts
            ]
            rows = [
                boxes_of(at) if numbers == 4 else np.concatenate([at, np.full((len(at), 3), (40, 40, 0.3))], 1)
                for at in places
            ]
            values = [random.uniform(0, 1, count) for count in counts]
            given = [each.astype(np.float32) for each in (rows[0], values[0], rows[1], values[1])]
            worker.schedule(dict(zip(("regions", "scores", "found", "sure"), given, strict=True)))
            wanted = followed(*given)
            np.testing.assert_array_equal(worker.peek_output("chosen").numpy(), wanted[0])
            np.testing.assert_array_equal(worker.peek_output("kept").numpy(), wanted[1])


def test_nan_in_a_row_that_is_not_chosen_stays_there(backend: str, backend_context: Any) -> None:
    graph = pf.FunctionalGraph()
    found = graph.add_input("float32", (2, 4), "found")
    regions, _ = pf.vision.follow_regions(
        np.full((1, 4), np.nan, np.float32), np.zeros(1, np.float32), found, [0.0, 1.0]
    )
    rows = np.array([[np.nan] * 4, [1, 2, 3, 4]], np.float32)
    made = pf.run(graph.compile(regions=regions), {"found": rows}, backend=backend, ctx=backend_context)  # type: ignore[arg-type]
    np.testing.assert_array_equal(made["regions"], [[1, 2, 3, 4]])


@pytest.mark.parametrize("shapes", [((3, 4), (3, 5)), ((3, 6), (3, 6)), ((4,), (3, 4))], ids=str)
def test_what_is_no_region(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputError, match="regions and found are n x 4"):
        pf.vision.follow_regions(np.zeros(shapes[0]), np.zeros(3), np.zeros(shapes[1]), np.zeros(3))
