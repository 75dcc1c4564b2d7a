"""Tensors that follow from positions, on GL: diagonals, triangles, one-hot codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.layers.make import Coding, Diagonal, Triangle

DTYPES = ALL_DTYPES  # elements are only moved


def _eye(call: Call[Diagonal]) -> Binding:
    return call.bind("eye", {}, call.y)


def _triangle(call: Call[Triangle]) -> Binding:
    return call.bind("triangle", {"X": call.x}, call.y)


def _one_hot(call: Call[Coding]) -> Binding:
    return call.bind("one_hot", {"I": call.x, "V": call.input(2)}, call.y)


_LOWER: dict[type, Callable[[Call[Any]], Binding]] = {Diagonal: _eye, Triangle: _triangle, Coding: _one_hot}


def supports(call: Call[Any]) -> str | None:
    """Supports all but window functions, which the plan computes."""
    return None if type(call.form) in _LOWER else f"{call.layer.op} has no GL kernel"


def lower(call: Call[Diagonal | Triangle | Coding], tools: Tools) -> list[Binding]:
    """One kernel."""
    return [_LOWER[type(call.form)](call)]
