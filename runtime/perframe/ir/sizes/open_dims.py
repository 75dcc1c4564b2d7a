"""The dims that a model leaves open. Plans follow the sizes of these dims."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

from perframe.safety.records import dataclass

Shapes = Sequence[Sequence[int]]  # in the order of inputs


@dataclass(frozen=True)
class Positions:
    """The positions of open dims in the `count` dims of all inputs, one input after the other.

    `opened` has the first position of each open dim, and `alike` a pair (first, later) for each later position.
    """

    count: int
    opened: Sequence[int]
    alike: Sequence[tuple[int, int]]


class OpenDims:
    """The dims that the declared shapes of some inputs do not fix. Dims of one name count as one dim."""

    def __init__(self, declared: Sequence[Sequence[Any] | None]) -> None:
        self._declared = declared
        self._known: dict[tuple[int, ...], Positions] = {}  # by ranks

    def positions(self, ranks: Sequence[int]) -> Positions:
        """Return the positions of open dims in inputs of these ranks."""
        key = tuple(ranks)
        if key not in self._known:
            self._known[key] = self._positions(key)
        return self._known[key]

    def _positions(self, ranks: Sequence[int]) -> Positions:
        firsts: dict[Any, int] = {}
        alike = []
        for begin, rank, declared in zip(accumulate(ranks, initial=0), ranks, self._declared, strict=False):
            for position in range(begin, begin + rank):
                dim = None if declared is None else declared[position - begin]
                if not isinstance(dim, int):
                    first = firsts.setdefault((position,) if dim is None else dim, position)
                    if first != position:
                        alike.append((first, position))
        return Positions(sum(ranks), [*firsts.values()], alike)

    def sizes(self, shapes: Shapes) -> list[int] | None:
        """Return the sizes of open dims in these shapes, or None if one name has two sizes."""
        positions, dims = self.positions([len(shape) for shape in shapes]), [dim for shape in shapes for dim in shape]
        for first, again in positions.alike:  # a frame waits, and this takes less time than a generator
            if dims[first] != dims[again]:
                return None
        return [dims[position] for position in positions.opened]

    def put(self, sizes: Sequence[int], shapes: Shapes) -> list[list[int]]:
        """Return the shapes with these sizes for the open dims."""
        ranks, dims = [*map(len, shapes)], [*chain.from_iterable(shapes)]
        positions = self.positions(ranks)
        for position, size in zip(positions.opened, sizes, strict=True):
            dims[position] = size
        for first, again in positions.alike:
            dims[again] = dims[first]
        return [dims[begin : begin + rank] for begin, rank in zip(accumulate(ranks, initial=0), ranks, strict=False)]
