"""Selection along an axis on GL. Short rows are ranked by counting. Long ones are ranked in parts, if few elements are
wanted, and else sorted by a bitonic sort of indices.
"""

from __future__ import annotations

from collections.abc import Callable

from perframe.backends.gl.lowering.steps import ALL_DTYPES, RUN, Binding, Call, Tools, kind_of
from perframe.backends.gl.lowering.together import share
from perframe.backends.operand import Operand
from perframe.ir.sizes.size import specialized
from perframe.layers.select import Selection
from perframe.tensor import DataType

LEAST_PART, MOST_PART = 64, 512  # elements; longer parts take more comparisons than a sort of the whole row
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
    if call.form.size <= RUN:
        return _count(call, order, tools)
    few = max(LEAST_PART, 4 * call.form.count) <= MOST_PART
    return _by_parts(call, order, tools) if few else _bitonic(call, order, tools)


def _by_parts(call: Call[Selection], order: Operand, tools: Tools) -> list[Binding]:
    """The first `count` of each part of a row are candidates. These are parted again until one part is left."""
    form, bindings = call.form, list[Binding]()
    rows, held, part = form.outer * form.inner, form.size, max(LEAST_PART, 4 * form.count)
    found, defines = order, {"T": kind_of(call.x.dtype)}
    while True:
        parts = -(-held // part)
        params = {"held": held, "part": part, "fresh": not bindings}
        ranks = tools.scratch((rows * held,), DataType.INT32)
        bindings.append(call.bind("select_rank_in_part", {"X": call.x, "I": found}, ranks, params, defines))
        target = order if parts == 1 else tools.scratch((rows * parts * form.count,), DataType.INT32)
        params |= {"parts": parts}
        bindings.append(call.bind("select_candidates", {"R": ranks, "I": found}, target, params))
        if parts == 1:
            return bindings
        found, held = target, parts * form.count


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
    padded = 1 << (specialized(form.size) - 1).bit_length()
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
