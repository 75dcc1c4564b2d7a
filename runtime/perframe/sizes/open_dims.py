"""The dims that a model leaves open: their sizes are what plans follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

Shapes = Sequence[Sequence[int]]  # in the order of inputs


@dataclass(frozen=True)
class Positions:
    """Where open dims are in `count` dims, those of all inputs after each other: each for the first time, and pairs of
    where one is first and again.
    """

    count: int
    opened: Sequence[int]
    alike: Sequence[tuple[int, int]]


class OpenDims:
    """Those dims of some inputs that are not fixed, from how these are declared; dims of one name are one."""

    def __init__(self, declared: Sequence[Sequence[Any] | None]) -> None:
        self._declared = declared

    def positions(self, ranks: Sequence[int]) -> Positions:
        """Where they are in inputs of these ranks."""
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
        """Their sizes in these shapes; None where one name has two."""
        positions, dims = self.positions([*map(len, shapes)]), [*chain.from_iterable(shapes)]
        if any(dims[first] != dims[again] for first, again in positions.alike):
            return None
        return [dims[position] for position in positions.opened]

    def put(self, sizes: Sequence[int], shapes: Shapes) -> list[list[int]]:
        """Shapes that have these sizes where open dims are."""
        ranks, dims = [*map(len, shapes)], [*chain.from_iterable(shapes)]
        positions = self.positions(ranks)
        for position, size in zip(positions.opened, sizes, strict=True):
            dims[position] = size
        for first, again in positions.alike:
            dims[again] = dims[first]
        return [dims[begin : begin + rank] for begin, rank in zip(accumulate(ranks, initial=0), ranks, strict=False)]
