"""Functions of pictures: other sizes, samples at points, and pixels that become channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from perframe.errors import InputError
from perframe.functional.calls import apply, cast, function, in_floats, ints, known_size
from perframe.functional.moving import flatten, transpose, unflatten
from perframe.functional.pools import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from perframe.functional.sizes import Sizes, row_of
from perframe.functional.tensor import FunctionalTensor, Given, of_array, to_tensor
from perframe.functional.windows import Extent, batched, each, unbatched

_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_MODES = ("nearest", "nearest-exact", *_RANKS, "area")


@function
def interpolate(
    input: Given,
    size: int | Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> FunctionalTensor:
    """Resample (batch, channels, ...) to a size, or by factors. Modes: nearest, nearest-exact, linear, bilinear,
    bicubic, trilinear and area.
    """
    x = to_tensor(input)
    rank = x.ndim - 2
    if mode not in _MODES or _RANKS.get(mode, rank) != rank:
        raise InputError(f"mode {mode!r} does not fit {x.spec}: modes are {', '.join(_MODES)}")
    if (size is None) == (scale_factor is None):
        raise InputError("give either the size or the scale_factor")
    smooth = mode in _RANKS
    if align_corners is not None and not smooth:
        raise InputError(f"align_corners says nothing for mode {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise InputError(f"antialias is for the modes bilinear and bicubic, not {mode!r}")
    scales = None
    if scale_factor is not None:
        one = isinstance(scale_factor, (int, float))
        factors = (scale_factor,) * rank if one else tuple(scale_factor)  # type: ignore[arg-type]
        if len(factors) != rank or not all(0 < float(factor) < math.inf for factor in factors):  # type: ignore[arg-type]
            raise InputError(f"scale_factor is positive, one number or one for each of {rank} dims")
        scales = of_array(np.array(factors, np.float32))
        if recompute_scale_factor or mode == "area":
            size = [
                math.floor(known_size(x, at + 2, "recompute_scale_factor") * float(factor))  # type: ignore[arg-type]
                for at, factor in enumerate(factors)
            ]
    if mode == "area":
        pools = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[rank - 1](x, size)  # type: ignore[arg-type]
    sizes = None
    if size is not None:
        sizes = row_of((size,) * rank if isinstance(size, int) else size, x)
        if sizes.shape[0] != rank:
            raise InputError(f"the size has {sizes.shape[0]} number(s), and there are {rank} dims to resample")
    how = {
        "mode": "cubic" if mode == "bicubic" else "linear" if smooth else "nearest",
        "coordinate_transformation_mode": "align_corners"
        if align_corners
        else "asymmetric"
        if mode == "nearest"
        else "half_pixel",
        "nearest_mode": "floor" if mode == "nearest" else "round_prefer_ceil",
        "cubic_coeff_a": -0.5 if antialias else -0.75,
        "antialias": int(antialias),
        "exclude_outside": int(antialias),
    }
    return apply("Resize", x, None, scales if sizes is None else None, sizes, axes=tuple(range(2, rank + 2)), **how)


upsample = interpolate

_SAMPLINGS = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


@function
def grid_sample(
    input: Given,
    grid: Given,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool | None = None,
) -> FunctionalTensor:
    """Sample pictures or volumes at points of -1..1, x first."""
    if mode not in _SAMPLINGS:
        raise InputError(f"mode is one of {', '.join(_SAMPLINGS)}, not {mode!r}")
    how = {"mode": _SAMPLINGS[mode], "padding_mode": padding_mode, "align_corners": int(bool(align_corners))}
    x = in_floats(input)
    return apply("GridSample", x, cast(grid, x.dtype), **how)


@function
def affine_grid(theta: Given, size: Sizes, align_corners: bool | None = None) -> FunctionalTensor:
    """Return the points of -1..1 to which affine maps take a grid of (batch, channels, height, width)."""
    return apply("AffineGrid", in_floats(theta), row_of(size), align_corners=int(bool(align_corners)))


def _blocks(op: str, input: Given, factor: int) -> FunctionalTensor:
    x, added = batched(input, 2)
    return unbatched(apply(op, x, blocksize=int(factor), mode="CRD"), added)


@function
def pixel_shuffle(input: Given, upscale_factor: int) -> FunctionalTensor:
    """Turn channels into pixels: (batch, c * r², h, w) becomes (batch, c, h * r, w * r)."""
    return _blocks("DepthToSpace", input, upscale_factor)


@function
def pixel_unshuffle(input: Given, downscale_factor: int) -> FunctionalTensor:
    """Turn pixels into channels: (batch, c, h * r, w * r) becomes (batch, c * r², h, w)."""
    x = to_tensor(input)
    for size in x.shape[-2:]:
        if isinstance(size, int) and size % downscale_factor:
            raise InputError(f"the height and the width of {x.spec} are not multiples of {downscale_factor}")
    return _blocks("SpaceToDepth", x, downscale_factor)


@function
def channel_shuffle(input: Given, groups: int) -> FunctionalTensor:
    """Take the channels of each group in turn."""
    x = to_tensor(input)
    channels = known_size(x, 1, "channel_shuffle")
    if groups < 1 or channels % groups:
        raise InputError(f"{channels} channels do not make {groups} groups")
    return flatten(transpose(unflatten(x, 1, (groups, channels // groups)), 1, 2), 1, 2)


@function
def unfold(
    input: Given, kernel_size: Extent, dilation: Extent = 1, padding: Extent = 0, stride: Extent = 1
) -> FunctionalTensor:
    """Return the windows of pictures as columns: (batch, c * kernel, windows). NaN spreads in a window."""
    x, added = batched(in_floats(input), 2)
    rows, columns = each(kernel_size, 2, "kernel_size")
    channels = known_size(x, 1, "unfold")
    picks = np.eye(rows * columns, dtype=x.dtype.numpy).reshape(-1, 1, rows, columns)  # a channel for each element
    made = apply(
        "Conv",
        x,
        of_array(np.tile(picks, (channels, 1, 1, 1))),
        strides=each(stride, 2, "stride"),
        dilations=each(dilation, 2, "dilation"),
        pads=each(padding, 2, "padding", 0) * 2,
        group=channels,
    )
    return unbatched(flatten(made, 2), added)


@function
def fold(
    input: Given,
    output_size: Extent,
    kernel_size: Extent,
    dilation: Extent = 1,
    padding: Extent = 0,
    stride: Extent = 1,
) -> FunctionalTensor:
    """Add up columns of windows to pictures: (batch, c * kernel, windows) becomes (batch, c, height, width)."""
    x = in_floats(input)
    added = x.ndim == 2
    x = apply("Unsqueeze", x, ints(0)) if added else x
    made = apply(
        "Col2Im",
        x,
        ints(*each(output_size, 2, "output_size")),
        ints(*each(kernel_size, 2, "kernel_size")),
        dilations=each(dilation, 2, "dilation"),
        pads=each(padding, 2, "padding", 0) * 2,
        strides=each(stride, 2, "stride"),
    )
    return unbatched(made, added)
