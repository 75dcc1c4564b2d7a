"""Arrangements: a layer reads a tensor with dims other than the tensor's own, without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from operator import floordiv

from perframe.errors import InferenceError
from perframe.ir.geometry import Ints, row_major
from perframe.ir.sizes.partial import Dim, derived, dim_product
from perframe.safety.records import dataclass

# (axis, step, size): `size` elements of one of the tensor's axes, `step` apart. A size of 0 stands for all elements of
# the axis, and an axis of -1 for one repeated element
Part = tuple[int, int, int]
Steps = list[tuple[int, int]]  # of one dim: (size, step in elements) of each of its parts, the outermost first


@dataclass(frozen=True)
class Arrangement:
    """Dims over a tensor: each is part of one of the tensor's axes, several parts, the outermost first, or None for a
    dim of 1.

    `starts` holds the first element of each axis. An arrangement fits all tensors of its rank: where the size of a part
    is 0, the tensor gives it.
    """

    dims: tuple[Part | tuple[Part, ...] | None, ...]
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
        return tuple(dim_product(*sizes) for sizes in self.parts(shape))

    def parts(self, shape: Sequence[Dim]) -> list[tuple[Dim, ...]]:
        """Return the sizes of the parts of each dim."""
        return [tuple(_size(part, shape) for part in _parts(dim)) for dim in self.dims]

    def steps(self, shape: Sequence[int]) -> list[Steps]:
        """Return how to walk along each dim of a tensor of this shape; parts of 1 have steps of 0."""
        strides, found = row_major(shape), list[Steps]()
        for dim in self.dims:
            found.append([])
            for axis, step, size in _parts(dim):
                length = size or shape[axis] // step
                found[-1].append((length, strides[axis] * step if axis >= 0 and length != 1 else 0))
        return found

    def offset(self, shape: Sequence[int]) -> int:
        """Return the first element."""
        return sum(start * stride for start, stride in zip(self.starts, row_major(shape), strict=True))


def cut_alike(operands: Sequence[Sequence[Steps]]) -> list[tuple[Ints, Ints]]:
    """Return shape and strides of each operand. Where one walks along a dim in parts, all do. Dims of 1 stay 1.

    Raises InferenceError for a dim that does not consist of these parts.
    """
    found: list[tuple[list[int], list[int]]] = [([], []) for _ in operands]
    for dims in zip(*operands, strict=True):
        sizes = [size for size, _ in max(dims, key=len)]
        for parts, (shape, strides) in zip(dims, found, strict=True):
            cut = _cut(parts, sizes)
            shape += [size for size, _ in cut]
            strides += [step for _, step in cut]
    return [(tuple(shape), tuple(strides)) for shape, strides in found]


def _cut(parts: Steps, sizes: Sequence[int]) -> Steps:
    if len(sizes) < 2 or len(parts) > 1:
        return parts or [(1, 0)]
    size, step = parts[0] if parts else (1, 0)
    if size == 1:
        return [(1, 0)] * len(sizes)
    if size != math.prod(sizes):
        raise InferenceError(f"a dim of {size} does not consist of parts of {' and '.join(map(str, sizes))}")
    return [(part, step * math.prod(sizes[index + 1 :])) for index, part in enumerate(sizes)]


def _parts(dim: Part | tuple[Part, ...] | None) -> Sequence[Part]:
    if dim is None:
        return ()
    return (dim,) if isinstance(dim[0], int) else dim


def _size(part: Part, shape: Sequence[Dim]) -> Dim:
    axis, step, size = part
    return size if size else shape[axis] if step == 1 else derived(floordiv, shape[axis], step)
