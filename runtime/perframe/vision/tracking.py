"""Tracks: boxes that keep their ids from frame to frame, and move on between two detections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import isfinite
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe.errors import InputError

Array = NDArray[Any]
Box = tuple[float, float, float, float]
Motion = Literal["kalman", "none"]

_MEASURED = 0.03**2  # the variance of a measured side, where a box's size is 1
_ACCELERATION = 2.0**2  # that of the acceleration, in sizes / s²
_UNKNOWN = 30.0**2  # that of the velocity of a new track, in sizes / s
_NOT_FOUND = -1


class _Later(NamedTuple):
    """A later time in seconds, the seconds until then, and what accelerations meanwhile add to the covariances."""

    time: float
    elapsed: float
    place_variance: float
    covariance: float
    velocity_variance: float


class _Track(NamedTuple):
    """One track, in plain numbers: for ten tracks, NumPy's calls would take longer than the arithmetic.

    The four sides of a box share the variances of place and velocity, and their covariance, because all are measured
    equally precisely. The unit of length is the size of the box, which cancels in the gains.
    """

    id: int
    row: int
    score: float
    last_seen: float
    box: Box
    velocity: Box = (0.0, 0.0, 0.0, 0.0)
    place_variance: float = _MEASURED
    covariance: float = 0.0
    velocity_variance: float = _UNKNOWN

    def at(self, seconds: float) -> Box:
        """The box some seconds later. One that shrinks ends as a point."""
        (left, top, right, bottom), (a, b, c, d) = self.box, self.velocity
        left, top, right, bottom = left + a * seconds, top + b * seconds, right + c * seconds, bottom + d * seconds
        return left, top, right if right > left else left, bottom if bottom > top else top

    def unseen(self, box: Box, later: _Later) -> _Track:
        """The track at a later time, predicted to be at `box` and not found."""
        covariances = self._covariances(later)
        return _Track(self.id, _NOT_FOUND, self.score, self.last_seen, box, self.velocity, *covariances)

    def seen(self, box: Box, later: _Later, row: int, score: float, measured: Box) -> _Track:
        """The track at a later time, moved from the predicted box to a measured one by the gains of a Kalman filter."""
        place, both, speed = self._covariances(later)
        gain, turn = place / (place + _MEASURED), both / (place + _MEASURED)
        (left, top, right, bottom), (a, b, c, d) = box, self.velocity
        w, x, y, z = measured[0] - left, measured[1] - top, measured[2] - right, measured[3] - bottom
        return _Track(
            self.id,
            row,
            score,
            later.time,
            (left + gain * w, top + gain * x, right + gain * y, bottom + gain * z),
            (a + turn * w, b + turn * x, c + turn * y, d + turn * z),
            place - gain * place,
            both - gain * both,
            speed - turn * both,
        )

    def _covariances(self, later: _Later) -> tuple[float, float, float]:
        """The variances of place and velocity at a later time, and between them their covariance."""
        t, covariance, variance = later.elapsed, self.covariance, self.velocity_variance
        return (
            self.place_variance + t * (2 * covariance + t * variance) + later.place_variance,
            covariance + t * variance + later.covariance,
            variance + later.velocity_variance,
        )


class Tracks:
    """The tracks of one moment, the oldest first. They stay unchanged when the tracker is updated.

    `frame` and `time` are the number and the time, in seconds, of the picture of the last update.
    """

    def __init__(self, tracks: Sequence[_Track] = (), frame: int = 0, time: float = -math.inf) -> None:
        self._tracks, self.frame, self.time = tracks, frame, time

    def __len__(self) -> int:
        return len(self._tracks)

    def __repr__(self) -> str:
        return f"Tracks(ids={self.ids.tolist()}, frame={self.frame}, time={self.time:g})"

    @property
    def ids(self) -> Array:
        """The ids: n, int64. A track keeps its id, and no later track gets it."""
        return np.array([track.id for track in self._tracks], np.int64)

    @property
    def boxes(self) -> Array:
        """Left, top, right and bottom at `time`: n x 4, float64."""
        return _rows([track.box for track in self._tracks])

    @property
    def velocities(self) -> Array:
        """The velocities of the boxes' sides, in pixels a second: n x 4, float64."""
        return _rows([track.velocity for track in self._tracks])

    @property
    def scores(self) -> Array:
        """The scores of the last measurements: n, float64."""
        return np.array([track.score for track in self._tracks])

    @property
    def rows(self) -> Array:
        """The rows of the last update in which the tracks were found: n, int64. -1 for one that was not found."""
        return np.array([track.row for track in self._tracks], np.int64)

    @property
    def last_seen(self) -> Array:
        """The times of the last measurements, in seconds: n, float64."""
        return np.array([track.last_seen for track in self._tracks])

    def at(self, time: float) -> Array:
        """The boxes at another time, in seconds: n x 4. So an overlay does not lag behind the current frame."""
        return _rows([track.at(time - self.time) for track in self._tracks])


