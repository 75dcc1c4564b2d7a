"""Activations: elementwise layers of one formula each, like those of elementwise.py."""

from __future__ import annotations

import math
from typing import Literal

from perframe.ir.broadcasting import Formula, elementwise
from perframe.ir.declaration import Attributes
from perframe.ir.vocabulary import (
    abs,
    clamp,
    erf,
    exp,
    log1p,
    maximum,
    minimum,
    round_even,
    tanh,
    where,
)


@elementwise((-9, 9), dtypes="float int")
def Relu(x):
    return maximum(x, 0)


Relu.limits = lambda: (0.0, math.inf)


@elementwise((-9, 9))
def LeakyRelu(x, *, alpha=0.01):
    return where(x < 0, alpha * x, x)


@elementwise((-9, 9), (-1, 1), dtypes="float int")
def PRelu(x, slope):
    return where(x < 0, slope * x, x)


@elementwise((-9, 9))
def ThresholdedRelu(x, *, alpha=1.0):
    return where(x > alpha, x, 0)


@elementwise((-9, 9))
def Elu(x, *, alpha=1.0):
    return where(x < 0, alpha * (exp(x) - 1), x)


@elementwise((-9, 9))
def Celu(x, *, alpha=1.0):
    return maximum(x, 0) + minimum(alpha * (exp(x / alpha) - 1), 0)


@elementwise((-9, 9))
def Selu(x, *, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875):
    return gamma * where(x > 0, x, alpha * exp(x) - alpha)


@elementwise((-9, 9))
def Sigmoid(x):
    return 1 / (1 + exp(-x))


@elementwise((-9, 9))
def HardSigmoid(x, *, alpha=0.2, beta=0.5):
    return clamp(alpha * x + beta, 0, 1)


@elementwise((-9, 9))
def FakeQuantize(x, *, scale=0.1, zero=3.0, low=0.0, high=255.0, to_scale=0.1, to_zero=3.0):
    whole = round_even(x / scale) + zero
    return (where(whole > low, minimum(whole, high), low) - to_zero) * to_scale


@elementwise((-9, 9))
def HardSwish(x):
    return x * clamp(x / 6 + 0.5, 0, 1)


@elementwise((-9, 9))
def Swish(x, *, alpha=1.0):
    return x / (1 + exp(-alpha * x))


@elementwise((-9, 9))
def Softplus(x):
    return maximum(x, 0) + log1p(exp(-abs(x)))


@elementwise((-9, 9))
def Softsign(x):
    return x / (1 + abs(x))


@elementwise((-9, 9))
def Mish(x):
    return x * tanh(Softplus(x))


def _exact_gelu(x):
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))


def _tanh_gelu(x):
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@elementwise(
    (-9, 9), choose=lambda attributes, _p, _k: _tanh_gelu if attributes["approximate"] == "tanh" else _exact_gelu
)
def Gelu(x, *, approximate: Literal["none", "tanh"] = "none"):
    return _exact_gelu(x)


@elementwise((-9, 9))
def Shrink(x, *, lambd=0.5, bias=0.0):
    return where(x < -lambd, x + bias, where(x > lambd, x - bias, 0))


def _clip_min(x, low):
    return maximum(x, low)


def _clip_max(x, high):
    return minimum(x, high)


def _clip_none(x):
    return x


_CLIPS: dict[tuple[bool, bool], Formula] = {
    (True, False): _clip_min,
    (False, True): _clip_max,
    (False, False): _clip_none,
}


def _choose_clip(_attributes: Attributes, present: tuple[bool, ...], _kind: str) -> Formula | None:
    bounds = (*present, False, False)[1:3]
    return _CLIPS.get((bounds[0], bounds[1]))


@elementwise((-9, 9), (-3, 0), (0, 3), dtypes="float int", choose=_choose_clip, single=("low", "high"))
def Clip(x, low=None, high=None):
    return clamp(x, low, high)


Clip.limits = lambda low=-math.inf, high=math.inf: (low, high)
