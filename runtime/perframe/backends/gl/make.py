"""Tensors made out of positions, on GL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import Binding, Tools
from perframe.layers.make import Coding, Diagonal


def _eye(form: Diagonal, inputs: Sequence[Any]) -> tuple[str, dict[str, Operand], dict[str, Any]]:
    return "eye", {}, {"columns": form.columns, "offset": form.offset}


def _triangle(form: Diagonal, inputs: Sequence[Any]) -> tuple[str, dict[str, Operand], dict[str, Any]]:
    params = {"rows": form.rows, "columns": form.columns, "offset": form.offset, "upper": int(form.upper)}
    return "triangle", {"X": inputs[0]}, params


def _one_hot(form: Coding, inputs: Sequence[Any]) -> tuple[str, dict[str, Operand], dict[str, Any]]:
    return "one_hot", {"I": inputs[0], "V": inputs[2]}, {"depth": form.depth, "inner": form.inner}


_LOWER: dict[str, Callable[[Any, Sequence[Any]], tuple[str, dict[str, Operand], dict[str, Any]]]] = {
    "EyeLike": _eye,
    "Trilu": _triangle,
    "OneHot": _one_hot,
}


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """What follows from positions; windows follow from a number, and the plan computes them."""
    return "" if layer.op in _LOWER else f"{layer.op} has no GL kernel"


def lower(
    layer: LayerLike,
    form: Diagonal | Coding,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    kernel, given, params = _LOWER[layer.op](form, inputs)
    return [Binding(layer.name, kernel, given, outputs[0], params)]
