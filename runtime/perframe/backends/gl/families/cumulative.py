"""Running sums and products on GL: each pass joins the runs of the pass before to longer ones."""

from __future__ import annotations

from perframe.backends.gl.lowering.steps import Binding, Call, Tools
from perframe.layers.cumulative import Cumulation

_RADIX = 32  # how many runs a pass joins
_JOIN = {"sum": ("((a) + (b))", "O_TYPE(0)"), "product": ("((a) * (b))", "O_TYPE(1)")}


def lower(call: Call[Cumulation], tools: Tools) -> list[Binding]:
    """The number of passes is the number of digits of the length in base `_RADIX`."""
    x, form = call.x, call.form
    join, start = _JOIN[form.combine]
    bindings, reach = list[Binding](), 1
    while True:
        last = reach * _RADIX >= form.size
        y = call.y if last else tools.scratch(x.shape, x.dtype)
        params = {
            "reach": reach,
            "rounds": _RADIX,
            "shift": int(form.exclusive and reach == 1),
            "direction": -1 if form.reverse else 1,
        }
        bindings.append(call.bind("cumulative", {"X": x}, y, params, {"JOIN(a, b)": join, "START": start}))
        if last:
            return bindings
        x, reach = y, reach * _RADIX
