"""A tensor seen with other dims than it has, so that layers can read it without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perframe.layers.geometry import View
from perframe.tensor.partial import Dim

# (axis, step, size): so many elements of one of the tensor's axes, `step` apart. A size of 0 is what the axis has, and
# an axis of -1 one element, repeated
Part = tuple[int, int, int]


@dataclass(frozen=True)
class Arrangement:
    """Each dim is part of one of the tensor's axes, or a dim of one (None). `starts` are the first elements, by axis.

    Other tensors of that rank are seen the same way: where a part's size is 0, it is theirs.
    """

    dims: tuple[Part | None, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, seen: int | None = None) -> Arrangement:
        """A tensor as it is, with dims of one before its own where it is to have more."""
        own = tuple((axis, 1, 0) for axis in range(rank))
        return cls((None,) * ((rank if seen is None else seen) - rank) + own, (0,) * rank)

    def swapped(self) -> Arrangement:
        """With the last two dims exchanged."""
        *others, a, b = self.dims
        return replace(self, dims=(*others, b, a))

    def shape(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """The dims that a tensor of this shape is seen with."""
        return tuple(self._size(part, shape) for part in self.dims)

    def _size(self, part: Part | None, shape: Sequence[Dim]) -> Dim:
        if part is None or part[2]:
            return 1 if part is None else part[2]
        axis, step, _ = part
        whole = shape[axis]
        return whole if step == 1 else whole // step if isinstance(whole, int) else None

    def view(self, shape: Sequence[int]) -> View:
        """Where the elements lie in a tensor of this shape; dims of one have strides of 0."""
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
