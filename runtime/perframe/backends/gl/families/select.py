"""Selection along an axis on GL. Short rows are ranked by counting, and long ones in parts that are merged."""

from __future__ import annotations

from collections.abc import Callable

from perframe.backends.gl.lowering.steps import ALL_DTYPES, RUN, Binding, Call, Tools, kind_of
from perframe.backends.gl.lowering.together import share
from perframe.backends.operand import Operand
from perframe.layers.select import Selection
from perframe.tensor import DataType

_PART = 64  # elements whose ranks are counted; more are merged
DTYPES = ALL_DTYPES  # elements are only compared and moved


def _best_indices(call: Call[Selection], y: Operand, tools: Tools) -> list[Binding]:
    """The index of each row's best element: the best of each part, then the best of these."""
    form, x, found, bindings = call.form, call.x, call.x, list[Binding]()
    rows, count, found_stride, kind = form.outer * form.inner, form.size, 0, kind_of(x.dtype)
    defines = {"T": kind, "X_VECTOR": "vec4" if kind == "float" else "ivec4", "NAN_FIRST": "1"}
    while True:
        sharing = share(rows, count, form.inner == 1 and not bindings, tools)
        target = y if sharing.parts == 1 else tools.scratch((sharing.parts * sharing.stride,), DataType.INT32)
        params = {"count": count, "results": rows, "found_stride": found_stride, "chained": bool(bindings)}
        params["whole"] = form.inner % 4 == 0
        bindings.append(sharing.bind(call, "select", {"X": x, "I": found}, target, params, defines))
        if sharing.parts == 1:
            return bindings
        found, count, found_stride = target, sharing.parts, sharing.stride


def _arg(call: Call[Selection], tools: Tools) -> list[Binding]:
    return _best_indices(call, call.y, tools)


def _hard(call: Call[Selection], tools: Tools) -> list[Binding]:
    indices = tools.scratch((call.form.outer * call.form.inner,), DataType.INT32)
    return [*_best_indices(call, indices, tools), call.bind("hardmax", {"I": indices}, call.y)]


def _top(call: Call[Selection], tools: Tools) -> list[Binding]:
    order = call.outputs[1] if len(call.outputs) > 1 else tools.scratch(call.y.shape, DataType.INT64)
    taken = call.bind("select_take", {"X": call.x, "I": order}, call.y)
    return [*first_indices(call, order, tools), taken]


def first_indices(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """The indices of the first `count` elements of each row, in order."""
    return (_count if call.form.size <= RUN else _merge)(call, order, tools)


def _merge(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """The first `count` of each part of a row, by their ranks. Then each two neighbors are merged until one is left."""
    form, defines = call.form, {"T": kind_of(call.x.dtype)}
    rows, run, span, parts = form.outer * form.inner, min(form.count, _PART), _PART, -(-form.size // _PART)
    ranks, found = (
        tools.scratch((rows * form.size,), DataType.INT32),
        tools.scratch((rows * parts * run,), DataType.INT32),
    )
    bindings = [
        call.bind("select_rank_in_part", {"X": call.x}, ranks, {"part": _PART}, defines),
        call.bind("select_candidates", {"R": ranks}, found, {"part": _PART, "parts": parts, "kept": run}),
    ]
    while parts > 1:
        is_last, kept = parts <= 2, min(form.count, 2 * run)
        target = order if is_last else tools.scratch((rows * -(-parts // 2) * kept,), DataType.INT32)
        params = {"run": run, "span": span, "parts": parts, "kept": form.count if is_last else kept, "last": is_last}
        bindings.append(call.bind("select_merge", {"X": call.x, "I": found}, target, params, defines))
        found, run, span, parts = target, kept, 2 * span, -(-parts // 2)
    return bindings


def _count(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """Each element's rank is the number of elements that come before it."""
    ranks = tools.scratch(call.x.shape, DataType.INT32)
    return [
        call.bind("select_rank", {"X": call.x}, ranks, defines={"T": kind_of(call.x.dtype)}),
        call.bind("select_find", {"R": ranks}, order),
    ]


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
    """First the indices, and then the elements or marks at them."""
    return _LOWER[call.form.result](call, tools)
