"""Pooling: the largest element, the average or a norm of a sliding window; and back to where the largest were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perframe.errors import InferenceError
from perframe.layers.base import Known, attributes_of, layer
from perframe.layers.geometry import Ints, Window, window
from perframe.spec import Dim, PartialTensor
from perframe.tensor import DataType


@dataclass(frozen=True)
class Pooling:
    """A window over each plane of `size`. `kind` is "largest", "average" or "norm"; averages may count the padding,
    norms are sums of powers `p`.
    """

    kind: str
    window: Window
    planes: int
    size: Ints
    output: Ints
    count_padding: bool = False
    p: float = 2.0


def _output(
    x: PartialTensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> PartialTensor:
    """What all pools make of x, and the attributes that they share."""
    if x.shape is None:
        return x.with_shape((None,) * (len(kernel_shape) + 2))
    size = x.shape[2:]
    if len(size) != len(kernel_shape):
        raise InferenceError(f"kernel_shape {tuple(kernel_shape)} does not fit {x}")
    whole = window(size, kernel_shape, strides, dilations, pads, auto_pad)
    dims = [
        None
        if whole is None or not isinstance(dim, int)
        else Window(*((part[axis],) for part in _parts(whole))).output((dim,), bool(ceil_mode))[0]
        for axis, dim in enumerate(size)
    ]
    return x.with_shape((*x.shape[:2], *dims))


def _parts(window_: Window) -> tuple[Ints, ...]:
    return window_.kernel, window_.strides, window_.dilations, window_.begin, window_.end


@layer()
@attributes_of(_output)
def MaxPool(x: PartialTensor, *, storage_order: int = 0, **shared: Any) -> tuple[PartialTensor, PartialTensor]:
    y = _output(x, **shared)
    return y, y.with_shape(y.shape, DataType.INT64)


@layer()
@attributes_of(_output)
def AveragePool(x: PartialTensor, *, count_include_pad: int = 0, **shared: Any) -> PartialTensor:
    return _output(x, **shared)


@layer()
@attributes_of(_output)
def LpPool(x: PartialTensor, *, p: float = 2, **shared: Any) -> PartialTensor:
    if p <= 0:
        raise InferenceError(f"p is {p}, and a norm's power is positive")
    return _output(x, **shared)


def _form(kind: str) -> Callable[..., Pooling]:
    def form(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Pooling:
        x, y = inputs[0], outputs[0]
        names = ("kernel_shape", "strides", "dilations", "pads", "auto_pad")
        chosen = window(x.shape[2:], *(attributes[name] for name in names))
        assert chosen is not None
        counting = bool(attributes.get("count_include_pad", 0))
        p = float(attributes.get("p", 2))
        planes = x.shape[0] * x.shape[1]
        return Pooling(kind, chosen, planes, tuple(x.shape[2:]), tuple(y.shape[2:]), counting, p)

    return form


MaxPool.form(_form("largest"))
AveragePool.form(_form("average"))
LpPool.form(_form("norm"))


@dataclass(frozen=True)
class Unpooling:
    """Elements go to where indices say in a tensor of shape `whole`, which begins the output's; the rest is 0."""

    whole: Ints


def _whole(
    shape: Sequence[Dim], kernel_shape: Sequence[int], strides: Sequence[int] | None, pads: Sequence[int] | None
) -> tuple[Dim, ...]:
    rank = len(kernel_shape)
    steps, cut = strides or (1,) * rank, pads or (0,) * 2 * rank
    dims = [
        (dim - 1) * steps[axis] - cut[axis] - cut[axis + rank] + kernel_shape[axis] if isinstance(dim, int) else None
        for axis, dim in enumerate(shape[2:])
    ]
    return (*shape[:2], *dims)


@layer(host=("output_shape",))
def MaxUnpool(
    x: PartialTensor,
    indices: PartialTensor,
    output_shape: PartialTensor | None = None,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
) -> PartialTensor:
    if output_shape is not None:
        return x.with_shape(output_shape.elements or (None,) * (len(kernel_shape) + 2))
    if x.shape is None:
        return x.with_shape((None,) * (len(kernel_shape) + 2))
    if len(x.shape) != len(kernel_shape) + 2:
        raise InferenceError(f"kernel_shape {tuple(kernel_shape)} does not fit {x}")
    return x.with_shape(_whole(x.shape, kernel_shape, strides, pads))


@MaxUnpool.form
def _max_unpool(
    inputs: Sequence[Known],
    outputs: Sequence[Known],
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> Unpooling:
    whole = _whole(tuple(inputs[0].shape), kernel_shape, strides, pads)
    return Unpooling(tuple(dim for dim in whole if isinstance(dim, int)))