class Tracker:
    """Joins the boxes of consecutive pictures to tracks. It runs on the CPU, on the arrays of a readback.

    A box continues the track whose predicted box it overlaps most, if the overlap (intersection over union) is above
    `overlap`. Pairs are matched greedily, the largest overlap first: unlike an optimal assignment, this never breaks a
    good match to make a poor one, and it takes microseconds. Boxes whose score is not above `threshold` do not count.

    A track that is not found moves on for `lost_after` seconds, and then ends. `motion` is "kalman", a Kalman filter of
    constant velocity (as in SORT: Bewley et al., 2016), or "none": a box stays where it was seen. Raises InputError.
    """

    def __init__(
        self, *, overlap: float = 0.3, threshold: float = 0.5, lost_after: float = 0.5, motion: Motion = "kalman"
    ) -> None:
        if not 0 <= overlap < 1:
            raise InputError(f"overlap is a number from 0 to below 1, not {overlap!r}")
        if not isfinite(threshold):
            raise InputError(f"threshold is a finite number, not {threshold!r}")
        if not lost_after >= 0:
            raise InputError(f"lost_after is a number of seconds from 0, not {lost_after!r}")
        if motion not in get_args(Motion):
            raise InputError(f"motion is one of {', '.join(get_args(Motion))}, not {motion!r}")
        self._overlap, self._threshold, self._lost_after = overlap, threshold, lost_after
        self._filters = motion == "kalman"
        self._next_id, self._detected, self._tracks = 0, -math.inf, Tracks()

    @property
    def tracks(self) -> Tracks:
        """The tracks after the last update."""
        return self._tracks

    def update(self, boxes: ArrayLike, scores: ArrayLike | None = None, *, time: float, frame: int = 0) -> Tracks:
        """Match a detector's boxes with the tracks, and return the new tracks.

        `boxes` is n x 4: left, top, right and bottom; `scores` is n, by default all 1. `time` is that of the picture in
        seconds, and `frame` its number: for a readback those of the frame that requested it. Boxes with NaN or an
        infinity do not count. Raises InputError, also for a time before that of the last update.
        """
        given, values = _measured(boxes, scores)
        usable = [row for row, score in enumerate(values) if score > self._threshold and isfinite(sum(given[row]))]
        later = self._later(time)
        boxes = [track.at(later.elapsed) for track in self._tracks._tracks]
        matches = _matches(boxes, [given[row] for row in usable], self._overlap)
        found = [usable[index] if index != _NOT_FOUND else _NOT_FOUND for index in matches]
        tracks = self._continued(later, boxes, found, given, values)
        for row in sorted(set(usable).difference(found)):
            tracks.append(_Track(self._next_id, row, values[row], time, given[row]))
            self._next_id += 1
        self._tracks, self._detected = Tracks(tracks, frame, time), time
        return self._tracks

    def move(
        self, ids: ArrayLike, boxes: ArrayLike, scores: ArrayLike | None = None, *, time: float, frame: int = 0
    ) -> Tracks:
        """Move known tracks without matching, to the regions that a landmark network found for them.

        `ids` are those of the tracks that the rows belong to; rows of tracks that have ended do not count. A track
        without a row, or whose score is not above the threshold, is not found. The other arguments, and errors, are
        those of `update`.
        """
        given, values = _measured(boxes, scores)
        named = np.asarray(ids)
        if named.shape != (len(given),) or (given and named.dtype.kind not in "iu"):
            raise InputError(f"ids are integers, one for each box, not {named.dtype} {named.shape}")
        rows = {
            number: row
            for row, number in enumerate(named.tolist())
            if values[row] > self._threshold and isfinite(sum(given[row]))
        }
        later, tracks = self._later(time), self._tracks._tracks
        predicted = [track.at(later.elapsed) for track in tracks]
        found = [rows.get(track.id, _NOT_FOUND) for track in tracks]
        self._tracks = Tracks(self._continued(later, predicted, found, given, values), frame, time)
        return self._tracks

    def needs_detection(self, time: float, *, wanted: int = 1, max_age: float = math.inf) -> bool:
        """Whether to run the detector: fewer tracks than wanted, one was not found, or the last detection is old.

        `max_age` is in seconds. Without it, what comes into the picture while `wanted` tracks are found is not seen.
        """
        tracks = self._tracks._tracks
        old = time - self._detected > max_age
        return len(tracks) < wanted or old or any(track.row == _NOT_FOUND for track in tracks)

    def reset(self) -> None:
        """End all tracks. Their ids are not used again."""
        self._tracks, self._detected = Tracks(), -math.inf

    def _later(self, time: float) -> _Later:
        """A time that is not before that of the last update. Raises InputError."""
        before = self._tracks
        if not isfinite(time) or time < before.time:
            raise InputError(f"time is that of the picture, in seconds, and not before the last one; not {time!r}")
        t = time - before.time if before._tracks else 0.0
        return _Later(time, t, _ACCELERATION * t**4 / 4, _ACCELERATION * t**3 / 2, _ACCELERATION * t * t)

    def _continued(
        self,
        later: _Later,
        predicted: Sequence[Box],
        found: Sequence[int],
        boxes: Sequence[Box],
        scores: Sequence[float],
    ) -> list[_Track]:
        """The tracks, moved to the rows that they were found in, -1 for none; without those lost for too long."""
        alive = []
        for track, box, row in zip(self._tracks._tracks, predicted, found, strict=True):
            if row == _NOT_FOUND:
                if later.time - track.last_seen <= self._lost_after:
                    alive.append(track.unseen(box, later))
            elif self._filters:
                alive.append(track.seen(box, later, row, scores[row], boxes[row]))
            else:
                alive.append(_Track(track.id, row, scores[row], later.time, boxes[row]))
        return alive


