"""Convolution and its transpose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from perframe.errors import InferenceError
from perframe.ir.attributes import AutoPad, Extents, Pads, Positive
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Counted
from perframe.ir.geometry import NOT_SET, Ints, SlidingWindow, check_window, output_dims, window
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, derived, dim_product
from perframe.ir.sizes.size import at_least
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Convolution(Counted):
    """A convolution of (batch, channels, *size) to (batch, outputs, *output).

    The weights are (outputs, channels / groups, *kernel). Those of the transpose are (channels, outputs / groups,
    *kernel), and its window slides over the output.
    """

    window: SlidingWindow
    groups: int
    batch: int
    channels: int
    outputs: int
    size: Ints
    output: Ints

    @property
    def depth(self) -> int:
        """The input channels of a group."""
        return self.channels // self.groups

    @property
    def operations(self) -> int:
        """Multiplications and additions, padding included."""
        return 2 * self._pairs * math.prod(self.output)

    @property
    def _pairs(self) -> int:
        """The number of times that a channel meets an output under a tap of the window."""
        return self.batch * self.channels * self.outputs // self.groups * math.prod(self.window.kernel)


@dataclass(frozen=True)
class TransposedConvolution(Convolution):
    """The window slides over the output, once for each element of the input."""

    @property
    def operations(self) -> int:
        """Multiplications and additions, cropped ones included."""
        return 2 * self._pairs * math.prod(self.size)


def _spatial(
    x: PartialTensor,
    w: PartialTensor,
    kernel_shape: Extents | None,
    strides: Extents | None,
    dilations: Extents | None,
    pads: Pads | None,
) -> tuple[Dim, ...] | None:
    """Return the dims of the kernel; None if their number is unknown.

    Raises InferenceError if the attributes of the window do not fit the kernel or the input.
    """
    kernel: tuple[Dim, ...] | None = tuple(kernel_shape) if kernel_shape else None
    if w.shape is not None:
        if len(w.shape) < 3:
            raise InferenceError(f"the weights {w} have no spatial dims")
        own = w.shape[2:]
        if kernel is not None and kernel != own and not DynamicTensorShape(own).may_be(kernel):
            raise InferenceError(f"kernel_shape {kernel} is not that of the weights {w}")
        if 0 in own:
            raise InferenceError(f"the weights {w} have a kernel without elements")
        kernel = own
    if kernel is not None:
        check_window(len(kernel), kernel_shape, strides, dilations, pads)
        if x.shape is not None and len(x.shape) != len(kernel) + 2:
            raise InferenceError(f"x is {x}, but the weights {w} are for {len(kernel)} spatial dims")
    return kernel


def _check_groups(what: str, channels: Dim, group: int) -> None:
    if isinstance(channels, int) and channels % group:
        raise InferenceError(f"{channels} {what} channels do not make {group} groups")


def _check_bias(b: PartialTensor | None, outputs: Dim) -> None:
    if b is not None and b.shape is not None and not b.shape.may_be((outputs,)):
        raise InferenceError(f"the bias is {b}, and one number for each of {outputs} output channels is expected")


def check_addend(addend: PartialTensor, made: PartialTensor) -> None:
    """Raise InferenceError unless an addend has one number for each sum of a convolution; it may have fewer channels.

    The pass that fused the addition may not have known the dims.
    """
    if addend.shape is None or made.shape is None:
        return
    given, wanted = ([shape[0], *shape[2:]] for shape in (addend.shape, made.shape))
    pairs = zip(given, wanted, strict=False)
    if len(given) != len(wanted) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise InferenceError(
            f"{addend} is added to a convolution's {made}: give the model's inputs named or fixed dims"
        )


@layer(spatial=("x", "addend", "factor"))
def Conv(
    x: PartialTensor,
    w: PartialTensor,
    b: PartialTensor | None = None,
    addend: PartialTensor | None = None,
    factor: PartialTensor | None = None,
    *,
    kernel_shape: Extents | None = None,
    strides: Extents | None = None,
    dilations: Extents | None = None,
    pads: Pads | None = None,
    auto_pad: AutoPad = "NOTSET",
    group: Positive = 1,
) -> PartialTensor:
    kernel = _spatial(x, w, kernel_shape, strides, dilations, pads)
    if kernel is None:
        return x.with_shape(None if x.shape is None else (None,) * len(x.shape))
    channels, outputs = (None, None) if w.shape is None else (w.shape[1], w.shape[0])
    _check_bias(b, outputs)
    _check_groups("output", outputs, group)
    if x.shape is None:
        return x.with_shape((None, outputs, *(None,) * len(kernel)))
    if isinstance(x.shape[1], int) and isinstance(channels, int) and x.shape[1] != channels * group:
        raise InferenceError(f"x is {x}, but the weights {w} in {group} group(s) want {channels * group} channels")
    dims = output_dims(x.shape[2:], kernel, strides, dilations, pads, auto_pad)
    made = x.with_shape((x.shape[0], outputs, *dims))
    if addend is not None:
        check_addend(addend, made)
    return made


@Conv.form
def _conv(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Convolution:
    x, w, y = inputs[0], inputs[1], outputs[0]
    names = ("strides", "dilations", "pads", "auto_pad")
    chosen = window(x.shape[2:], w.shape[2:], *(attributes[name] for name in names))
    assert chosen is not None
    groups = attributes["group"]
    return Convolution(chosen, groups, x.shape[0], x.shape[1], w.shape[0], tuple(x.shape[2:]), tuple(y.shape[2:]))


def transposed_pads(
    size: Sequence[Dim],
    kernel: Sequence[int],
    strides: Extents,
    dilations: Extents,
    pads: Pads | None,
    auto_pad: str,
    output_padding: Sequence[int],
    output_shape: Sequence[int] | None,
) -> tuple[list[int], list[Dim]]:
    """Return the padding at the begin of each axis, and the dims of the output."""
    begin: list[int] = []
    dims: list[Dim] = []
    rank, same = len(kernel), auto_pad in ("SAME_UPPER", "SAME_LOWER")
    for axis, dim in enumerate(size):
        step, more = strides[axis], dilations[axis] * (kernel[axis] - 1) + 1 + output_padding[axis]
        if output_shape or same:
            wanted = output_shape[axis] if output_shape else dim_product(dim, step)
            known = isinstance(dim, int) and isinstance(wanted, int)  # an open dim has no padding that is known
            total = max(0, step * (dim - 1) + more - wanted) if known else 0  # type: ignore[operator]
            begin.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
            dims.append(wanted)
        else:
            first, last = (pads[axis], pads[axis + rank]) if pads and auto_pad in NOT_SET else (0, 0)
            begin.append(first)
            more -= first + last
            dims.append(derived(lambda size, step, more: at_least(step * (size - 1) + more, 0), dim, step, more))
    return begin, dims


@layer(family="conv_transpose", spatial=("x",))
def ConvTranspose(
    x: PartialTensor,
    w: PartialTensor,
    b: PartialTensor | None = None,
    *,
    kernel_shape: Extents | None = None,
    strides: Extents | None = None,
    dilations: Extents | None = None,
    pads: Pads | None = None,
    auto_pad: AutoPad = "NOTSET",
    output_padding: Pads | None = None,
    output_shape: Pads | None = None,
    group: Positive = 1,
) -> PartialTensor:
    kernel = _spatial(x, w, kernel_shape, strides, dilations, pads)
    for name, values in (("output_padding", output_padding), ("output_shape", output_shape)):
        if kernel is not None and values and len(values) != len(kernel):
            raise InferenceError(f"{name} {tuple(values)} has no number for each of {len(kernel)} spatial dims")
    outputs = dim_product(w.shape[1], group) if w.shape is not None else None
    _check_bias(b, outputs)
    if w.shape is not None:
        _check_groups("input", w.shape[0], group)
        if (
            x.shape is not None
            and isinstance(x.shape[1], int)
            and isinstance(w.shape[0], int)
            and x.shape[1] != w.shape[0]
        ):
            raise InferenceError(f"x is {x}, but the weights {w} want {w.shape[0]} channels")
    if x.shape is None or kernel is None or not all(isinstance(dim, int) for dim in kernel):
        return x.with_shape(None if x.shape is None else (None,) * len(x.shape))
    sizes = [dim for dim in kernel if isinstance(dim, int)]
    ones = (1,) * len(sizes)
    known = (strides or ones, dilations or ones, pads, auto_pad, output_padding or (0,) * len(sizes), output_shape)
    _, dims = transposed_pads(x.shape[2:], sizes, *known)
    return x.with_shape((x.shape[0], outputs, *dims))


@ConvTranspose.form
def _conv_transpose(inputs: Sequence[Known], outputs: Sequence[Known], **attributes: Any) -> Convolution:
    x, w, y = inputs[0], inputs[1], outputs[0]
    kernel = tuple(w.shape[2:])
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    steps, spread = tuple(attributes["strides"] or ones), tuple(attributes["dilations"] or ones)
    known = (
        attributes["pads"],
        attributes["auto_pad"],
        attributes["output_padding"] or zeros,
        attributes["output_shape"],
    )
    begin, _ = transposed_pads(x.shape[2:], kernel, steps, spread, *known)
    chosen = SlidingWindow(kernel, steps, spread, tuple(begin), zeros)
    groups = attributes["group"]
    size, output = tuple(x.shape[2:]), tuple(y.shape[2:])
    return TransposedConvolution(chosen, groups, x.shape[0], w.shape[0], y.shape[1], size, output)
