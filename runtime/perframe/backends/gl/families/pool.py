"""Pooling and unpooling on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.gl.steps import GPU_DTYPES, ROUNDS, Binding, Call, Tools, ints, kind_of
from perframe.layers.geometry import row_major
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


def padded(values: Sequence[int], missing: int, length: int) -> list[int]:
    """`values` extended in front to `length` dims by `missing`."""
    return [*(missing,) * (length - len(values)), *values]


def two(values: Sequence[int], missing: int) -> list[int]:
    """`values` extended to two dims by `missing`."""
    return padded(values, missing, 2)


def lower(call: Call[Any], tools: Tools) -> list[Binding]:
    """One kernel for each output, or those of unpooling."""
    x, form = call.x, call.form
    if isinstance(form, Unpooling):
        return _unpool(call, tools)
    places = row_major(form.size)
    if call.layer.attributes.get("storage_order"):
        places = row_major(form.size[::-1])[::-1]
    general = {**_numbers(form, 3), "places": padded(places, 0, 3)}
    nothing = {"NOTHING": "(-1.0 / 0.0)" if kind_of(x.dtype) == "float" else "0.0"}  # for a window of padding alone
    indices = [call.bind("pool_any", {"X": x}, y, general, {"INDEX": "1", **nothing}) for y in call.outputs[1:]]
    if len(form.size) <= 2 and kind_of(x.dtype) == "float":
        return [call.bind("pool", {"X": x}, call.y, _numbers(form, 2)), *indices]
    return [call.bind("pool_any", {"X": x}, call.y, general, nothing), *indices]


def _numbers(form: Pooling, length: int) -> dict[str, Any]:
    w = form.window
    return {
        "size": padded(form.size, 1, length),
        "output_": padded(form.output, 1, length),
        "kernel": padded(w.kernel, 1, length),
        "stride": padded(w.strides, 1, length),
        "dilation": padded(w.dilations, 1, length),
        "begin": padded(w.begin, 0, length),
        "end": padded(w.end, 0, length),
        "kind": _KINDS[form.kind],
        "p": form.p,
        "count_padding": int(form.count_padding),
    }


def _count(call: Call[Any]) -> int:
    """The number of elements of one plane of the input."""
    return math.prod(call.x.shape[2:])


def _unpool(call: Call[Unpooling], tools: Tools) -> list[Binding]:
    """Either each input element is stored among zeros, or each output element searches the inputs of its plane.

    If several elements go to one place, as from windows that overlap, they are the same element of the pooled tensor.
    """
    form, x, y, indices = call.form, call.x, call.y, call.input(1)
    params: dict[str, Any] = {"shape": ints(y.shape), "whole": ints(form.whole), "rank": len(form.whole)}
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
