"""Pooling: the largest element or the average of a sliding window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from perframe.errors import InferenceError
from perframe.layers.base import Known, layer
from perframe.layers.geometry import Ints, Window, window
from perframe.spec import PartialTensor
from perframe.tensor import DataType


@dataclass(frozen=True)
class Pooling:
    """A window over each plane of `size`. `kind` is "largest" or "average"; averages may count the padding."""

    kind: str
    window: Window
    planes: int
    size: Ints
    output: Ints
    count_padding: bool = False


def _output(x: PartialTensor, kernel_shape: Sequence[int], ceil_mode: int, window_: Window | None) -> PartialTensor:
    if x.shape is None:
        return x.with_shape((None,) * (len(kernel_shape) + 2))
    size = x.shape[2:]
    if len(size) != len(kernel_shape):
        raise InferenceError(f"kernel_shape {tuple(kernel_shape)} does not fit {x}")
    dims = [
        None
        if window_ is None or not isinstance(dim, int)
        else Window(*((part[axis],) for part in _parts(window_))).output((dim,), bool(ceil_mode))[0]
        for axis, dim in enumerate(size)
    ]
    return x.with_shape((*x.shape[:2], *dims))


def _parts(window_: Window) -> tuple[Ints, ...]:
    return window_.kernel, window_.strides, window_.dilations, window_.begin, window_.end


def _window(
    x: PartialTensor | Known,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Window | None:
    size = tuple(x.shape[2:]) if x.shape is not None else (None,) * len(kernel_shape)
    return window(size, kernel_shape, strides, dilations, pads, auto_pad)


@layer()
def MaxPool(
    x: PartialTensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> tuple[PartialTensor, PartialTensor]:
    y = _output(x, kernel_shape, ceil_mode, _window(x, kernel_shape, strides, dilations, pads, auto_pad))
    return y, y.with_shape(y.shape, DataType.INT64)


@layer()
def AveragePool(
    x: PartialTensor,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> PartialTensor:
    return _output(x, kernel_shape, ceil_mode, _window(x, kernel_shape, strides, dilations, pads, auto_pad))


def _form(kind: str) -> Callable[..., Pooling]:
    def form(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Pooling:
        x, y = inputs[0], outputs[0]
        names = ("kernel_shape", "strides", "dilations", "pads", "auto_pad")
        chosen = _window(x, *(attributes[name] for name in names))
        assert chosen is not None
        counting = bool(attributes.get("count_include_pad", 0))
        return Pooling(kind, chosen, x.shape[0] * x.shape[1], tuple(x.shape[2:]), tuple(y.shape[2:]), counting)

    return form


MaxPool.form(_form("largest"))
AveragePool.form(_form("average"))
