"""The dims that a model leaves open: their sizes are what plans follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.tracing import Trace

Shapes = Sequence[Sequence[int]]  # in the order of inputs


class OpenDims:
    """Those dims of some inputs that are not fixed, from how these are declared; dims of one name are one."""

    def __init__(self, declared: Sequence[Sequence[Any] | None]) -> None:
        self._declared = declared
        self._known: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}  # by the inputs' ranks

    def _places(self, ranks: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """Which one it is, input and axis of each open dim."""
        found = self._known.get(ranks)
        if found is None:
            found = self._known[ranks] = []
            dims: dict[Any, int] = {}
            for index, (rank, declared) in enumerate(zip(ranks, self._declared, strict=True)):
                for axis in range(rank):
                    dim = None if declared is None else declared[axis]
                    if not isinstance(dim, int):
                        found.append((dims.setdefault((index, axis) if dim is None else dim, len(dims)), index, axis))
        return found

    def sizes(self, shapes: Shapes) -> list[int] | None:
        """Their sizes in these shapes; None where one name has two."""
        found: list[int] = []
        for dim, index, axis in self._places(tuple(map(len, shapes))):
            size = shapes[index][axis]
            if dim == len(found):
                found.append(size)
            elif found[dim] != size:
                return None
        return found

    def followed(self, shapes: Shapes, trace: Trace) -> list[list[int]]:
        """The shapes with the trace's sizes in place of their own."""
        made = [list(shape) for shape in shapes]
        for dim, index, axis in self._places(tuple(map(len, shapes))):
            made[index][axis] = trace.sizes[dim]
        return made
