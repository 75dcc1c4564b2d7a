"""Scattering on GL: each output element searches for the updates whose index names it. Many indices are sorted first.

If an invocation may store anywhere and updates are not combined, each update is stored at its index instead.
"""

from __future__ import annotations

import math
from typing import Any

from perframe.backends.gl.families.gather import addresses
from perframe.backends.gl.families.select import first_indices
from perframe.backends.gl.lowering.steps import ALL_DTYPES, MOST_DIMS, Binding, Call, Tools, passes, wrapped
from perframe.backends.operand import Operand
from perframe.ir.geometry import row_major
from perframe.layers.scatter import RowUpdate, Scattering
from perframe.layers.select import Selection
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # results that do not fit wrap around

_MOST_PASSES = 32
_FEW = 32  # to search up to this many updates is faster than to sort their indices, or to store each one
_COMBINE = {"none": "b", "add": "a + (b)", "mul": "a * (b)", "max": "maximum(a, b)", "min": "minimum(a, b)"}
_OF_BOOLS = {"add": "max", "mul": "min"}


def supports(call: Call[Scattering | RowUpdate]) -> str | None:
    """Supports as many dims as a kernel's arrays hold, and as many updates as each element can search."""
    form = call.form
    if isinstance(form, RowUpdate):
        return None
    if len(form.shape) > MOST_DIMS or (form.by is not None and len(form.by.dims) > MOST_DIMS):
        return f"more dims than a kernel's {MOST_DIMS}"
    updates = form.extent[form.axis]
    fits = updates <= _at_once(call) * _MOST_PASSES
    return None if fits else f"{updates} updates are too many to look at for each element"


def _at_once(call: Call[Scattering | RowUpdate]) -> int:
    """The number of updates that one pass searches."""
    return call.rounds // 4 - MOST_DIMS


def lower(call: Call[Scattering | RowUpdate], tools: Tools) -> list[Binding]:
    """Each pass searches some of the updates; or one kernel stores them all."""
    form, x, second = call.form, call.x, call.input(1)
    if isinstance(form, RowUpdate):
        return [_rows(call, x, second, call.optional(2), call.y)]
    third = call.input(2)
    steps, at = ([], second) if form.by is None else addresses(call, form.by, second, tools)
    count = form.extent[form.axis]
    if not math.prod(form.extent) or (tools.stores_anywhere and form.reduction == "none" and count > _FEW):
        steps.append(call.copy(x, call.y))
        return [*steps, _store(call, form, at, third, call.y)] if math.prod(form.extent) else steps
    order, defines = at, dict[str, str]()
    if count > _FEW:
        sorting, at, order = _sorted(call, form, at, tools)
        steps += sorting
        defines["SORTED"] = "1"
    reduction = form.reduction
    if call.y.dtype is DataType.BOOL:
        reduction = _OF_BOOLS.get(reduction, reduction)
    for first, now in passes(count, _at_once(call)):
        y = call.y if first + now == count else tools.scratch(call.y.shape, call.y.dtype)
        params = _geometry(form) | {"first": first, "count": now, "total": count}
        given = {"X": x, "I": at, "U": third, "S": order}
        defines["COMBINE(a, b)"] = wrapped(_COMBINE[reduction], y.dtype)
        steps.append(call.bind("scatter", given, y, params, defines))
        x = y
    return steps


def _sorted(
    call: Call[Any], form: Scattering, indices: Operand, tools: Tools
) -> tuple[list[Binding], Operand, Operand]:
    """The kernels that sort the indices of each line, the indices counted from the front, and their order."""
    steps, at = list[Binding](), indices
    if form.by is None:
        at = tools.scratch(indices.shape, DataType.INT32)
        steps.append(call.bind("from_front", {"I": indices}, at, {"size": form.shape[form.axis]}))
    count, rank = form.extent[form.axis], len(form.extent) if form.by is None else 1
    outer, inner = math.prod(form.extent[: form.axis]), math.prod(form.extent[form.axis + 1 : rank])
    order = tools.scratch(at.shape, DataType.INT32)
    selection = Selection("indices", outer, count, inner, count, largest=False)
    return [*steps, *first_indices(Call(call.layer, selection, [at], [order]), order, tools)], at, order


def _geometry(form: Scattering) -> dict[str, Any]:
    return {
        "index_step": form.steps,
        "update_step": row_major(form.extent),
        "rank": len(form.shape),
    }


def _store(call: Call[Any], form: Scattering, at: Operand, updates: Operand, y: Operand) -> Binding:
    params = _geometry(form) | {"strides": row_major(form.shape), "size": form.shape[form.axis]}
    return call.bind("compute/scatter", {"I": at, "U": updates}, y, params, tiles=math.prod(form.extent))


def _rows(call: Call[Any], x: Operand, update: Operand, begin: Operand | None, y: Operand) -> Binding:
    given = {"X": x, "U": update, "B": begin or update}
    return call.bind("scatter_rows", given, y, {"has_begin": begin is not None})
