"""Scattering on GL: each output element searches for the updates whose index names it. Many indices are sorted first.

If an invocation may store anywhere and updates are not combined, each update is stored at its index instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from perframe.backends.gl.compile.program import TOUCHED
from perframe.backends.gl.families.gather import addresses
from perframe.backends.gl.families.select import first_indices
from perframe.backends.gl.lowering.steps import ALL_DTYPES, MOST_DIMS, Binding, Call, Tools, on_gl, passes, wrapped
from perframe.backends.gl.texels import SHEETS
from perframe.backends.operand import Operand
from perframe.ir.geometry import row_major
from perframe.layers.scatter import RowUpdate, Scattering
from perframe.layers.select import Selection
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # results that do not fit wrap around

_MOST_PASSES = 32
_FEW = 32  # to search up to this many updates is faster than to sort their indices, or to store each one
_COMBINE = {"none": "b", "add": "a + (b)", "mul": "a * (b)", "max": "maximum(a, b)", "min": "minimum(a, b)"}
_NOTHING = 0, 0, 1, 0  # of a kernel without TOUCHED
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


def replaces(call: Call[Scattering | RowUpdate]) -> bool:
    """Whether one pass searches all updates."""
    return isinstance(call.form, RowUpdate) or call.form.extent[0] <= _at_once(call)


def _at_once(call: Call[Scattering | RowUpdate]) -> int:
    """The number of updates that one pass searches."""
    return call.rounds // 4 - MOST_DIMS


def lower(call: Call[Scattering | RowUpdate], tools: Tools) -> list[Binding]:
    """Each pass searches some of the updates; or one kernel stores them all."""
    form, x, second = call.form, call.x, call.input(1)
    if isinstance(form, RowUpdate):
        return _rows(call, form, x, second, call.optional(2), tools)
    third = call.input(2)
    steps, at = ([], second) if form.by is None else addresses(call, form.by, second, tools)
    count = form.extent[form.axis]
    if len(call.outputs) > 1:
        return [*steps, *_replaced(call, form, at, tools)]
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
        params = _geometry(form) | {"first": first, "count": now, "total": count, "touched": _NOTHING}
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


def _replaced(call: Call[Any], form: Scattering, at: Operand, tools: Tools) -> list[Binding]:
    """The kernels that write the replaced rows. Many updates are stored, or sorted for the search."""
    count, steps, order, updates = form.extent[0], list[Binding](), at, call.input(2)
    defines = {"COMBINE(a, b)": wrapped(_COMBINE["none"], call.y.dtype)}
    stores = tools.stores_anywhere and not on_gl(call.y.storage).is_half and count > _FEW
    if count > _FEW and not stores:
        steps, _, order = _sorted(call, form, at, tools)
        defines["SORTED"] = "1"
    params = _geometry(form) | {"first": 0, "count": 0 if stores else count, "total": count}
    given = {"X": call.x, "I": at, "U": updates, "S": order}
    steps += _touched(call, "scatter", given, at, form.shape, params, defines, tools)
    return [*steps, _store(call, form, at, updates, call.y)] if stores else steps


def _rows(
    call: Call[Any], form: RowUpdate, x: Operand, update: Operand, begin: Operand | None, tools: Tools
) -> list[Binding]:
    given, params = {"X": x, "U": update, "B": begin or update}, {"has_begin": begin is not None}
    if len(call.outputs) == 1:
        return [call.bind("scatter_rows", given, call.y, {**params, "touched": _NOTHING})]
    rows = tools.scratch((form.replaced,), DataType.INT32)
    numbers = call.bind("replaced_rows", {"B": begin or update}, rows, params)
    shape = form.batch * form.outer * form.size, form.inner
    return [numbers, *_touched(call, "scatter_rows", given, rows, shape, params, {}, tools)]


def _touched(
    call: Call[Any],
    kernel: str,
    given: dict[str, Operand],
    rows: Operand,
    shape: Sequence[int],
    params: Mapping[str, Any],
    defines: Mapping[str, str],
    tools: Tools,
) -> list[Binding]:
    """Two kernels. One writes the elements of `rows`, and of the rows of the last run. The other one keeps the numbers
    of `rows` for the next run. The data has dims of `shape`: rows, and elements of a row.
    """
    unit = (2 if on_gl(call.y.storage).is_half else 1) if tools.stores_anywhere else 4 * SHEETS
    last, count, (total, inner) = call.outputs[1], rows.shape.size, shape
    units = (inner + unit - 2) // unit + 1
    numbers = {**params, "touched": (inner, count, units, total)}
    variant = {**defines, TOUCHED: str(unit)}
    inputs = {**given, "R": rows, "L": last}
    return [call.bind(kernel, inputs, call.y, numbers, variant, tiles=2 * count * units), call.copy(rows, last)]
