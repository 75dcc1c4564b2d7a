"""Filters over 200 frames of uneven length, on each backend, against loops over single numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.errors import InputError

RANDOM = np.random.default_rng(5)
FRAMES = 200
SETTINGS = {"min_cutoff": 0.8, "beta": 0.05, "derivative_cutoff": 1.5}


def inputs(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Values, times and flags of all frames: a random walk with jitter, some NaN, a stop and rows that are lost."""
    steps = RANDOM.normal(0, 3, (FRAMES, *shape)).cumsum(0) + RANDOM.normal(0, 1, (FRAMES, *shape))
    seconds = RANDOM.uniform(0.002, 0.2, FRAMES)
    seconds[50] = 0
    valid = (RANDOM.uniform(0, 1, (FRAMES, shape[0])) > 0.1) * RANDOM.uniform(0.2, 1, (FRAMES, shape[0]))
    steps[70, 0] = np.nan
    steps[90, 0] = np.inf
    return steps.astype(np.float32), seconds.astype(np.float32), valid.astype(np.float32)


class OneValue:
    """A One-Euro filter of one number, as the paper writes it: with a rate, and two low-pass filters."""

    def __init__(self) -> None:
        self.last: float | None = None
        self.speed = 0.0

    def __call__(self, x: float, seconds: float, valid: bool) -> float:
        if self.last is None or not valid or not math.isfinite(x):
            result, self.speed = x, 0.0
        else:
            result = self._next(x, seconds)
        self.last = result if valid and math.isfinite(x) else None
        return result

    def _next(self, x: float, seconds: float) -> float:
        assert self.last is not None
        if seconds == 0:  # both factors are 0, and the speed's limit is that of a short time
            self.speed += 2 * math.pi * SETTINGS["derivative_cutoff"] * (x - self.last)
            return self.last
        derivative = (x - self.last) / seconds
        share = self._share(SETTINGS["derivative_cutoff"], seconds)
        self.speed = share * derivative + (1 - share) * self.speed
        cutoff = SETTINGS["min_cutoff"] + SETTINGS["beta"] * abs(self.speed)
        share = self._share(cutoff, seconds)
        return share * x + (1 - share) * self.last

    @staticmethod
    def _share(cutoff: float, seconds: float) -> float:
        return 1 / (1 + 1 / (2 * math.pi * cutoff) / seconds)


class Smoothed:
    """Exponential smoothing of one number."""

    def __init__(self) -> None:
        self.last: float | None = None

    def __call__(self, x: float, seconds: float, valid: bool) -> float:
        begins = self.last is None or not valid or not math.isfinite(x)
        result = x if begins else x + (self.last - x) * 0.5 ** (seconds / 0.15)  # type: ignore[operator]
        self.last = result if valid and math.isfinite(x) else None
        return result


def expected(make: Callable[[], Any], values: Any, seconds: Any, valid: Any) -> Any:
    flat = values.reshape(*values.shape[:2], -1)
    result = np.zeros(flat.shape)
    for row, index in np.ndindex(flat.shape[1:]):
        one = make()
        for frame in range(FRAMES):
            result[frame, row, index] = one(
                float(flat[frame, row, index]), float(seconds[frame]), valid[frame, row] > 0
            )
    return result.reshape(values.shape)


def one_euro(x: Any, state: Any, seconds: Any, valid: Any) -> Any:
    return pf.vision.one_euro(x, state, seconds, valid, **SETTINGS)


def smoothed(x: Any, state: Any, seconds: Any, valid: Any) -> Any:
    return pf.vision.exponential_smoothing(x, state, seconds, valid, half_life=0.15)


def model_of(build: Any, planes: int, shape: tuple[int, ...]) -> pf.Model:
    graph = pf.FunctionalGraph()
    x = graph.add_input("float32", shape, "x")
    state = graph.add_input("float32", (planes, *shape), "state")
    seconds = graph.add_input("float32", (1,), "seconds")
    valid = graph.add_input("float32", shape[:1], "valid")
    filtered, following = build(x, state, seconds, valid)
    return graph.compile(filtered=filtered, following=following)


