"""Transposed convolution on GL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.families.conv import supports as supports
from perframe.backends.gl.lowering.steps import Binding, Call, Tools, epilogue_of, window_params
from perframe.layers.conv import Convolution


def lower(call: Call[Convolution], tools: Tools) -> list[Binding]:
    """One kernel, with the epilogue in it, over three dims."""
    form, x, w, b = call.form, call.x, call.input(1), call.optional(2)
    params: dict[str, Any] = window_params(form.window, 3, size=form.size, output_=form.output)
    steps, gaps = params["stride"], params["dilation"]
    params["divisor"] = divisors = [math.gcd(*pair) for pair in zip(steps, gaps, strict=True)]
    axes = zip(steps, gaps, divisors, strict=True)
    params["inverses"] = [pow(gap // divisor, -1, step // divisor) for step, gap, divisor in axes]
    per_group, taps, depth = form.outputs // form.groups, math.prod(form.window.kernel), form.depth
    params["weight"] = (depth * per_group * taps, taps, 1, per_group * taps)
    if w.is_constant:  # with the depth last, its weights follow each other

        def depth_last(value: Any) -> Any:
            return np.moveaxis(value.reshape(form.groups, depth, per_group, taps), 1, -1).reshape(-1)

        w = w.derived(f"depth of {form.groups} groups last", depth_last)
        params["weight"] = (depth * per_group * taps, taps * depth, depth, 1)
    given = {"X": x, "W": w, "B": b or w}
    functions = epilogue_of(call.layer, call.y.dtype)
    return [call.bind("conv_transpose", given, call.y, params | {"has_bias": b is not None}, functions=functions)]
