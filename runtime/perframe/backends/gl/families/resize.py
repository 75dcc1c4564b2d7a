"""Resampling on GL: one pass for two neighboring axes if they have few taps, and otherwise a pass for each axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Array, Binding, Call, Tools
from perframe.layers.resize import AxisSampling, AxisTaps, taps
from perframe.tensor import DataType

_COPY = AxisSampling("nearest", "asymmetric", "floor", 0.0, False, False, 1.0, (0.0, 1.0))
_MOST_TAPS = 4  # of an element in a pass for two axes: two passes would read as many
DTYPES = ALL_DTYPES  # "nearest" only moves elements


def supports(call: Call[list[AxisTaps]]) -> str | None:
    """Supports float32, and integers if no elements are mixed."""
    mixed = call.y.dtype is not DataType.FLOAT32 and any(one.count > 1 for one in call.form)
    return "resampling between integers has no GL kernel" if mixed else None


def lower(call: Call[list[AxisTaps]], tools: Tools) -> list[Binding]:
    """Kernels for all axes that change. If none does, one kernel copies."""
    x, bindings = call.x, list[Binding]()
    passes = _passes(call.form or [AxisTaps(0, 1, 1, x.shape.size, 1, _COPY)])
    for index, (first, second) in enumerate(passes):
        shape = (first.outer, first.output, second.output, second.inner)
        y = call.y if index == len(passes) - 1 else tools.scratch(shape, x.dtype)
        whole = second.inner % 4 == 0
        params: dict[str, Any] = {
            "size": (first.size, second.size),
            "outputs": (first.output, second.output),
            "taps": (first.count, second.count),
            "inner": second.inner // 4 if whole else second.inner,
        }
        defines = {"WHOLE": "1"} if whole else {}
        if first.count * second.count > _MOST_TAPS:
            defines["LONG"] = "1"
        sizes = (*_of(first), *_of(second))
        given = {"X": x, "I": tools.table(_indices, *sizes), "W": tools.table(_weights, *sizes)}
        bindings.append(call.bind("resize", given, y, params, defines))
        x = y
    return bindings


def _of(one: AxisTaps) -> tuple[AxisSampling, int, int]:
    return one.sampling, one.size, one.output


def _indices(*axes: Any) -> Array:
    return np.concatenate([taps(*axes[at : at + 3])[0].reshape(-1) for at in (0, 3)])


def _weights(*axes: Any) -> Array:
    return np.concatenate([taps(*axes[at : at + 3])[1].reshape(-1) for at in (0, 3)])


def _passes(axes: list[AxisTaps]) -> list[tuple[AxisTaps, AxisTaps]]:
    """Pairs of neighboring axes. An axis that makes no pair comes behind one of a single element."""
    found, rest = list[tuple[AxisTaps, AxisTaps]](), list(axes)
    while rest:
        one = rest.pop(0)
        if rest and rest[0].axis == one.axis + 1 and one.count * rest[0].count <= _MOST_TAPS:
            found.append((one, rest.pop(0)))
        else:
            found.append((AxisTaps(one.axis, one.outer, 1, one.size * one.inner, 1, _COPY), one))
    return found
