"""Arrangements: a layer reads a tensor with dims other than the tensor's own, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import floordiv

from perframe.ir.geometry import View
from perframe.ir.sizes.partial import Dim, derived

# (axis, step, size): `size` elements of one of the tensor's axes, `step` apart. A size of 0 stands for all elements of
# the axis, and an axis of -1 for one repeated element
Part = tuple[int, int, int]


@dataclass(frozen=True)
class Arrangement:
    """Dims over a tensor: each is part of one of the tensor's axes, or None for a dim of 1.

    `starts` holds the first element of each axis. An arrangement fits all tensors of its rank: where the size of a part
    is 0, the tensor gives it.
    """

    dims: tuple[Part | None, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, seen: int | None = None) -> Arrangement:
        """Return the arrangement of a tensor's own dims, with dims of 1 before them up to `seen` dims."""
        own = tuple((axis, 1, 0) for axis in range(rank))
        return cls((None,) * ((rank if seen is None else seen) - rank) + own, (0,) * rank)

    def swapped(self) -> Arrangement:
        """Return this arrangement with the last two dims exchanged."""
        *others, a, b = self.dims
        return replace(self, dims=(*others, b, a))

    def shape(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the arranged dims of a tensor of this shape."""
        return tuple(self._size(part, shape) for part in self.dims)

    def _size(self, part: Part | None, shape: Sequence[Dim]) -> Dim:
        if part is None or part[2]:
            return 1 if part is None else part[2]
        axis, step, _ = part
        whole = shape[axis]
        return whole if step == 1 else derived(floordiv, whole, step)

    def view(self, shape: Sequence[int]) -> View:
        """Return the view that reads a tensor of this shape with the arranged dims; dims of 1 have strides of 0."""
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        sizes, steps = [], []
        for part in self.dims:
            axis, step, size = part or (-1, 0, 1)
            size = size or shape[axis] // step
            sizes.append(size)
            steps.append(strides[axis] * step if axis >= 0 and size != 1 else 0)
        offset = sum(start * stride for start, stride in zip(self.starts, strides, strict=True))
        return View(tuple(sizes), tuple(steps), offset)
