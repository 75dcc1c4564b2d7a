"""The order of the dims of a tensor that holds pictures: letters for batch, channels, height and width."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InputError

BATCH, CHANNELS, HEIGHT, WIDTH = "NCHW"
Dims = tuple[int, int, int]  # channels, height, width


def layout(given: object) -> str:
    """Check a layout. Raises InputError."""
    if not isinstance(given, str) or sorted(given) != sorted("NCHW"):
        raise InputError(f'layout is an order of N, C, H and W, as "NCHW" or "NHWC", not {given!r}')
    return given


def axes_of(order: str, rank: int) -> str:
    """The letters of the dims of a tensor; one of rank 3 has no batch."""
    return order if rank == 4 else order.replace(BATCH, "")


def shape_of(order: str, dims: Dims, batch: int | None) -> tuple[int, ...]:
    """The shape of a tensor of this many pictures; None for one of rank 3."""
    sizes = dict(zip(CHANNELS + HEIGHT + WIDTH + BATCH, (*dims, batch or 1), strict=True))
    return tuple(sizes[axis] for axis in axes_of(order, 3 if batch is None else 4))


def dims_of(order: str, shape: Sequence[int]) -> Dims:
    """The channels, height and width of a tensor's pictures."""
    axes = axes_of(order, len(shape))
    channels, height, width = (shape[axes.index(axis)] for axis in (CHANNELS, HEIGHT, WIDTH))
    return channels, height, width


def steps_of(order: str, dims: Dims, batch: int = 1) -> dict[str, int]:
    """The elements from one column, row, channel or picture to the next, by the axis' letter."""
    shape = shape_of(order, dims, batch)
    return {axis: math.prod(shape[place + 1 :]) for place, axis in enumerate(order)}
