"""Layers that move, select or count elements."""

from __future__ import annotations

import numpy as np

from perframe.errors import ModelError
from perframe.exporters.sentis.table import SentisLayer, rule
from perframe.ir import Value
from perframe.tensor import DataType

_LEAST, _MOST = -(2**31), 2**31 - 1


@rule("Shape")
def _shape(own: SentisLayer) -> None:
    """All dims end at 8, the largest rank."""
    own.end("Shape", own.input(0), start=own["start"], end=8 if own["end"] is None else own["end"])


@rule("ConstantOfShape")
def _constant_of_shape(own: SentisLayer) -> None:
    value = own["value"]
    number = np.zeros(1, np.float32) if value is None else np.asarray(value)
    is_float = number.dtype == np.float32
    if not is_float and number.dtype not in (np.int32, np.int64, np.bool_):
        raise ModelError(f"its value is {number.dtype}, and Unity has float32 and int32")
    given = {"float": float(number[0]) if is_float else 0.0, "int": 0 if is_float else int(number[0])}
    dtype = DataType.FLOAT32 if is_float else DataType.INT32
    own.end("ConstantOfShape", own.input(0), dtype=dtype, **given)


@rule("Split")
def _split(own: SentisLayer) -> None:
    count = len(own.outputs)
    own.several("Split", [own.input(0), own.optional(1)], count, axis=own["axis"], num_outputs=count)


@rule("TopK")
def _top_k(own: SentisLayer) -> None:
    given = {name: own[name] for name in ("axis", "largest", "sorted")}
    own.several("TopK", [own.input(0), own.input(1)], 2, **given)


@rule("OneHot")
def _one_hot(own: SentisLayer) -> None:
    """Negative indices count from the end."""
    own.end("OneHot", *own.layer.inputs, axis=own["axis"], allow_negative=1)


@rule("Compress")
def _compress(own: SentisLayer) -> None:
    axis = own["axis"]
    own.end("Compress", own.input(0), own.input(1), has_axis=int(axis is not None), axis=axis or 0)


@rule("Slice")
def _slice(own: SentisLayer) -> None:
    """Starts and ends beyond int32 mean the same at its limits."""
    starts, ends = (_clamped(own, own.input(index)) for index in (1, 2))
    own.end("Slice", own.input(0), starts, ends, own.optional(3), own.optional(4))


def _clamped(own: SentisLayer, value: Value) -> Value:
    array = value.constant
    if array is None or array.dtype != np.int64 or not array.size or _LEAST <= array.min() <= array.max() <= _MOST:
        return value
    return own.constant(np.clip(array, _LEAST, _MOST))


@rule("NonMaxSuppression")
def _non_max_suppression(own: SentisLayer) -> None:
    """The most boxes of a class may be beyond int32. Without a number there are none, in Unity too."""
    boxes, scores = own.input(0), own.input(1)
    most = own.optional(2)
    given = [None if most is None else _clamped(own, most), own.optional(3), own.optional(4)]
    own.end(
        "NonMaxSuppression", boxes, scores, *given, center_point_box=own.layer.attributes.get("center_point_box", 0)
    )


@rule("Pad")
def _pad(own: SentisLayer) -> None:
    own.end("Pad", *(own.optional(index) for index in range(4)), mode=own["mode"])


@rule("SpaceToDepth")
def _space_to_depth(own: SentisLayer) -> None:
    own.must_be("Unity has DCR", mode="DCR")
    own.end("SpaceToDepth", own.input(0), blocksize=own["blocksize"])


@rule("ReduceMax", "ReduceMin")
def _reduce(own: SentisLayer) -> None:
    """The most of no bools is false, and the least is true."""
    x, is_most = own.input(0), own.op == "ReduceMax"
    given = {name: own[name] for name in ("keepdims", "noop_with_empty_axes")}
    if x.spec.dtype is not DataType.BOOL:
        own.end(own.op, x, own.optional(1), **given)
        return
    reduced = own.add(own.op, x, own.optional(1), **given)
    own.end("Max" if is_most else "Min", reduced, own.constant(np.array(0 if is_most else 1, np.int32)))
