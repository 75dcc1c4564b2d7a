"""Selection along an axis on GL: by counting in short rows, by a bitonic sort of places in long ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import RUN, Binding, Tools, kind_of
from perframe.layers.select import Selection
from perframe.tensor import DataType


def _places(layer: LayerLike, form: Selection, x: Operand, y: Operand, tools: Tools) -> list[Binding]:
    """Where each row's first is: the best of each part, then the best of those."""
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
        bindings.append(Binding(layer.name, "select", inputs, target, params, defines))
        if parts == 1:
            return bindings
        found, count = target, parts


def _arg(layer: LayerLike, form: Selection, x: Operand, outputs: Sequence[Operand], tools: Tools) -> list[Binding]:
    return _places(layer, form, x, outputs[0], tools)


def _hard(layer: LayerLike, form: Selection, x: Operand, outputs: Sequence[Operand], tools: Tools) -> list[Binding]:
    places = tools.scratch((form.outer * form.inner,), DataType.INT32)
    params = {"size": form.size, "inner": form.inner}
    return [
        *_places(layer, form, x, places, tools),
        Binding(layer.name, "hardmax", {"I": places}, outputs[0], params),
    ]


def _top(layer: LayerLike, form: Selection, x: Operand, outputs: Sequence[Operand], tools: Tools) -> list[Binding]:
    order = outputs[1] if len(outputs) > 1 else tools.scratch(outputs[0].shape, DataType.INT64)
    walk = {"size": form.size, "inner": form.inner, "count": form.count}
    sort = _count if form.size <= RUN else _bitonic
    return [
        *sort(layer, form, x, order, tools),
        Binding(layer.name, "select_take", {"X": x, "I": order}, outputs[0], walk),
    ]


def _count(layer: LayerLike, form: Selection, x: Operand, order: Operand, tools: Tools) -> list[Binding]:
    """Each element's rank is how many come before it."""
    ranks = tools.scratch(x.shape, DataType.INT32)
    walk, largest = {"size": form.size, "inner": form.inner}, int(form.largest)
    defines = {"T": kind_of(x.dtype)}
    return [
        Binding(layer.name, "select_rank", {"X": x}, ranks, walk | {"largest": largest}, defines),
        Binding(layer.name, "select_find", {"R": ranks}, order, walk | {"count": form.count}),
    ]


def _bitonic(layer: LayerLike, form: Selection, x: Operand, order: Operand, tools: Tools) -> list[Binding]:
    """Batcher's network on places; each pass reads what the last one wrote."""
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
            bindings.append(Binding(layer.name, "select_sort", {"X": x, "I": source}, target, params, defines))
            reach //= 2
        block *= 2
    sorted_ = ends[len(bindings) % 2]
    params = {"inner": form.inner, "count": form.count, "padded": padded}
    return [*bindings, Binding(layer.name, "select_first", {"I": sorted_}, order, params)]


_LOWER: dict[str, Callable[[LayerLike, Selection, Operand, Sequence[Operand], Tools], list[Binding]]] = {
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Hardmax": _hard,
    "TopK": _top,
}


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """All, of float32 and integers; what is hard is a float."""
    if layer.op == "Hardmax" and outputs[0].dtype is not DataType.FLOAT32:
        return f"{layer.op} of {outputs[0].dtype} has no GL kernel"
    return ""


def lower(
    layer: LayerLike,
    form: Selection,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """Places first, then what lies there."""
    x = inputs[0]
    assert x is not None
    return _LOWER[layer.op](layer, form, x, outputs, tools)
