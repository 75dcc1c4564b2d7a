"""Running sums and products on GL: each pass joins runs of those that the last one made."""

from __future__ import annotations

from collections.abc import Sequence

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools
from perframe.layers.cumulative import Cumulation

_RADIX = 32  # how many runs a pass joins
_JOIN = {"sum": ("((a) + (b))", "O_TYPE(0)"), "product": ("((a) * (b))", "O_TYPE(1)")}


def lower(
    layer: LayerLike,
    form: Cumulation,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """As many passes as the length has digits in that radix."""
    x = inputs[0]
    assert x is not None
    join, start = _JOIN[form.combine]
    bindings, reach = list[Binding](), 1
    while True:
        last = reach * _RADIX >= form.size
        y = outputs[0] if last else tools.scratch(x.shape, x.dtype)
        params = {
            "size": form.size,
            "inner": form.inner,
            "reach": reach,
            "rounds": _RADIX,
            "shift": int(form.exclusive and reach == 1),
            "direction": -1 if form.reverse else 1,
        }
        bindings.append(Binding(layer.name, "cumulative", {"X": x}, y, params, {"JOIN(a, b)": join, "START": start}))
        if last:
            return bindings
        x, reach = y, reach * _RADIX
