"""Resampling on GL: a pass for each axis."""

from __future__ import annotations

from perframe.backends.gl.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.resize import AxisTaps, Sampling
from perframe.tensor import DataType

_COPY = Sampling("nearest", "asymmetric", "floor", 0.0, False, False, 1.0, (0.0, 1.0))
DTYPES = ALL_DTYPES  # "nearest" only moves elements


def supports(call: Call[list[AxisTaps]]) -> str | None:
    """Supports float32, and integers if no elements are mixed."""
    mixed = call.y.dtype is not DataType.FLOAT32 and any(one.count > 1 for one in call.form)
    return "resampling between integers has no GL kernel" if mixed else None


def lower(call: Call[list[AxisTaps]], tools: Tools) -> list[Binding]:
    """One kernel for each axis that changes. If none does, one kernel copies."""
    x, form = call.x, call.form
    passes = form or [AxisTaps(0, 1, 1, x.shape.size, 1, _COPY)]
    bindings = []
    for index, one in enumerate(passes):
        outputs_, taps = one.output, one.count
        y = call.y if index == len(passes) - 1 else tools.scratch((one.outer, outputs_, one.inner), x.dtype)
        given = {"X": x, "I": tools.constant(one.indices), "W": tools.constant(one.weights)}
        params = {"size": one.size, "inner": one.inner, "outputs": outputs_, "taps": taps}
        bindings.append(call.bind("resize", given, y, params))
        x = y
    return bindings
