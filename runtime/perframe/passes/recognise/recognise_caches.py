"""New rows that TensorScatter writes into the room behind a cache are joined to the cache, if they fill the room.

GroupQueryAttention appends so: each text of a batch may have a length of its own.
"""

from __future__ import annotations

from perframe.ir import Layer, Model, Value
from perframe.ir.declaration import normalize_axis
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import dim_of
from perframe.layers.pad import pad_amounts
from perframe.passes.patterns import AnyValue, Op, Rules

run = Rules()


@run.rule(Op("TensorScatter", Op("Pad", AnyValue("cache"), name="longer"), AnyValue("rows"), AnyValue("begin")))
def _join(model: Model, root: Layer, longer: Layer, cache: Value, rows: Value, begin: Value) -> int | str:
    old, new, places = cache.spec.shape, rows.spec.shape, begin.spec.values
    if longer.mode != "constant" or root.epilogue or old is None or new is None:
        return 0
    axis = normalize_axis(root.axis, len(old))
    axes, amounts = None if longer.axes is None else longer.axes.spec.ints(), listed(longer.input(1).spec)
    if amounts is None or (longer.axes is not None and axes is None):
        return "the room for new rows is not known"
    before, after = pad_amounts(len(old), amounts, axes)
    room = [new[axis] if at == axis else 0 for at in range(len(old))]
    if None in (old[axis], new[axis]) or any(before) or after != room:
        return "it is not known that the new rows fill the room"
    if places is None or any(dim_of(place) != old[axis] for place in places.flat):
        return "it is not known that the new rows begin where the old ones end"
    model.replace(root, Layer("Concat", root.name, [cache, rows], root.outputs, {"axis": axis}))
    return 1
