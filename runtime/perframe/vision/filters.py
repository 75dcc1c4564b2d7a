"""Filters against jitter: values that change over frames, smoothed on the device or in arrays.

The functions build layers. Their state is an input and an output of the model, which `pf.Worker(carry=...)` joins.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perframe import functional as F
from perframe.errors import InputError
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

Array = NDArray[Any]


class _Settings(NamedTuple):
    min_cutoff: float
    beta: float
    derivative_cutoff: float


def one_euro(
    x: Given,
    state: Given,
    seconds: Given,
    valid: Given | None = None,
    *,
    min_cutoff: float = 1.0,
    beta: float = 0.0,
    derivative_cutoff: float = 1.0,
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Smooth values by a One-Euro filter, and return the filtered values and the next state.

    The cutoff is `min_cutoff` Hz for a value at rest, and `beta` Hz more for each unit that it moves in a second: a low
    `min_cutoff` removes jitter, and a high `beta` removes lag. The speed is smoothed by `derivative_cutoff` Hz. Source:
    Casiez, Roussel and Vogel, "1€ Filter", CHI 2012, algorithm 1.

    `x` has any shape. `state` is (3, *x.shape), float32: the estimate, the speed, and 1 where there are both; zeros
    begin. `seconds` is the time since the last frame, one number. `valid` has the first dims of `x`: a row whose number
    is not above 0 passes unfiltered, and the next one restarts. So do NaN and infinite elements. Raises InputError.
    """
    settings = _checked(min_cutoff, beta, derivative_cutoff)
    values, before = to_tensor(x), to_tensor(state)
    _check_state(values, before, 3)
    estimate, speed = _step(values, before[0], before[1], _elapsed(seconds), settings)
    goes_on, rows = _continues(before[2], estimate, valid)
    filtered = F.where(goes_on, estimate, values)
    return filtered, F.stack([filtered, F.where(goes_on, speed, F.zeros_like(speed)), _seen(filtered, rows)])


def exponential_smoothing(
    x: Given, state: Given, seconds: Given, valid: Given | None = None, *, half_life: float = 0.1
) -> tuple[FunctionalTensor, FunctionalTensor]:
    """Smooth values exponentially, and return the smoothed values and the next state.

    After `half_life` seconds half of a change is left, at any frame rate. `state` is (2, *x.shape), float32: the
    estimate, and 1 where there is one; zeros begin. The other arguments are those of `one_euro`. Raises InputError.
    """
    if not 0 < half_life < math.inf:
        raise InputError(f"half_life is a number of seconds above 0, not {half_life!r}")
    values, before = to_tensor(x), to_tensor(state)
    _check_state(values, before, 2)
    rest = F.exp2(_elapsed(seconds) * (-1 / half_life))
    estimate = values + (before[0] - values) * rest
    goes_on, rows = _continues(before[1], estimate, valid)
    filtered = F.where(goes_on, estimate, values)
    return filtered, F.stack([filtered, _seen(filtered, rows)])


class OneEuroFilter:
    """`one_euro` for arrays, with the state inside: `smooth = OneEuroFilter(); smooth(points, frame.delta_time)`."""

    def __init__(self, min_cutoff: float = 1.0, beta: float = 0.0, derivative_cutoff: float = 1.0) -> None:
        self._settings = _checked(min_cutoff, beta, derivative_cutoff)
        self._state: tuple[Array, Array, Array] | None = None

    def __call__(self, x: ArrayLike, seconds: float, valid: ArrayLike | None = None) -> Array:
        """Return the filtered values, in float64. All calls have one shape until `reset()`. Raises InputError."""
        values = np.asarray(x, np.float64)
        if not 0 <= seconds < math.inf:
            raise InputError(f"seconds is the time since the last call, from 0, not {seconds!r}")
        if self._state is None:
            self._state = values, np.zeros_like(values), np.zeros(values.shape, bool)
        estimate, speed, seen = self._state
        if values.shape != estimate.shape:
            raise InputError(f"this filter's values have the shape {estimate.shape}, not {values.shape}: reset() it")
        is_valid = np.ones(values.shape, bool)
        if valid is not None:
            rows = np.asarray(valid) > 0
            if rows.shape != values.shape[: rows.ndim]:
                raise InputError(f"valid has the first dims of the values, {values.shape}, not {rows.shape}")
            is_valid &= rows.reshape(rows.shape + (1,) * (values.ndim - rows.ndim))
        with np.errstate(invalid="ignore", over="ignore"):  # rows that are not valid may hold anything
            new_estimate, new_speed = _step(values, estimate, speed, seconds, self._settings)
        goes_on = seen & is_valid & np.isfinite(new_estimate)
        filtered: Array = np.where(goes_on, new_estimate, values)
        self._state = filtered, np.where(goes_on, new_speed, 0.0), is_valid & np.isfinite(filtered)
        return filtered.copy()

    def reset(self) -> None:
        """Forget all values, and their shape."""
        self._state = None


def _step(x: Any, estimate: Any, speed: Any, seconds: Any, settings: _Settings) -> tuple[Any, Any]:
    """The estimate and the speed after one frame, for functional tensors and for arrays.

    A low-pass filter of cutoff f mixes in r / (1 + r) of the new value, where r = 2π f seconds. For the speed, r is
    divided by the seconds that a difference is divided by: no time between two frames is no division by zero.
    """
    turn = 2 * math.pi * settings.derivative_cutoff
    speed = (speed + (x - estimate) * turn) / (seconds * turn + 1.0)
    share = (abs(speed) * settings.beta + settings.min_cutoff) * (seconds * (2 * math.pi))
    return (estimate + x * share) / (share + 1.0), speed


def _checked(min_cutoff: float, beta: float, derivative_cutoff: float) -> _Settings:
    """The settings of a One-Euro filter. Raises InputError."""
    for name, value in (("min_cutoff", min_cutoff), ("derivative_cutoff", derivative_cutoff)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} is a frequency in Hz above 0, not {value!r}")
    if not 0 <= beta < math.inf:
        raise InputError(f"beta is a number from 0, not {beta!r}")
    return _Settings(float(min_cutoff), float(beta), float(derivative_cutoff))


def _check_state(x: FunctionalTensor, state: FunctionalTensor, planes: int) -> None:
    """Raise InputError for a state of another shape than (planes, *x.shape)."""
    if state.ndim != x.ndim + 1 or not state.shape.may_be((planes, *x.shape)):
        raise InputError(f"the state of values {x.shape} is ({planes}, *{x.shape}), not {state.shape}")


def _elapsed(seconds: Given) -> FunctionalTensor:
    """The time since the last frame, without dims: a clock that was set back stands still."""
    return F.clamp(F.reshape(seconds, ()), 0.0)


def _continues(
    seen: FunctionalTensor, estimate: FunctionalTensor, valid: Given | None
) -> tuple[FunctionalTensor, FunctionalTensor | None]:
    """Where a filter continues and does not restart, and which rows are valid; None for all."""
    goes_on, rows = F.logical_and(seen > 0, F.isfinite(estimate)), None
    if valid is not None:
        rows = to_tensor(valid)
        for _ in range(estimate.ndim - rows.ndim):
            rows = F.unsqueeze(rows, -1)
        rows = F.to(rows, "float32") > 0
        goes_on = F.logical_and(goes_on, rows)
    return goes_on, rows


def _seen(filtered: FunctionalTensor, rows: FunctionalTensor | None) -> FunctionalTensor:
    """1 where the next frame has an estimate to begin with, and 0 elsewhere."""
    seen = F.isfinite(filtered)
    return F.to(seen if rows is None else F.logical_and(seen, rows), "float32")
