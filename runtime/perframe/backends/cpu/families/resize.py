"""Resampling on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import REPEAT, RESIZE, RESIZE_PLANES
from perframe.backends.cpu.kernels.sizes import COLUMNS
from perframe.backends.cpu.lowering.lowering import all_float32, mover, sharing, step
from perframe.backends.cpu.program.program import NativeStep, Table
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.resize import AxisSampling, AxisTaps
from perframe.layers.resize import taps as taps_of


def compute(layer: LayerLike, form: list[AxisTaps], inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Resample axis by axis, in float64."""
    result = inputs[0]
    whole = result.dtype.kind in "biu"
    for one in form:
        planes = result.reshape(one.outer, one.size, one.inner)
        if one.count == 1 and one.weights.all():
            result = planes[:, one.indices[:, 0]]
            continue
        taken = planes[:, one.indices.reshape(-1)].reshape(one.outer, *one.indices.shape, one.inner)
        result = np.einsum("omki,mk->omi", taken.astype(np.float64), one.weights.astype(np.float64))
    return [np.rint(result).astype(inputs[0].dtype) if whole and result.dtype.kind == "f" else result]


def lower(
    layer: LayerLike,
    form: list[AxisTaps],
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps: copies of rows and columns for any dtype, and weighted sums for float32. One step serves the last
    two axes, and each axis before them has its own.
    """
    x = inputs[0]
    if x is None or not form or not x.shape.size:
        return None
    copies = all(one.count == 1 and one.sampling.coordinates != "tf_crop_and_resize" for one in form)
    kernel = mover("resize.repeat", x)
    if kernel is None or not (copies or all_float32([x])):
        return None
    rest, steps = list(form), list[NativeStep]()
    while rest:
        first = rest.pop(0)
        pair = rest[0] if len(rest) == 1 and rest[0].axis == first.axis + 1 and (copies or rest[0].inner == 1) else None
        last = pair or first
        rest = [] if pair else rest
        across = (last.output,) if pair else ()
        y = scratch((first.outer, first.output, *across, last.inner), x.dtype) if rest else outputs[0]
        if copies:
            steps.append(_repeat(layer, kernel, first, pair, x, y))
        elif last.inner == 1:
            steps.append(_planes(layer, first, pair, x, y))
        else:
            steps.append(_rows(layer, first, x, y))
        x = y
    return steps


def _rows(layer: LayerLike, one: AxisTaps, x: Operand, y: Operand) -> NativeStep:
    """Weighted sums of rows of `inner` elements."""
    sizes = (one.sampling, one.size, one.output)
    tables = RESIZE.tables(indices=Table(_indices, sizes), weights=Table(_weights, sizes))
    numbers = RESIZE.numbers(size=one.size, inner=one.inner, outputs=one.output, taps=one.count)
    items = one.outer * one.output
    grain = sharing(items, items * one.inner * one.count)
    return step(layer, "resize", RESIZE.operands(x=x, out=y), numbers, items, tables=tables, grain=grain)


def _planes(layer: LayerLike, first: AxisTaps, pair: AxisTaps | None, x: Operand, y: Operand) -> NativeStep:
    """Weighted sums of columns and rows; only of columns without a pair."""
    rows, columns = (first, pair) if pair else (_unchanged(first), first)
    of_rows, of_columns = ((one.sampling, one.size, one.output) for one in (rows, columns))
    tables = RESIZE_PLANES.tables(
        rows=Table(_indices, of_rows),
        row_weights=Table(_weights, of_rows),
        columns=Table(_column_indices, of_columns),
        column_weights=Table(_column_weights, of_columns),
    )
    blocks = -(-columns.output // COLUMNS)
    sizes = {"height": rows.size, "width": columns.size, "out_height": rows.output, "out_width": columns.output}
    numbers = RESIZE_PLANES.numbers(**sizes, row_taps=rows.count, column_taps=columns.count, blocks=blocks)
    items = rows.outer * blocks * rows.output
    grain = sharing(items, 2 * rows.outer * rows.output * columns.output * columns.count)
    operands = RESIZE_PLANES.operands(x=x, out=y)
    return step(layer, "resize.planes", operands, numbers, items, tables=tables, grain=grain)


def _repeat(
    layer: LayerLike, kernel: str, first: AxisTaps, pair: AxisTaps | None, x: Operand, y: Operand
) -> NativeStep:
    """Copies of columns and rows. A single axis is one of rows, and its columns stay."""
    columns = pair or replace(first, size=first.inner, output=first.inner, inner=1, sampling=_COPY)
    of_rows, of_columns = ((one.sampling, one.size, one.output) for one in (first, columns))
    tables = REPEAT.tables(
        rows=Table(_short_indices, of_rows),
        columns=Table(_short_indices, of_columns),
        times=Table(_times, of_columns),
    )
    sizes = {"height": first.size, "width": columns.size, "out_height": first.output, "out_width": columns.output}
    numbers = REPEAT.numbers(**sizes, inner=columns.inner)
    items = first.outer * first.output
    grain = sharing(items, items * columns.output * columns.inner)
    return step(layer, kernel, REPEAT.operands(x=x, out=y), numbers, items, tables=tables, grain=grain)


_COPY = AxisSampling("nearest", "asymmetric", "floor", 0.0, False, False, 1.0, (0.0, 1.0))


def _unchanged(one: AxisTaps) -> AxisTaps:
    """An axis of one row before an axis: it does not change."""
    return AxisTaps(one.axis - 1, one.outer, 1, one.size, 1, _COPY)


def _indices(how: AxisSampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[0], np.int64)


def _weights(how: AxisSampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[1], np.float32)


def _short_indices(how: AxisSampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[0], np.int32)


def _column_indices(how: AxisSampling, size: int, output: int) -> Any:
    """The indices of all first taps, then of all second ones, and so on."""
    return np.ascontiguousarray(taps_of(how, size, output)[0].T, np.int32)


def _column_weights(how: AxisSampling, size: int, output: int) -> Any:
    return np.ascontiguousarray(taps_of(how, size, output)[1].T, np.float32)


def _times(how: AxisSampling, size: int, output: int) -> Any:
    """How often each element is repeated: 0 if that differs between elements."""
    indices = taps_of(how, size, output)[0][:, 0]
    times = -(-output // size)
    return np.array([times if np.array_equal(indices, np.arange(output) // times) else 0], np.int64)
