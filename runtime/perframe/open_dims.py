"""The dims that a model leaves open: their sizes are what plans follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perframe.tracing import Trace

Shapes = Mapping[str, Sequence[int]]  # by the names of inputs


class OpenDims:
    """Those dims of some inputs that are not fixed, from how these are declared; dims of one name are one."""

    def __init__(self, declared: Mapping[str, Sequence[Any] | None]) -> None:
        self._declared = declared
        self._known: dict[tuple[int, ...], list[tuple[int, str, int]]] = {}  # by the inputs' ranks

    def _places(self, shapes: Shapes) -> list[tuple[int, str, int]]:
        """Which one it is, input and axis of each open dim."""
        ranks = tuple(map(len, shapes.values()))
        found = self._known.get(ranks)
        if found is None:
            found = self._known[ranks] = []
            dims: dict[Any, int] = {}
            for name, shape in shapes.items():
                declared = self._declared[name]
                for axis in range(len(shape)):
                    dim = None if declared is None else declared[axis]
                    if not isinstance(dim, int):
                        found.append((dims.setdefault((name, axis) if dim is None else dim, len(dims)), name, axis))
        return found

    def sizes(self, shapes: Shapes) -> list[int] | None:
        """Their sizes in these shapes; None where one name has two."""
        found: list[int] = []
        for dim, name, axis in self._places(shapes):
            size = shapes[name][axis]
            if dim == len(found):
                found.append(size)
            elif found[dim] != size:
                return None
        return found

    def followed(self, shapes: Shapes, trace: Trace) -> dict[str, list[int]]:
        """The shapes with the trace's sizes in place of their own."""
        made = {name: list(shape) for name, shape in shapes.items()}
        for dim, name, axis in self._places(shapes):
            made[name][axis] = trace.sizes[dim]
        return made
