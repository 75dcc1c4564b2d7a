"""Scattering on GL: each output element looks for the updates that name it.

Where an invocation may store anywhere and no update meets another, each update is stored instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.gather import MOST_DIMS, addresses
from perframe.backends.gl.steps import ROUNDS, SMALL_DTYPES, Binding, Tools, ints
from perframe.layers.geometry import row_major
from perframe.layers.scatter import Rows, Scattering
from perframe.tensor import DataType

_AT_ONCE = ROUNDS // 4 - MOST_DIMS  # updates that one pass looks at
_MOST_PASSES = 32
_FEW = 256  # updates that are looked at sooner than the data is copied
_COMBINE = {"none": "b", "add": "a + (b)", "mul": "a * (b)", "max": "maximum(a, b)", "min": "minimum(a, b)"}
_OF_BOOLS = {"add": "max", "mul": "min"}


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them, where nothing is computed that may not fit."""
    return () if layer.attributes.get("reduction") in ("add", "mul") else SMALL_DTYPES


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """As many dims as kernels have room for, and not too many updates for an element to look at."""
    form: Scattering | Rows = layer.form(inputs, outputs)
    if isinstance(form, Rows):
        return ""
    if len(form.shape) > MOST_DIMS or (form.by is not None and len(form.by.dims) > MOST_DIMS):
        return f"more dims than a kernel's {MOST_DIMS}"
    updates = form.extent[form.axis]
    return "" if updates <= _AT_ONCE * _MOST_PASSES else f"{updates} updates are too many to look at for each element"


def lower(
    layer: LayerLike,
    form: Scattering | Rows,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """A pass for every so many updates."""
    x, second, third = (*inputs, None)[:3]
    assert x is not None and second is not None
    if isinstance(form, Rows):
        return [_rows(layer.name, form, x, second, third, outputs[0])]
    assert third is not None
    steps, at = ([], second) if form.by is None else addresses(layer.name, form.by, second, tools)
    count = form.extent[form.axis]
    if not math.prod(form.extent) or (tools.stores_anywhere and form.reduction == "none" and count > _FEW):
        steps.append(_copy(layer.name, x, outputs[0]))
        return [*steps, _store(layer.name, form, at, third, outputs[0])] if math.prod(form.extent) else steps
    reduction = form.reduction
    if outputs[0].dtype is DataType.BOOL:
        reduction = _OF_BOOLS.get(reduction, reduction)
    for first in range(0, count, _AT_ONCE):
        now = min(_AT_ONCE, count - first)
        y = outputs[0] if first + now == count else tools.scratch(outputs[0].shape, outputs[0].dtype)
        params = _geometry(form) | {"shape": ints(form.shape), "first": first, "count": now}
        given = {"X": x, "I": at, "U": third}
        steps.append(Binding(layer.name, "scatter", given, y, params, {"COMBINE(a, b)": _COMBINE[reduction]}))
        x = y
    return steps


def _geometry(form: Scattering) -> dict[str, Any]:
    return {
        "extent": ints(form.extent),
        "index_step": ints(form.steps),
        "update_step": ints(row_major(form.extent)),
        "rank": len(form.shape),
        "axis": form.axis,
    }


def _copy(layer: str, x: Operand, y: Operand) -> Binding:
    size = y.shape.size
    return Binding(layer, "move", {"X": x}, y, {"shape": ints((size,)), "strides": ints((1,)), "rank": 1, "offset": 0})


def _store(layer: str, form: Scattering, at: Operand, updates: Operand, y: Operand) -> Binding:
    params = _geometry(form) | {"strides": ints(row_major(form.shape)), "size": form.shape[form.axis]}
    return Binding(layer, "compute/scatter", {"I": at, "U": updates}, y, params, tiles=math.prod(form.extent))


def _rows(layer: str, form: Rows, x: Operand, update: Operand, begin: Operand | None, y: Operand) -> Binding:
    params: dict[str, Any] = {
        "outer": form.outer,
        "size": form.size,
        "inner": form.inner,
        "count": form.count,
        "circular": int(form.circular),
        "has_begin": int(begin is not None),
    }
    given = {"X": x, "U": update, "B": begin or update}
    return Binding(layer, "scatter_rows", given, y, params)
