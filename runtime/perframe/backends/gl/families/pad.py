"""Padding on GL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools, kind_of
from perframe.layers.pad import Padding

DTYPES = ALL_DTYPES  # elements are only moved

_DEFINES = {"constant": {}, "reflect": {"REFLECTION": "1"}, "edge": {"EDGE": "1"}, "wrap": {"WRAPS": "1"}}


def supports(call: Call[Padding]) -> str | None:
    """Supports every padding value that the GPU can hold."""
    form = call.form
    fits = kind_of(call.y.dtype) == "float" or abs(form.value) <= 2**31 - 1
    return None if fits else f"the value {form.value} lies outside int32"


def dims(form: Padding) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.collapsed().input_shape]


def lower(call: Call[Padding], tools: Tools) -> list[Binding]:
    """One kernel."""
    form = call.form.collapsed()
    params: dict[str, Any] = {"size": form.input_shape, "shape": form.output_shape, "rank": len(form.before)}
    params |= {"before": form.before, "value": form.value}
    return [call.bind("pad", {"X": call.x}, call.y, params, _DEFINES[form.mode])]
