"""Selection along an axis on GL: short rows are ranked by counting, long ones by a bitonic sort of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perframe.backends.gl.steps import ALL_DTYPES, RUN, Binding, Call, Tools, kind_of
from perframe.backends.operand import Operand
from perframe.layers.select import Selection
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # elements are only compared and moved


def _places(call: Call[Any], form: Selection, x: Operand, y: Operand, tools: Tools) -> list[Binding]:
    """The place of each row's best element: the best of each part, then the best of these."""
    rows, count, bindings, found = form.outer * form.inner, form.size, list[Binding](), x
    while True:
        parts = -(-count // RUN)
        target = y if parts == 1 else tools.scratch((rows * parts,), DataType.INT32)
        params = {
            "size": form.size,
            "inner": form.inner,
            "count": count,
            "run": RUN,
            "parts": parts,
            "chained": int(found is not x),
            "largest": int(form.largest),
            "last": int(form.last),
        }
        inputs, defines = {"X": x, "I": found}, {"T": kind_of(x.dtype)}
        bindings.append(call.bind("select", inputs, target, params, defines))
        if parts == 1:
            return bindings
        found, count = target, parts


def _arg(call: Call[Selection], tools: Tools) -> list[Binding]:
    return _places(call, call.form, call.x, call.y, tools)


def _hard(call: Call[Selection], tools: Tools) -> list[Binding]:
    form = call.form
    places = tools.scratch((form.outer * form.inner,), DataType.INT32)
    params = {"size": form.size, "inner": form.inner}
    return [
        *_places(call, form, call.x, places, tools),
        call.bind("hardmax", {"I": places}, call.y, params),
    ]


def _top(call: Call[Selection], tools: Tools) -> list[Binding]:
    form = call.form
    order = call.outputs[1] if len(call.outputs) > 1 else tools.scratch(call.y.shape, DataType.INT64)
    walk = {"size": form.size, "inner": form.inner, "count": form.count}
    return [
        *first_places(call, form, call.x, order, tools),
        call.bind("select_take", {"X": call.x, "I": order}, call.y, walk),
    ]


def first_places(call: Call[Any], form: Selection, x: Operand, order: Operand, tools: Tools) -> list[Binding]:
    """The places of the first `count` elements of each row, in order."""
    sort = _count if form.size <= RUN else _bitonic
    return sort(call, form, x, order, tools)


def _count(call: Call[Any], form: Selection, x: Operand, order: Operand, tools: Tools) -> list[Binding]:
    """Each element's rank is the number of elements that come before it."""
    ranks = tools.scratch(x.shape, DataType.INT32)
    walk, largest = {"size": form.size, "inner": form.inner}, int(form.largest)
    defines = {"T": kind_of(x.dtype)}
    return [
        call.bind("select_rank", {"X": x}, ranks, walk | {"largest": largest}, defines),
        call.bind("select_find", {"R": ranks}, order, walk | {"count": form.count}),
    ]


def _bitonic(call: Call[Any], form: Selection, x: Operand, order: Operand, tools: Tools) -> list[Binding]:
    """Batcher's sorting network on places. Each pass reads the result of the one before."""
    padded = 1 << (form.size - 1).bit_length()
    shape, defines = (form.outer * form.inner * padded,), {"T": kind_of(x.dtype)}
    ends = [tools.scratch(shape, DataType.INT32) for _ in range(2)]
    walk = {"size": form.size, "inner": form.inner, "padded": padded, "largest": int(form.largest)}
    bindings, block = list[Binding](), 2
    while block <= padded:
        reach = block // 2
        while reach:
            source, target = ends[len(bindings) % 2], ends[(len(bindings) + 1) % 2]
            params = walk | {"block": block, "reach": reach, "fresh": int(not bindings)}
            bindings.append(call.bind("select_sort", {"X": x, "I": source}, target, params, defines))
            reach //= 2
        block *= 2
    sorted_ = ends[len(bindings) % 2]
    params = {"inner": form.inner, "count": form.count, "padded": padded}
    return [*bindings, call.bind("select_first", {"I": sorted_}, order, params)]


_LOWER: dict[str, Callable[[Call[Selection], Tools], list[Binding]]] = {
    "indices": _arg,
    "marks": _hard,
    "elements": _top,
}


def supports(call: Call[Selection]) -> str | None:
    """Supports every selection of float32 and integers; the marks of Hardmax only as float32."""
    marks = call.form.result == "marks"
    return f"marks of {call.y.dtype} have no GL kernel" if marks and call.y.dtype is not DataType.FLOAT32 else None


def lower(call: Call[Selection], tools: Tools) -> list[Binding]:
    """First the places, and then the elements or marks at them."""
    return _LOWER[call.form.result](call, tools)
