"""Non-maximum suppression on GL: candidates are sorted, and then thinned out block by block. In a block they suppress
one another, and then those behind it. For boxes that come in order all pairs are compared at once, a bit each.
"""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.families import cumulative
from perframe.backends.gl.families.select import first_indices
from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.cumulative import Cumulation
from perframe.layers.nms import Picking, Suppression
from perframe.layers.select import Selection
from perframe.tensor import DataType

# One invocation compares this many boxes with each other. With a bit each they fill three of a texel's four words.
_BLOCK = 96
_MOST_IN_ORDER = 1024  # boxes whose pairs are compared at once; a texel has the bits of _IN_TEXEL boxes
_IN_TEXEL = 128


def supports(call: Call[Suppression | Picking]) -> str | None:
    """Supports boxes in order up to a number, and any boxes that are sorted here."""
    if isinstance(call.form, Picking) and call.form.boxes > _MOST_IN_ORDER:
        return f"{call.form.boxes} boxes in order are more than {_MOST_IN_ORDER}: select the best of them before"
    return None


def lower(call: Call[Any], tools: Tools) -> list[Binding]:
    """The kernels of the layer's form."""
    return _pick(call, tools) if isinstance(call.form, Picking) else _suppress(call, tools)


def _pick(call: Call[Picking], tools: Tools) -> list[Binding]:
    """The overlaps of each two boxes, then the picks, and then the boxes' picks if they are read."""
    form, classes = call.form, call.optional(2)
    words = -(-form.boxes // _IN_TEXEL)
    pairs = tools.scratch((form.batch, form.boxes, words * 4), DataType.INT32)
    given = {"B": call.x, "S": call.input(1), "C": classes or call.input(1)}
    bindings = [
        call.bind("nms_pairs", given, pairs, {"words": words, "labelled": classes is not None}),
        call.bind("nms_picks", {"S": call.input(1), "M": pairs}, call.y, {"words": words}),
    ]
    if len(call.outputs) > 1:
        given = {"S": call.input(1), "P": call.y, "M": pairs}
        bindings.append(call.bind("nms_owners", given, call.outputs[1], {"words": words}))
    return bindings


def _suppress(call: Call[Suppression], tools: Tools) -> list[Binding]:
    """Two kernels a block. Then the candidates that are left are counted, and the counts give each its row in the
    table.
    """
    form, rows = call.form, call.form.batch * call.form.classes
    shape = (rows, form.boxes)
    keys, order = tools.scratch(shape, DataType.FLOAT32), tools.scratch(shape, DataType.INT32)
    overlap, least = (_present(call.optional(index)) for index in (3, 4))
    given = {"X": call.input(1), "L": least or call.input(1)}
    best = Selection("indices", rows, form.boxes, 1, form.boxes, largest=False)
    sorting = Call(call.layer, best, [keys], [order])
    bindings = [
        call.bind("nms_key", given, keys, {"bounded": least is not None}),
        *first_indices(sorting, order, tools),
    ]
    flags, spare, sums = (tools.scratch(shape, DataType.INT32) for _ in range(3))
    before, now = (tools.scratch((rows, 4), DataType.INT32) for _ in range(2))
    given = {"B": call.x, "I": order, "V": overlap or call.x}

    def kernel(part: str, reads: dict[str, Operand], y: Operand, first: int) -> None:
        defines = {"START": "0", "DECIDE": "1", "THIN": "2", "PART": part, "BLOCK": str(_BLOCK)}
        params = {"bounded": overlap is not None, "first": first}
        bindings.append(call.bind("nms", given | reads, y, params, defines))

    kernel("START", {"K": keys}, flags, 0)
    for first in range(0, form.boxes, _BLOCK):
        kernel("DECIDE", {"F": flags, "W": before}, now, first)
        kernel("THIN", {"F": flags, "W": now}, spare, first)
        flags, spare, before, now = spare, flags, now, before
    counted: Call[Any] = Call(call.layer, Cumulation("sum", rows, form.boxes, 1, False, False), [flags], [sums])
    return [
        *bindings,
        *cumulative.lower(counted, tools),
        call.bind("nms_table", {"S": sums, "I": order}, call.y),
    ]


def _present(value: Operand | None) -> Operand | None:
    """The input; None if it is absent or has no elements."""
    return value if value is not None and value.shape.size else None