@pytest.mark.parametrize(
    ("build", "planes", "reference"), [(one_euro, 3, OneValue), (smoothed, 2, Smoothed)], ids=["one euro", "smoothing"]
)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 2)], ids=str)
def test_a_filter_is_the_reference(
    backend: str, backend_context: Any, build: Any, planes: int, reference: Any, shape: tuple[int, ...]
) -> None:
    values, seconds, valid = inputs(shape)
    wanted = expected(reference, values, seconds, valid)
    model, made = model_of(build, planes, shape), []
    with pf.Worker(model, backend, backend_context, strict=True, carry={"following": "state"}) as worker:  # type: ignore[arg-type]
        for x, time, rows in zip(values, seconds, valid, strict=True):
            worker.schedule({"x": x, "seconds": time[None], "valid": rows})
            made.append(worker.peek_output("filtered").numpy())
    np.testing.assert_allclose(np.stack(made), wanted, rtol=1e-4, atol=1e-3)
    assert np.isfinite(wanted[91:]).all()  # they restart after NaN and infinities


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 2), (4,)], ids=str)
def test_the_filter_of_arrays_is_the_reference(shape: tuple[int, ...]) -> None:
    values, seconds, valid = inputs(shape)
    wanted, smooth = expected(OneValue, values, seconds, valid), pf.vision.OneEuroFilter(**SETTINGS)
    made = [smooth(x, float(time), rows) for x, time, rows in zip(values, seconds, valid, strict=True)]
    np.testing.assert_allclose(np.stack(made), wanted, rtol=1e-6, atol=1e-6)


def test_the_jitter_of_a_still_point_is_that_of_the_theory() -> None:
    """A low-pass filter that mixes in a share of white noise leaves share / (2 - share) of its variance."""
    rate, cutoff = 60.0, 1.0
    noise = RANDOM.normal(0, 1.0, (4000, 64)) + 100
    smooth = pf.vision.OneEuroFilter(min_cutoff=cutoff)
    made = np.stack([smooth(x, 1 / rate) for x in noise])[500:]
    ratio = 2 * math.pi * cutoff / rate
    share = ratio / (1 + ratio)
    assert made.var() == pytest.approx(share / (2 - share), rel=0.05)


def test_a_high_beta_removes_lag() -> None:
    def lag(beta: float) -> float:
        smooth = pf.vision.OneEuroFilter(min_cutoff=1.0, beta=beta)
        return float(max(300 * t / 60 - smooth([300 * t / 60], 1 / 60)[0] for t in range(120)))

    assert lag(0.05) < lag(0) / 5


def test_a_filter_of_arrays_that_is_reset_restarts() -> None:
    smooth = pf.vision.OneEuroFilter()
    smooth([1.0, 2.0], 0.1)
    assert smooth([5.0, 2.0], 0.1)[0] < 5
    smooth.reset()
    np.testing.assert_array_equal(smooth([[5.0, 7.0]], 0.1), [[5.0, 7.0]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pf.vision.OneEuroFilter(min_cutoff=0), "min_cutoff is a frequency"),
        (lambda: pf.vision.OneEuroFilter(derivative_cutoff=math.nan), "derivative_cutoff is a frequency"),
        (lambda: pf.vision.OneEuroFilter(beta=-1), "beta is a number from 0"),
        (lambda: pf.vision.OneEuroFilter()([1.0], -0.1), "seconds is the time"),
        (lambda: pf.vision.OneEuroFilter()([[1.0]], 0.1, [1, 1]), "valid has the first dims"),
        (lambda: model_of(one_euro, 2, (3, 2)), r"the state of values \(3, 2\) is \(3, \*\(3, 2\)\), not \(2, 3, 2\)"),
        (lambda: model_of(smoothed, 3, (3, 2)), "the state of values"),
        (lambda: pf.vision.exponential_smoothing([1.0], [[1.0], [0.0]], 0.1, half_life=0), "half_life is a number"),
    ],
)
def test_what_is_no_filter(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


def test_other_shapes_need_a_reset() -> None:
    smooth = pf.vision.OneEuroFilter()
    smooth([1.0, 2.0], 0.1)
    with pytest.raises(InputError, match="reset"):
        smooth([1.0], 0.1)
