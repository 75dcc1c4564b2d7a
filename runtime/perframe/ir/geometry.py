"""Strides and windows: how an output element finds the elements of its inputs.

Every family that only moves data describes its layers by strides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from perframe.errors import InferenceError
from perframe.ir.form import Followed
from perframe.ir.shape_arithmetic import Values, numbers_of
from perframe.ir.sizes.partial import Dim, PartialTensor, derived
from perframe.ir.sizes.size import at_least, is_less, surely_less
from perframe.ir.sizes.tables import remembered
from perframe.safety.records import dataclass

Ints = tuple[int, ...]
MAX_PADDING = 2**30  # keeps indices into a padded input within int32, which kernels on a GPU use
FEW_TAPS = 16  # windows of so few elements are cheap
NOT_SET = ("NOTSET", "")  # the values of auto_pad with which `pads` counts


def row_major(shape: Sequence[int]) -> Ints:
    """Return row-major strides, in elements."""
    return _row_major(tuple(shape))


@remembered(4096)
def _row_major(shape: Ints) -> Ints:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> Ints:
    """Return the strides that read a tensor of `shape` as one of `target`; the stride of a repeated dim is 0.

    Raises InferenceError if `shape` does not broadcast to `target`: a kernel would read beyond the tensor's end.
    """
    return _broadcast_strides(tuple(shape), tuple(target))


@remembered(4096)
def _broadcast_strides(shape: Ints, target: Ints) -> Ints:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    if len(shape) > len(target) or any(dim not in (1, wanted) for dim, wanted in pairs):
        raise InferenceError(f"{tuple(shape)} does not broadcast to {tuple(target)}")
    strides = [0 if dim == 1 else stride for dim, stride in zip(shape, row_major(shape), strict=True)]
    return (0,) * (len(target) - len(shape)) + tuple(strides)


def collapse(shape: Sequence[int], strides: Sequence[Ints]) -> tuple[Ints, tuple[Ints, ...]]:
    """Return shape and strides of the same elements in the same order, with as few dims as possible.

    Dims of 1 are dropped, and neighbors are merged where all strides allow it.
    """
    return _collapse(tuple(shape), tuple(map(tuple, strides)))


@remembered(4096)
def _collapse(shape: Ints, strides: tuple[Ints, ...]) -> tuple[Ints, tuple[Ints, ...]]:
    dims: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, dim in enumerate(shape):
        if dim == 1:
            continue
        current = [stride[axis] for stride in strides]
        if dims and all(step[-1] == now * dim for step, now in zip(steps, current, strict=True)):
            dims[-1] *= dim
            for step, now in zip(steps, current, strict=True):
                step[-1] = now
        else:
            dims.append(dim)
            for step, now in zip(steps, current, strict=True):
                step.append(now)
    return tuple(dims) or (1,), tuple(tuple(step) or (0,) for step in steps)


@dataclass(frozen=True)
class View(Followed):
    """The output element at coordinate c is the input's element `offset + sum(c * strides)`."""

    shape: Ints
    strides: Ints
    offset: int = 0

    def collapsed(self) -> View:
        """Return this view with as few dims as possible."""
        shape, (strides,) = collapse(self.shape, (self.strides,))
        return View(shape, strides, self.offset)

    def of(self, flat: Values) -> Values:
        """Return the elements of an array that the view reads, in the view's shape."""
        if not math.prod(self.shape):
            return np.empty(self.shape, flat.dtype)
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(np.ascontiguousarray(flat).reshape(-1)[self.offset :], self.shape, steps)

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Return the values of the first input that the view reads."""
        assert inputs[0] is not None
        return self.of(numbers_of(inputs[0]))

    @property
    def is_copy(self) -> bool:
        """Whether the view reads contiguous elements, in order."""
        return math.prod(self.shape) <= 1 or self.collapsed().strides == (1,)


def in_dims(values: Sequence[int], dims: int, missing: int = 1) -> Ints:
    """Return `values` with `missing` in front of them for each dim that they lack. A dim of one element comes first
    without a change of order.
    """
    return (*(missing,) * (dims - len(values)), *values)


@dataclass(frozen=True)
class SlidingWindow:
    """A window that slides over the last dims: pooling and convolution.

    `begin` and `end` hold the padding at the two ends of each dim.
    """

    kernel: Ints
    strides: Ints
    dilations: Ints
    begin: Ints
    end: Ints

    def in_dims(self, dims: int) -> SlidingWindow:
        """Return the window that slides in the same way over `dims` dims; the first ones have one element."""
        kernel, strides, dilations = (in_dims(part, dims) for part in (self.kernel, self.strides, self.dilations))
        return SlidingWindow(kernel, strides, dilations, in_dims(self.begin, dims, 0), in_dims(self.end, dims, 0))

    def from_axis(self, axis: int) -> SlidingWindow:
        """Return the window along an axis and those after it."""
        return SlidingWindow(
            self.kernel[axis:], self.strides[axis:], self.dilations[axis:], self.begin[axis:], self.end[axis:]
        )

    def rests(self, axis: int) -> bool:
        """Whether the window is each single element along an axis."""
        return self.kernel[axis] == self.strides[axis] == 1 and self.begin[axis] == self.end[axis] == 0

    def within(self, size: Sequence[int]) -> SlidingWindow:
        """Return an equal window without taps that lie beyond the input and its padding at every position. Exporters
        write averages of whole pictures as windows of a thousand elements. Windows of a few elements stay unchanged.
        """
        kernel = list(self.kernel)
        for axis, (dim, taps) in enumerate(zip(size, self.kernel, strict=True)):
            last = dim + self.begin[axis] + self.end[axis] - 1
            if taps > FEW_TAPS and last < (taps - 1) * self.dilations[axis]:
                kernel[axis] = last // self.dilations[axis] + 1
        return replace(self, kernel=tuple(kernel))

    def merged(self, size: Sequence[int], output: Sequence[int]) -> tuple[SlidingWindow, Ints, Ints]:
        """Return an equal window over the same elements, its size and its output, with as few dims as possible.

        Dims of one element are dropped, and neighboring dims along which the window does not reach are merged.
        """
        kept: list[list[int]] = []
        parts = (size, output, self.kernel, self.strides, self.dilations, self.begin, self.end)
        resting = [1, 1, 1, 0, 0]
        for dim, out, *along in zip(*parts, strict=True):
            if along[0] == 1:
                along[2] = 1  # the dilation of a single tap
            if along[0] == 1 and along[3] == 0 and dim == 1 and out == 1:
                continue
            if kept and along == kept[-1][2:] == resting:
                kept[-1][:2] = kept[-1][0] * dim, kept[-1][1] * out
            else:
                kept.append([dim, out, *along])
        dims, outs, *rest = (tuple(part) for part in zip(*(kept or [[1, 1, *resting]]), strict=True))
        return SlidingWindow(*rest), dims, outs

    def joined_at_end(self, size: Sequence[int], output: Sequence[int]) -> tuple[SlidingWindow, Ints, Ints]:
        """Return an equal window over the same elements with the last two dims as one, its size and its output, if the
        window rests along the last dim and steps by one along the other. Else return what is given.

        Taps of the other dim are a line of the last one apart. They leave the joined dim where they left their own.
        """
        line = size[-1]
        if not self.rests(-1) or self.strides[-2] != 1 or line == 0:
            return self, tuple(size), tuple(output)

        def joined(part: Sequence[int]) -> Ints:
            return (*part[:-2], part[-2] * line)

        spans = joined(self.dilations), joined(self.begin), joined(self.end)
        return SlidingWindow(self.kernel[:-1], self.strides[:-1], *spans), joined(size), joined(output)

    def output(self, size: Sequence[int], ceil_mode: bool = False) -> Ints:
        """Return the spatial dims of the output.

        Raises InferenceError if the window does not fit into its input. A dim of 0 elements is allowed.
        """
        parts = zip(size, self.kernel, self.strides, self.dilations, self.begin, self.end, strict=True)
        return cast("Ints", tuple([_output_dim(*part, ceil_mode) for part in parts]))


@remembered(4096, typed=True)
def _output_dim(dim: Dim, kernel: int, stride: int, dilation: int, begin: int, end: int, ceil_mode: bool) -> Dim:
    extent = dilation * (kernel - 1) + 1

    def count(size: int) -> int:
        space = size + begin + end - extent
        steps = -(-space // stride) if ceil_mode else space // stride
        if ceil_mode:  # no window may begin inside the padding at the end
            steps -= 1 - is_less(steps * stride, size + begin)
        if surely_less(steps, 0) and surely_less(0, size):
            raise InferenceError(
                f"a window that reaches over {extent} elements (kernel {kernel}, dilation {dilation}) does not fit "
                f"into {dim} elements with {begin + end} of padding"
            )
        return at_least(steps + 1, 0)

    return derived(count, dim)


def check_window(
    rank: int,
    kernel: Sequence[Dim] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> None:
    """Raise InferenceError unless each attribute of a window has one number for each of `rank` spatial dims.

    `pads` must have two for each. Kernels read these numbers one after another: a wrong count would shift them.
    """
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations), ("pads", pads)):
        wanted = 2 * rank if name == "pads" else rank
        if values and len(values) != wanted:
            raise InferenceError(f"{name} {tuple(values)} has {len(values)} numbers, and {wanted} are expected")


def window(
    size: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> SlidingWindow | None:
    """Return ONNX's window attributes with defaults and `auto_pad` resolved; None if that needs an unknown dim.

    The caller has checked them with `check_window`. Raises InferenceError for padding that is too large for kernels.
    """
    rank = len(kernel)
    steps, spread = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = [], []
        for axis, dim in enumerate(size):
            extent = spread[axis] * (kernel[axis] - 1) + 1
            if isinstance(dim, int):
                total = max(0, (-(-dim // steps[axis]) - 1) * steps[axis] + extent - dim)
            elif steps[axis] == 1:
                total = extent - 1
            else:
                return None
            first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            begin.append(first)
            end.append(total - first)
        given = (*begin, *end)
    else:
        given = tuple(pads) if pads and auto_pad in NOT_SET else (0,) * (2 * rank)
    _check_padding(given)
    return SlidingWindow(tuple(kernel), steps, spread, given[:rank], given[rank:])


def output_dims(
    size: Sequence[Dim],
    kernel: Sequence[Dim],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
    ceil_mode: bool = False,
) -> list[Dim]:
    """Return the output's dims for ONNX's window attributes; None for a dim whose kernel or size is unknown.

    The caller has checked the attributes with `check_window`. Raises InferenceError if the window does not fit.
    """
    rank, dims = len(kernel), list[Dim]()
    same, padded = auto_pad in ("SAME_UPPER", "SAME_LOWER"), pads if auto_pad in NOT_SET else None
    for axis, (dim, taps) in enumerate(zip(size, kernel, strict=True)):
        step, spread = strides[axis] if strides else 1, dilations[axis] if dilations else 1
        begin, end = (padded[axis], padded[axis + rank]) if padded else (0, 0)
        if same and isinstance(dim, int) and isinstance(taps, int):
            along = window((dim,), (taps,), (step,), (spread,), None, auto_pad)
            assert along is not None
            begin, end = along.begin[0], along.end[0]
        _check_padding((begin, end))
        if not isinstance(taps, int):
            dims.append(None)
        elif same and not isinstance(dim, int):
            dims.append(derived(lambda size, step: -(-size // step), dim, step))
        else:
            dims.append(_output_dim(dim, taps, step, spread, begin, end, ceil_mode))
    return dims


def _check_padding(pads: Sequence[int]) -> None:
    if any([pad > MAX_PADDING for pad in pads]):
        raise InferenceError(
            f"padding of {max(pads)} elements is more than kernels hold: at most {MAX_PADDING} are possible"
        )
