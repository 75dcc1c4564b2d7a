"""Pooling and unpooling on GL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.steps import GPU_DTYPES, ROUNDS, Binding, Call, Tools, kind_of, window_params
from perframe.layers.geometry import in_dims
from perframe.layers.pool import Pooling, Unpooling
from perframe.tensor import DataType

DTYPES = (*GPU_DTYPES, DataType.INT8, DataType.UINT8)  # the largest element never overflows

_KINDS = {"largest": 0, "average": 1, "norm": 2}
_AT_ONCE = ROUNDS // 5  # elements of a plane that one pass of unpooling searches: by fours, then the ones that match
_MOST_PASSES = 32


def supports(call: Call[Pooling | Unpooling]) -> str | None:
    """Supports up to three spatial dims, and planes that unpooling can search."""
    form = call.form
    if isinstance(form, Unpooling):
        fits = _count(call) <= _AT_ONCE * _MOST_PASSES and len(form.whole) <= 8
        return None if fits else f"elements of {call.x.shape} are too many to look at for each element"
    if len(form.size) > 3:
        return "pooling over more than three dims has no GL kernel"
    if kind_of(call.y.dtype) != "float" and form.kind != "largest":
        return f"pooling {call.y.dtype} has no GL kernel"
    return (
        None
        if 8 * math.prod(form.window.kernel) <= ROUNDS
        else f"a window of {form.window.kernel} is too large for one shader"
    )


def lower(call: Call[Pooling | Unpooling], tools: Tools) -> list[Binding]:
    """One kernel for each output, or those of unpooling."""
    form = call.form
    if isinstance(form, Unpooling):
        return _unpool(call, form, tools)
    params = {
        **window_params(form.window, 3, size=form.size, output_=form.output),
        "end": form.window.in_dims(3).end,
        "index_stride": in_dims(form.index_strides, 3, 0),
        "kind": _KINDS[form.kind],
    }
    defines = {"NOTHING": "(-1.0 / 0.0)" if kind_of(call.x.dtype) == "float" else "0"}
    if len(form.size) == 3:
        defines["VOLUME"] = "1"
    return [
        call.bind("pool", {"X": call.x}, y, params, defines | ({"INDEX": "1"} if is_index else {}))
        for is_index, y in enumerate(call.outputs)
    ]


def _count(call: Call[Any]) -> int:
    """The number of elements of one plane of the input."""
    return math.prod(call.x.shape[2:])


def _unpool(call: Call[Any], form: Unpooling, tools: Tools) -> list[Binding]:
    """Either each input element is stored among zeros, or each output element searches the inputs of its plane.

    If several elements go to one index, as from windows that overlap, they are the same element of the pooled tensor.
    """
    x, y, indices = call.x, call.y, call.input(1)
    params: dict[str, Any] = {"shape": y.shape, "rank": len(form.whole)}
    if tools.stores_anywhere:
        zeros = call.copy(tools.constant(np.zeros(1, np.float32)), y, step=0)
        stores = call.bind("compute/unpool", {"X": x, "I": indices}, y, params, tiles=x.shape.size)
        return [zeros, stores] if x.shape.size else [zeros]
    count, found, bindings = _count(call), x, list[Binding]()
    params |= {"plane": math.prod(form.whole[2:]), "count": count}
    for first in range(0, max(count, 1), _AT_ONCE):
        last = min(first + _AT_ONCE, count)
        target = y if last == count else tools.scratch(y.shape, y.dtype)
        given = {"X": x, "I": indices, "F": found}
        bindings.append(call.bind("unpool", given, target, params | {"first": first, "last": last}))
        found = target
    return bindings