def _measured(boxes: ArrayLike, scores: ArrayLike | None) -> tuple[list[Box], list[float]]:
    """Boxes and scores as plain numbers. Raises InputError."""
    try:
        given = np.asarray(boxes, np.float64)
        values = np.ones(len(given)) if scores is None else np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"boxes and scores are numbers, not {boxes!r:.80} and {scores!r:.80}") from None
    if given.shape == (0,):
        given = given.reshape(0, 4)
    if given.ndim != 2 or given.shape[1] != 4 or values.shape != given.shape[:1]:
        raise InputError(
            f"boxes are n x 4 (left, top, right, bottom) and scores n, not {given.shape} and {values.shape}: for one "
            "picture of a batch, take boxes[0] and scores[0]"
        )
    return given.tolist(), values.tolist()


def _matches(tracks: Sequence[Box], boxes: Sequence[Box], least: float) -> list[int]:
    """The index of a box for each track's box, -1 for none. The largest overlaps are matched first."""
    ranked = []
    sides = sorted((*box, place) for place, box in enumerate(tracks))
    for index, (left, top, right, bottom) in enumerate(boxes):
        area = (right - left) * (bottom - top)
        for a, b, c, d, place in sides:
            if a >= right:  # so are those of all boxes behind it
                break
            if left < c and b < bottom and top < d:
                common = (min(c, right) - max(a, left)) * (min(d, bottom) - max(b, top))
                overlap = common / ((c - a) * (d - b) + area - common)
                if overlap > least:
                    ranked.append((-overlap, place, index))
    found, used = [_NOT_FOUND] * len(tracks), set[int]()
    for _, place, index in sorted(ranked):
        if found[place] == _NOT_FOUND and index not in used:
            found[place] = index
            used.add(index)
    return found


def _rows(boxes: Sequence[Box]) -> Array:
    return np.array(boxes, np.float64).reshape(-1, 4)
