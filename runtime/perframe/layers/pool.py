"""Pooling: the largest element, the average or a norm of a sliding window. Unpooling: elements go back to the positions
of the largest ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import AutoPad, Extents, Flag, Pads
from perframe.ir.bounds import Bounds
from perframe.ir.declaration import Known, attributes_of, layer
from perframe.ir.form import Bounded
from perframe.ir.geometry import Ints, SlidingWindow, check_window, output_dims, row_major, window
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import Dim, PartialTensor, derived
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class Pooling:
    """A window that slides over each plane of `size`.

    `kind` is "largest", "average" or "norm". With `count_padding` averages count the padding too; `p` is the power of a
    norm. The index of an element counts along rows of its plane, or with `column_major` along columns.
    """

    kind: str
    window: SlidingWindow
    planes: int
    size: Ints
    output: Ints
    count_padding: bool = False
    p: float = 2.0
    column_major: bool = False

    @property
    def index_strides(self) -> Ints:
        """The strides of an element's index in its plane."""
        return row_major(self.size[::-1])[::-1] if self.column_major else row_major(self.size)


def _output(
    x: PartialTensor,
    *,
    kernel_shape: Extents,
    strides: Extents | None = None,
    dilations: Extents | None = None,
    pads: Pads | None = None,
    auto_pad: AutoPad = "NOTSET",
    ceil_mode: Flag = 0,
) -> PartialTensor:
    """Return the output of a pool; the parameters are the attributes that all pools share."""
    check_window(len(kernel_shape), kernel_shape, strides, dilations, pads)
    if x.shape is None:
        return x.with_shape((None,) * (len(kernel_shape) + 2))
    _check_rank(x, kernel_shape)
    dims = output_dims(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    return x.with_shape((*x.shape[:2], *dims))


def _check_rank(x: PartialTensor, kernel_shape: Sequence[int]) -> None:
    if x.shape is not None and (len(x.shape) != len(kernel_shape) + 2 or not kernel_shape):
        raise InferenceError(f"kernel_shape {tuple(kernel_shape)} does not fit {x}")


@layer(spatial=("x",))
@attributes_of(_output)
def MaxPool(x: PartialTensor, *, storage_order: Flag = 0, **shared: Any) -> tuple[PartialTensor, PartialTensor]:
    y = _output(x, **shared)
    return y, y.with_shape(y.shape, DataType.INT64)


@layer(spatial=("x",))
@attributes_of(_output)
def AveragePool(x: PartialTensor, *, count_include_pad: Flag = 0, **shared: Any) -> PartialTensor:
    return _output(x, **shared)


@layer(spatial=("x",))
@attributes_of(_output)
def LpPool(x: PartialTensor, *, p: float = 2, **shared: Any) -> PartialTensor:
    if p <= 0:
        raise InferenceError(f"p is {p}, and must be positive")
    return _output(x, **shared)


def _form(kind: str) -> Callable[..., Pooling]:
    def form(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Pooling:
        x, y = inputs[0], outputs[0]
        names = ("kernel_shape", "strides", "dilations", "pads", "auto_pad")
        chosen = window(x.shape[2:], *(attributes[name] for name in names))
        assert chosen is not None
        counting = bool(attributes.get("count_include_pad"))
        p = float(attributes.get("p", 2))
        planes = x.shape[0] * x.shape[1]
        by_columns = bool(attributes.get("storage_order", 0))
        size = tuple(x.shape[2:])
        return Pooling(kind, chosen.within(size), planes, size, tuple(y.shape[2:]), counting, p, by_columns)

    return form


MaxPool.form(_form("largest"))
AveragePool.form(_form("average"))
LpPool.form(_form("norm"))


@dataclass(frozen=True)
class Unpooling(Bounded):
    """Each element goes to the position that its index names in a tensor of shape `whole`; all others are 0.

    The tensor's elements come first in the output.
    """

    whole: Ints

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """The bounds of the indices."""
        return (Bounds(1, (math.prod(self.whole),), from_end=False),)


def _whole(shape: Sequence[Dim], kernel_shape: Extents, strides: Extents | None, pads: Pads | None) -> tuple[Dim, ...]:
    rank = len(kernel_shape)
    steps, cut = strides or (1,) * rank, pads or (0,) * 2 * rank
    more = [taps - cut[axis] - cut[axis + rank] for axis, taps in enumerate(kernel_shape)]
    dims = [
        derived(lambda size, step, more: (size - 1) * step + more, *along)
        for along in zip(shape[2:], steps, more, strict=True)
    ]
    return (*shape[:2], *dims)


@layer(host=("output_shape",))
def MaxUnpool(
    x: PartialTensor,
    indices: PartialTensor,
    output_shape: PartialTensor | None = None,
    *,
    kernel_shape: Extents,
    strides: Extents | None = None,
    pads: Pads | None = None,
) -> PartialTensor:
    check_window(len(kernel_shape), kernel_shape, strides, None, pads)
    _check_rank(x, kernel_shape)
    if x.shape is not None and indices.shape is not None and not x.shape.may_be(indices.shape):
        raise InferenceError(f"indices {indices} do not have one index for each element of {x}")
    rank = len(kernel_shape) + 2
    whole = (None,) * rank if x.shape is None else _whole(x.shape, kernel_shape, strides, pads)
    if any(isinstance(dim, int) and dim < 0 for dim in whole):
        raise InferenceError(f"{x} cannot be unpooled: its output would have the shape {whole}")
    if output_shape is not None:
        wanted = listed(output_shape)
        if wanted is not None and len(wanted) != rank:
            raise InferenceError(f"output_shape {wanted} does not have the rank of {x}")
        return x.with_shape(wanted or (None,) * rank)
    return x.with_shape(whole)


@MaxUnpool.form
def _max_unpool(
    inputs: Sequence[Known],
    outputs: Sequence[Known],
    *,
    kernel_shape: Extents,
    strides: Extents | None,
    pads: Pads | None,
) -> Unpooling:
    whole = _whole(tuple(inputs[0].shape), kernel_shape, strides, pads)
    return Unpooling(tuple(dim for dim in whole if isinstance(dim, int)))
