"""Selection along an axis on GL: short rows are ranked by counting, long ones by a bitonic sort of indices."""

from __future__ import annotations

from collections.abc import Callable

from perframe.backends.gl.steps import ALL_DTYPES, RUN, Binding, Call, Tools, kind_of
from perframe.backends.gl.together import share
from perframe.backends.operand import Operand
from perframe.layers.select import Selection
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # elements are only compared and moved


def _best_indices(call: Call[Selection], y: Operand, tools: Tools) -> list[Binding]:
    """The index of each row's best element: the best of each part, then the best of these."""
    form, x, found, bindings = call.form, call.x, call.x, list[Binding]()
    rows, count, found_stride, kind = form.outer * form.inner, form.size, 0, kind_of(x.dtype)
    defines = {"T": kind, "X_VECTOR": "vec4" if kind == "float" else "ivec4"}
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
    sort = _count if call.form.size <= RUN else _bitonic
    return sort(call, order, tools)


def _count(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """Each element's rank is the number of elements that come before it."""
    ranks = tools.scratch(call.x.shape, DataType.INT32)
    return [
        call.bind("select_rank", {"X": call.x}, ranks, defines={"T": kind_of(call.x.dtype)}),
        call.bind("select_find", {"R": ranks}, order),
    ]


def _bitonic(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """Batcher's sorting network on indices. Each pass reads the result of the one before."""
    form = call.form
    padded = 1 << (form.size - 1).bit_length()
    shape, defines = (form.outer * form.inner * padded,), {"T": kind_of(call.x.dtype)}
    ends = [tools.scratch(shape, DataType.INT32) for _ in range(2)]
    bindings, block = list[Binding](), 2
    while block <= padded:
        reach = block // 2
        while reach:
            source, target = ends[len(bindings) % 2], ends[(len(bindings) + 1) % 2]
            params = {"padded": padded, "block": block, "reach": reach, "fresh": not bindings}
            bindings.append(call.bind("select_sort", {"X": call.x, "I": source}, target, params, defines))
            reach //= 2
        block *= 2
    sorted_ = ends[len(bindings) % 2]
    return [*bindings, call.bind("select_first", {"I": sorted_}, order, {"padded": padded})]


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
