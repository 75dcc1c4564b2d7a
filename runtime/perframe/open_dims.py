"""The dims that a model leaves open: their sizes are what plans follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.tracing import Trace

Shapes = Sequence[Sequence[int]]  # in the order of inputs
Place = tuple[int, int, int]  # which one of the open dims it is, input and axis


class OpenDims:
    """Those dims of some inputs that are not fixed, from how these are declared; dims of one name are one."""

    def __init__(self, declared: Sequence[Sequence[Any] | None]) -> None:
        self._declared = declared
        self._known: dict[tuple[int, ...], tuple[list[Place], list[Place]]] = {}  # by the inputs' ranks

    def _places(self, ranks: tuple[int, ...]) -> tuple[list[Place], list[Place]]:
        """Where each open dim is for the first time, in order, and where they are again."""
        found = self._known.get(ranks)
        if found is None:
            found = self._known[ranks] = [], []
            dims: dict[Any, int] = {}
            for index, (rank, declared) in enumerate(zip(ranks, self._declared, strict=True)):
                for axis in range(rank):
                    dim = None if declared is None else declared[axis]
                    if not isinstance(dim, int):
                        which = dims.setdefault((index, axis) if dim is None else dim, len(dims))
                        found[which < len(found[0])].append((which, index, axis))
        return found

    def sizes(self, shapes: Shapes, ranks: tuple[int, ...]) -> list[int] | None:
        """Their sizes in these shapes, which have these ranks; None where one name has two."""
        firsts, others = self._known.get(ranks) or self._places(ranks)
        found = [shapes[index][axis] for _, index, axis in firsts]
        for which, index, axis in others:
            if found[which] != shapes[index][axis]:
                return None
        return found

    def followed(self, shapes: Shapes, trace: Trace) -> list[list[int]]:
        """The shapes with the trace's sizes in place of their own."""
        made = [list(shape) for shape in shapes]
        firsts, others = self._places(tuple(map(len, shapes)))
        for which, index, axis in (*firsts, *others):
            made[index][axis] = trace.sizes[which]
        return made
