"""Gathering on GL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, MOST_DIMS, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.ir.geometry import row_major
from perframe.layers.gather import Elements, Indexing, Tuples
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # elements are only moved


def supports(call: Call[Any]) -> str | None:
    """Supports as many dims as a kernel's arrays hold."""
    rank = max(len(value.shape) for value in call.inputs if value is not None)
    return None if rank <= MOST_DIMS else f"{rank} dims are more than a kernel's {MOST_DIMS}"


def lower(call: Call[Any], tools: Tools) -> list[Binding]:
    """One kernel. Tuples of indices first become addresses, in another."""
    return _LOWER[type(call.form)](call, call.form, call.x, call.input(1), call.y, tools)


def _rows(call: Call[Any], form: Indexing, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    return [replace(call, form=form).bind("gather", {"X": x, "I": indices}, y)]


def _elements(call: Call[Any], form: Elements, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    params = {"rank": len(form.shape), "step_": form.step}
    return [call.bind("gather_elements", {"X": x, "I": indices}, y, params)]


def _tuples(call: Call[Any], form: Tuples, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    steps, at = addresses(call, form, indices, tools)
    whole = Indexing(1, form.batch * form.rows, form.inner, form.batch * form.count)
    return [*steps, *_rows(call, whole, x, at, y, tools)]


def addresses(call: Call[Any], form: Tuples, indices: Operand, tools: Tools) -> tuple[list[Binding], Operand]:
    """The kernel that computes the row of each tuple of indices, and its output."""
    at = tools.scratch((form.batch * form.count,), DataType.INT32)
    params: dict[str, Any] = {"strides": row_major(form.dims), "depth": len(form.dims)}
    return [replace(call, form=form).bind("address", {"I": indices}, at, params)], at


_LOWER: dict[type, Callable[[Call[Any], Any, Operand, Operand, Operand, Tools], list[Binding]]] = {
    Indexing: _rows,
    Elements: _elements,
    Tuples: _tuples,
}
