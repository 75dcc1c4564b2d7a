"""Gathering on GL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools, ints
from perframe.layers.gather import Elements, Indexing, Tuples
from perframe.layers.geometry import row_major
from perframe.tensor import DataType

MOST_DIMS = 8  # that a kernel's fixed arrays hold


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them: they are only moved."""
    return SMALL_DTYPES


def supports(layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str:
    """As many dims as kernels have room for."""
    rank = max(len(value.shape) for value in inputs if value is not None)
    return "" if rank <= MOST_DIMS else f"{rank} dims are more than a kernel's {MOST_DIMS}"


def lower(
    layer: LayerLike,
    form: Any,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel; tuples of indices become addresses before it."""
    x, indices = inputs[0], inputs[1]
    assert x is not None and indices is not None
    return _LOWER[type(form)](layer.name, form, x, indices, outputs[0], tools)


def _rows(layer: str, form: Indexing, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    params = {"size": form.size, "inner": form.inner, "count": form.count}
    return [Binding(layer, "gather", {"X": x, "I": indices}, y, params)]


def _elements(layer: str, form: Elements, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    params: dict[str, Any] = {
        "shape": ints(form.shape),
        "strides": ints(form.strides),
        "rank": len(form.shape),
        "size": form.size,
        "step_": form.step,
    }
    return [Binding(layer, "gather_elements", {"X": x, "I": indices}, y, params)]


def _tuples(layer: str, form: Tuples, x: Operand, indices: Operand, y: Operand, tools: Tools) -> list[Binding]:
    steps, at = addresses(layer, form, indices, tools)
    whole = Indexing(1, form.batch * form.rows, form.inner, form.batch * form.count)
    return [*steps, *_rows(layer, whole, x, at, y, tools)]


def addresses(layer: str, form: Tuples, indices: Operand, tools: Tools) -> tuple[list[Binding], Operand]:
    """The rows that tuples of indices name, and the kernel that computes them."""
    at = tools.scratch((form.batch * form.count,), DataType.INT32)
    params: dict[str, Any] = {
        "dims": ints(form.dims),
        "strides": ints(row_major(form.dims)),
        "depth": len(form.dims),
        "count": form.count,
        "rows": form.rows,
    }
    return [Binding(layer, "address", {"I": indices}, at, params)], at


_LOWER: dict[type, Callable[[str, Any, Operand, Operand, Operand, Tools], list[Binding]]] = {
    Indexing: _rows,
    Elements: _elements,
    Tuples: _tuples,
}
