"""Sampling at the points of grids on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.kernels.fields import GRID
from perframe.backends.cpu.kernels.sizes import LANES, POINT_BLOCK
from perframe.backends.cpu.lowering.lowering import all_float32, sharing, step, strided_copy
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.geometry import in_dims, row_major
from perframe.layers.grid import MODES, PADDINGS, AffineMap, Sampling

_FAR = 2.0**30  # a coordinate beyond this samples like an infinite one, and still fits into an int64


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute by the layer's form."""
    return [_COMPUTE[type(form)](form, inputs)]


def _sample(form: Sampling, inputs: Sequence[Any]) -> Any:
    """Add up tap by tap over all points, in float32 or wider."""
    x, grid = inputs
    dims = len(form.size)
    wide = np.promote_types(grid.dtype, np.float32) if grid.dtype.kind == "f" else np.dtype(np.float32)
    grid = grid.reshape(form.batch, form.points, dims).astype(wide)
    axes = [_taps(form, size, grid[..., dims - 1 - axis]) for axis, size in enumerate(form.size)]
    planes = np.moveaxis(x.reshape(form.batch, form.channels, *form.size), 1, -1)
    picture = np.arange(form.batch)[:, None]
    exact = form.mode == "nearest"
    sums = x.dtype if exact else np.promote_types(x.dtype, wide) if x.dtype.kind in "biuf" else wide
    total = np.zeros((form.batch, form.points, form.channels), sums)
    for chosen in itertools.product(*axes):
        inside = np.logical_and.reduce([at[1] for at in chosen])[..., None]
        values = planes[(picture, *(at[0] for at in chosen))]
        if exact:
            return np.moveaxis(np.where(inside, values, np.zeros((), x.dtype)), -1, 1)
        weight = np.prod([at[2] for at in chosen], axis=0)[..., None]
        total += np.where(inside, values.astype(sums) * weight, 0)
    return np.moveaxis(total, -1, 1).astype(x.dtype)


def _taps(form: Sampling, size: int, at: Any) -> list[tuple[Any, Any, Any]]:
    """The taps of one axis: (index of the element, whether the tap counts, weight) each."""
    low, high = (0.0, size - 1.0) if form.align_corners else (-0.5, size - 0.5)
    where = (at + 1) / 2 * (size - 1) if form.align_corners else ((at + 1) * size - 1) / 2
    if form.mode == "nearest":
        where = np.rint(where)
    where = np.clip(np.nan_to_num(where, nan=-_FAR), -_FAR, _FAR)
    outside = (where < low) | (where > high)
    if form.padding == "border":
        where = np.where(outside, np.clip(where, 0, size - 1), where)
    elif form.padding == "reflection":
        where = np.where(outside, _reflected(where, low, high), where)
    if form.mode == "nearest":
        return [_tap(form, size, where, low, high, np.ones_like(where))]
    first = np.floor(where)
    part = where - first
    weights = [1 - part, part] if form.mode == "linear" else _cubic(part)
    begin = 0 if form.mode == "linear" else -1
    return [_tap(form, size, first + begin + k, low, high, weight) for k, weight in enumerate(weights)]


def _tap(form: Sampling, size: int, at: Any, low: float, high: float, weight: Any) -> tuple[Any, Any, Any]:
    if form.padding == "reflection":
        at = np.where((at < low) | (at > high), _reflected(at, low, high), at)
    index = at.astype(np.int64)
    inside = (index >= 0) & (index < size) if form.padding == "zeros" else np.full(index.shape, True)
    return np.clip(index, 0, size - 1), inside, weight


def _reflected(at: Any, low: float, high: float) -> Any:
    """Reflect coordinates at the borders until they lie between them."""
    length = high - low
    if length <= 0:
        return np.full_like(at, low)
    beyond = np.where(at < low, low - at, at - high)
    times = np.floor(beyond / length)
    rest = beyond - times * length
    from_low = (at < low) == (times % 2 == 0)
    return np.where(from_low, low + rest, high - rest).astype(at.dtype)


def _cubic(t: Any, a: float = -0.75) -> list[Any]:
    """The weights of four taps by Keys' cubic convolution (1981)."""
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]
    return [far[0], near[0], near[1], far[1]]


def _affine(form: AffineMap, inputs: Sequence[Any]) -> Any:
    """Multiply each map by (x, y, 1) or (x, y, z, 1)."""
    theta = inputs[0]
    wide = np.float64 if theta.dtype == np.float64 else np.float32
    axes = [_coordinates(size, form.align_corners) for size in form.size]
    grid = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(form.size)], -1).reshape(-1, len(form.size) + 1)
    return np.einsum("nij,pj->npi", theta.astype(wide), grid.astype(wide)).astype(theta.dtype)


def _coordinates(size: int, align_corners: bool) -> Any:
    at = np.arange(size)
    if not align_corners:
        return (2 * at + 1) / size - 1
    return 2 * at / (size - 1) - 1 if size > 1 else np.zeros(size)


_COMPUTE: dict[type, Callable[[Any, Sequence[Any]], Any]] = {Sampling: _sample, AffineMap: _affine}


def lower(
    layer: LayerLike,
    form: Sampling | AffineMap,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Native steps for float32 and up to three dims."""
    x, grid = inputs[:2]
    if not isinstance(form, Sampling) or x is None or grid is None or not all_float32([x, grid]):
        return None
    dims, volume = len(form.size), math.prod(form.size)
    if dims > 3 or not x.shape.size or layer.epilogue:
        return None
    depth, height, width = in_dims(form.size, 3)
    mode, out, before, after = MODES.index(form.mode), outputs[0], list[NativeStep](), list[NativeStep]()
    kernel = "grid" if form.channels < LANES else "grid.pixels"
    if kernel == "grid.pixels":  # a vector of channels takes less time than as many single elements
        whole, channels, points = x, form.channels, form.points
        x, out = (scratch((form.batch, size, channels), whole.dtype) for size in (volume, points))
        shape, steps = (form.batch, volume, channels), (channels * volume, 1, volume)
        before.append(strided_copy(layer, whole, x, shape, steps, row_major(shape)))
        shape, steps = (form.batch, channels, points), (channels * points, 1, channels)
        after.append(strided_copy(layer, out, outputs[0], shape, steps, row_major(shape)))
    numbers = GRID.numbers(
        mode=mode,
        padding=PADDINGS.index(form.padding),
        align_corners=int(form.align_corners),
        channels=form.channels,
        points=form.points,
        dims=dims,
        depth=depth,
        height=height,
        width=width,
    )
    items = form.batch * -(-form.points // POINT_BLOCK)
    work = form.batch * form.points * (form.channels * (1, 2, 4)[mode] ** dims + 16)  # taps, and finding them
    operands = GRID.operands(x=x, grid=grid, out=out)
    return [*before, step(layer, kernel, operands, numbers, items, grain=sharing(items, work)), *after]
