"""Pooling and unpooling on GL."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from perframe.backends.gl.families.select import first_indices
from perframe.backends.gl.lowering.steps import GPU_DTYPES, MOST_DIMS, Binding, Call, Tools, kind_of, window_params
from perframe.ir.geometry import SlidingWindow, in_dims
from perframe.layers.blocks import BLOCK
from perframe.layers.pool import Pooling, Unpooling
from perframe.layers.select import Selection
from perframe.tensor import DataType

DTYPES = (*GPU_DTYPES, DataType.INT8, DataType.UINT8)  # the largest element never overflows

_DEFINES = {"largest": {}, "average": {"AVERAGE": "1"}, "norm": {"NORM": "1"}}


def supports(call: Call[Pooling | Unpooling]) -> str | None:
    """Supports pooling over up to three spatial dims, and unpooling of as many dims as a kernel's arrays hold."""
    form = call.form
    if isinstance(form, Unpooling):
        rank = len(form.whole)
        return None if rank <= MOST_DIMS else f"{rank} dims are more than a kernel's {MOST_DIMS}"
    if len(form.size) > 3:
        return "pooling over more than three dims has no GL kernel"
    if kind_of(call.y.dtype) != "float" and form.kind != "largest":
        return f"pooling {call.y.dtype} has no GL kernel"
    return (
        None
        if 8 * math.prod(form.window.kernel) <= call.rounds
        else f"a window of {form.window.kernel} is too large for one shader"
    )


def lower(call: Call[Pooling | Unpooling], tools: Tools) -> list[Binding]:
    """One kernel for each output, or those of unpooling."""
    form = call.form
    if isinstance(form, Unpooling):
        return _unpool(call, form, tools)
    if _has_blocks(form) and not call.outputs[1:] and kind_of(call.y.dtype) == "float":
        return [_of_blocks(call, form)]
    params = {
        **window_params(form.window, 3, size=form.size, output_=form.output),
        "end": form.window.in_dims(3).end,
        "index_stride": in_dims(form.index_strides, 3, 0),
    }
    nothing = "(-1.0 / 0.0)" if kind_of(call.x.dtype) == "float" else "0"
    defines = {"NOTHING": nothing, **_DEFINES[form.kind]}
    if len(form.size) == 3:
        defines["VOLUME"] = "1"
    return [
        call.bind("pool", {"X": call.x}, y, params, defines | ({"INDEX": "1"} if is_index else {}))
        for is_index, y in enumerate(call.outputs)
    ]


def _has_blocks(form: Pooling) -> bool:
    """Whether the last dim holds the channels of a block, and each is pooled alone."""
    window = form.window
    channels = len(form.size) > 1 and form.size[-1] == form.output[-1] == BLOCK
    alone = window.kernel[-1] == window.strides[-1] == 1 and not window.begin[-1] and not window.end[-1]
    return channels and alone and form.kind in ("largest", "average") and len(form.size) <= 3


def _of_blocks(call: Call[Any], form: Pooling) -> Binding:
    """The kernel that pools four channels at once."""
    window = form.window
    plane = SlidingWindow(
        *(part[:-1] for part in (window.kernel, window.strides, window.dilations, window.begin, window.end))
    )
    params = window_params(plane, 2, size=form.size[:-1], output_=form.output[:-1])
    params |= {"end": plane.in_dims(2).end, "largest": form.kind == "largest"}
    return call.bind("block_pool", {"X": call.x}, call.y, params)


def _unpool(call: Call[Any], form: Unpooling, tools: Tools) -> list[Binding]:
    """Either each input element is stored among zeros, or each output element searches the sorted indices of its plane.

    If several elements go to one index, as from windows that overlap, they are the same element of the pooled tensor.
    """
    x, y, indices = call.x, call.y, call.input(1)
    params: dict[str, Any] = {"shape": y.shape, "rank": len(form.whole)}
    if tools.stores_anywhere:
        zeros = call.copy(tools.constant(np.zeros(1, np.float32)), y, step=0)
        stores = call.bind("compute/unpool", {"X": x, "I": indices}, y, params, tiles=x.shape.size)
        return [zeros, stores] if x.shape.size else [zeros]
    count, order = math.prod(x.shape[2:]), tools.scratch(x.shape, DataType.INT32)
    params |= {"plane": math.prod(form.whole[2:]), "count": count}
    rows = math.prod(x.shape[:2])
    sorting = Call(call.layer, Selection("indices", rows, count, 1, count, largest=False), [indices], [order])
    steps = first_indices(sorting, order, tools) if count else []
    return [*steps, call.bind("unpool", {"X": x, "I": indices, "S": order}, y, params)]
