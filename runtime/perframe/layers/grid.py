"""Sampling at the points of a grid, and grids that affine maps make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import Ints
from perframe.ir.shape_arithmetic import listed
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety.records import dataclass

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class Sampling:
    """Data of (batch, channels, *size) is sampled at `points` points of -1..1, with x as the first coordinate.

    With `align_corners`, -1 and 1 are the middles of the outermost elements; otherwise they are their outer edges.
    """

    mode: str
    padding: str
    align_corners: bool
    batch: int
    channels: int
    size: Ints
    points: int


@layer()
def GridSample(
    x: PartialTensor,
    grid: PartialTensor,
    *,
    mode: Literal["nearest", "linear", "cubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: Flag = 0,
) -> PartialTensor:
    if x.shape is None or grid.shape is None:
        known = x.shape or grid.shape
        return x.with_shape(None if known is None else (None,) * len(known))
    dims = len(x.shape) - 2
    wanted = grid.shape[-1] if isinstance(grid.shape[-1], int) else dims
    if dims < 1 or len(grid.shape) != len(x.shape) or wanted != dims:
        raise InferenceError(f"{x} cannot be sampled at {grid}: a grid is (batch, points..., {dims})")
    return x.with_shape((*x.shape[:2], *grid.shape[1:-1]))


@GridSample.form
def _grid_sample(
    inputs: Sequence[Known], outputs: Sequence[Known], *, mode: str, padding_mode: str, align_corners: int
) -> Sampling:
    x, grid = inputs[0].shape, inputs[1].shape
    if x[0] != grid[0]:
        raise InferenceError(f"{x[0]} pictures cannot be sampled at the points of {grid[0]} grids")
    return Sampling(mode, padding_mode, bool(align_corners), x[0], x[1], tuple(x[2:]), math.prod(grid[1:-1]))


@dataclass(frozen=True)
class AffineMap:
    """One affine map of -1..1 to a grid of `size` for each of `batch`, as (dims, dims + 1) numbers."""

    batch: int
    size: Ints
    align_corners: bool


@layer(host=("size",))
def AffineGrid(theta: PartialTensor, size: PartialTensor, *, align_corners: Flag = 0) -> PartialTensor:
    wanted = listed(size)
    if wanted is None:
        return theta.with_shape((None, None, None, 2) if theta.shape is not None and theta.shape[1] == 2 else None)
    if len(wanted) not in (4, 5):
        raise InferenceError(f"AffineGrid makes grids for pictures and volumes, not for the size {wanted}")
    dims = len(wanted) - 2
    if theta.shape is not None and not theta.shape.may_be((wanted[0], dims, dims + 1)):
        raise InferenceError(f"maps of {theta} do not fit the size {wanted}")
    return theta.with_shape((wanted[0], *wanted[2:], dims))


@AffineGrid.form
def _affine_grid(inputs: Sequence[Known], outputs: Sequence[Known], *, align_corners: int) -> AffineMap:
    shape = outputs[0].shape
    return AffineMap(shape[0], tuple(shape[1:-1]), bool(align_corners))
