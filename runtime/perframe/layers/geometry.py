"""Strides: how an output element finds its inputs' elements. Every family that only moves data speaks this language."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perframe.errors import InferenceError
from perframe.sizes.traced import remembered

if TYPE_CHECKING:
    from perframe.layers.entries import Entries
    from perframe.tensor.partial import PartialTensor

Ints = tuple[int, ...]
MAX_PADDING = 2**30  # so that places in a padded input are int32, as kernels on a GPU count them
NOT_SET = ("NOTSET", "")  # of auto_pad: the pads count


def row_major(shape: Sequence[int]) -> Ints:
    """Row-major strides, in elements."""
    return _row_major(tuple(shape))


@remembered(4096)
def _row_major(shape: Ints) -> Ints:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> Ints:
    """The strides with which a tensor of `shape` is read as one of `target`; 0 where it repeats.

    Raises InferenceError where it does not broadcast to that: a kernel would read beyond its end.
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
    """The same walk with as few dims as possible: dims of 1 dropped, neighbours merged where all strides allow."""
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
class View:
    """Output element at coordinate c is the input's element `offset + sum(c * strides)`."""

    shape: Ints
    strides: Ints
    offset: int = 0

    def collapsed(self) -> View:
        """With as few dims as possible."""
        shape, (strides,) = collapse(self.shape, (self.strides,))
        return View(shape, strides, self.offset)

    def of(self, flat: Entries) -> Entries:
        """What it reads of an array's elements."""
        if not math.prod(self.shape):
            return np.empty(self.shape, flat.dtype)
        steps = [stride * flat.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(np.ascontiguousarray(flat).reshape(-1)[self.offset :], self.shape, steps)

    def of_entries(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Entries:
        """What it reads of the first input."""
        assert inputs[0] is not None and inputs[0].known is not None
        return self.of(inputs[0].known)

    @property
    def is_copy(self) -> bool:
        """Whether it reads a contiguous run, in order."""
        return math.prod(self.shape) <= 1 or self.collapsed().strides == (1,)


@dataclass(frozen=True)
class Window:
    """A window that slides over the last dims: pooling and convolution.

    `pads` are those at each dim's begin and end.
    """

    kernel: Ints
    strides: Ints
    dilations: Ints
    begin: Ints
    end: Ints

    def output_dim(self, dim: int | str | None) -> int | str | None:
        """The output's dim of a window over one; a dim that is not known stays where the window keeps every size."""
        if isinstance(dim, int):
            return self.output((dim,))[0]
        border = self.dilations[0] * (self.kernel[0] - 1)
        return dim if self.strides[0] == 1 and self.begin[0] + self.end[0] == border else None

    def output(self, size: Sequence[int], ceil_mode: bool = False) -> Ints:
        """The spatial dims of the output. Raises InferenceError where the window does not fit into its input; over no
        elements it may.
        """
        result = []
        for axis, dim in enumerate(size):
            extent = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            space = dim + self.begin[axis] + self.end[axis] - extent
            steps = -(-space // self.strides[axis]) if ceil_mode else space // self.strides[axis]
            # ceil_mode must not begin a window inside the padding at the end
            if ceil_mode and steps * self.strides[axis] >= dim + self.begin[axis]:
                steps -= 1
            if steps < 0 and dim > 0:
                raise InferenceError(
                    f"a window that reaches over {extent} elements (kernel {self.kernel[axis]}, dilation "
                    f"{self.dilations[axis]}) does not fit into {dim} elements with "
                    f"{self.begin[axis] + self.end[axis]} of padding"
                )
            result.append(max(0, steps + 1))
        return tuple(result)


def check_window(
    rank: int,
    kernel: Sequence[int | str | None] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> None:
    """Raise InferenceError where attributes of a window do not have a number for each of `rank` spatial dims, or pads
    two. Kernels take these numbers one after another: others would shift them.
    """
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations), ("pads", pads)):
        wanted = 2 * rank if name == "pads" else rank
        if values and len(values) != wanted:
            raise InferenceError(f"{name} {tuple(values)} has {len(values)} numbers, and {wanted} are expected")


def window(
    size: Sequence[int | str | None],
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Window | None:
    """ONNX's window attributes, checked before, with defaults and `auto_pad` resolved; None where that needs a dim that
    is unknown. Raises InferenceError for padding that no kernel holds.
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
    if any([pad > MAX_PADDING for pad in given]):
        raise InferenceError(f"padding of {max(given)} elements is more than kernels hold: {MAX_PADDING} are the most")
    return Window(tuple(kernel), steps, spread, given[:rank], given[rank:])
