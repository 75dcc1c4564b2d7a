"""Pools: a window slides over the last dims, and each place gives one element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, apply_all, in_floats, ints, known_size, number
from perframe.functional.elementwise import mul
from perframe.functional.moving import flatten, unflatten
from perframe.functional.pieces import cat, cut, limited
from perframe.functional.reductions import amax, mean
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent, batched, each, of_ranks, unbatched


def _pool(
    op: str, rank: int, input: Given, kernel_size: Extent, stride: Extent | None, padding: Extent, **attributes: Any
) -> tuple[FunctionalTensor, bool, FunctionalTensor]:
    """Return a pool's result, whether a batch was added, and its input with a batch."""
    x, added = batched(input, rank)
    kernel = each(kernel_size, rank, "kernel_size")
    strides = kernel if stride is None or stride == () or stride == [] else each(stride, rank, "stride")
    pads = each(padding, rank, "padding", 0)
    if any(2 * before > size for before, size in zip(pads, kernel, strict=True)):
        raise InputError(f"padding {pads} is more than half of the kernel {kernel}")
    count = 2 if attributes.pop("indices", False) else 1
    made = apply_all(op, (x,), count, kernel_shape=kernel, strides=strides, pads=pads * 2, **attributes)
    return made[-1], added, x


def _max_pool(
    rank: int,
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest elements of windows in signals, pictures or volumes, and their indices in planes if asked."""
    how = {"dilations": each(dilation, rank, "dilation"), "ceil_mode": int(bool(ceil_mode))}
    largest, added, x = _pool("MaxPool", rank, input, kernel_size, stride, padding, **how)
    if not return_indices:
        return unbatched(largest, added)
    places, _, _ = _pool("MaxPool", rank, input, kernel_size, stride, padding, indices=True, **how)
    plane = apply("ReduceProd", sizes_of(x, 2), keepdims=0)  # ONNX counts through the batch, PyTorch in a plane
    return unbatched(largest, added), unbatched(apply("Mod", places, plane), added)


def _avg_pool(
    rank: int,
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in signals, pictures or volumes."""
    how = {"ceil_mode": int(bool(ceil_mode)), "count_include_pad": int(bool(count_include_pad))}
    if divisor_override is None:
        made, added, _ = _pool("AveragePool", rank, input, kernel_size, stride, padding, **how)
        return unbatched(made, added)
    if divisor_override == 0:
        raise InputError("divisor_override is 0")
    x, added = batched(input, rank)
    signs = apply("Concat", apply("Relu", x), apply("Relu", apply("Neg", x)), axis=1)  # twice as many channels
    made, _, _ = _pool("LpPool", rank, signs, kernel_size, stride, padding, p=1.0)
    channels = known_size(made, 1, "divisor_override")
    positive, negative = cut(made, 1, 0, channels // 2), cut(made, 1, channels // 2, channels)
    return unbatched(mul(apply("Sub", positive, negative), 1 / divisor_override), added)


def _lp_pool(
    rank: int,
    input: Given,
    norm_type: float,
    kernel_size: Extent,
    stride: Extent | None = None,
    ceil_mode: bool = False,
) -> FunctionalTensor:
    """Return p-norms of windows in signals, pictures or volumes, of absolute values (PyTorch: with their signs)."""
    how = {"ceil_mode": int(bool(ceil_mode)), "p": float(norm_type)}
    made, added, _ = _pool("LpPool", rank, in_floats(input), kernel_size, stride, 0, **how)
    return unbatched(made, added)


def _adaptive(
    rank: int,
    op: str,
    reduce: Callable[..., FunctionalTensor],
    input: Given,
    output_size: int | Sequence[int | None],
) -> FunctionalTensor:
    x, added = batched(input, rank)
    wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
    if len(wanted) != rank:
        raise InputError(f"output_size is a number, or one for each of {rank} dims, not {output_size!r}")
    if all(size == 1 for size in wanted):
        return unbatched(apply(op, x), added)
    for axis, size in enumerate(wanted, 2):
        if size is not None:
            x = _adapted(x, axis, int(size), reduce)
    return unbatched(x, added)


def _adapted(x: FunctionalTensor, axis: int, size: int, reduce: Callable[..., FunctionalTensor]) -> FunctionalTensor:
    """Reduce one dim to `size` windows, as PyTorch cuts them: floor(i * n / size) to ceil((i + 1) * n / size)."""
    if size < 1:
        raise InputError(f"an output size is at least 1, not {size}")
    whole = known_size(x, axis, "an adaptive pool")
    if whole % size == 0:
        return reduce(unflatten(x, axis, (size, whole // size)), axis + 1)
    parts = [(at * whole // size, -(-(at + 1) * whole // size)) for at in range(limited(size))]
    return cat([reduce(cut(x, axis, *part), axis, keepdim=True) for part in parts], axis)


def _adaptive_avg_pool(rank: int, input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return the mean of each of `output_size` windows in signals, pictures or volumes; None keeps a dim."""
    return _adaptive(rank, "GlobalAveragePool", mean, input, output_size)


def _adaptive_max_pool(rank: int, input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return the largest of each of `output_size` windows in signals, pictures or volumes; None keeps a dim."""
    return _adaptive(rank, "GlobalMaxPool", amax, input, output_size)


def _max_unpool(
    rank: int,
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool of signals, pictures or volumes back to their places; the rest is 0."""
    x, added = batched(input, rank)
    places, _ = batched(indices, rank)
    kernel = each(kernel_size, rank, "kernel_size")
    strides = kernel if stride is None else each(stride, rank, "stride")
    cuts = each(padding, rank, "padding", 0)
    sizes = [known_size(x, at + 2, "max_unpool") for at in range(rank)]
    natural = [
        (size - 1) * step - 2 * before + long
        for size, step, before, long in zip(sizes, strides, cuts, kernel, strict=True)
    ]
    made = natural if output_size is None else [int(size) for size in output_size][-rank:]
    plane = ints(math.prod(made))
    empty = apply("Expand", number(0, x), apply("Concat", sizes_of(x, 0, 2), plane, axis=0))
    filled = apply("ScatterElements", empty, flatten(places, 2), flatten(x, 2), axis=2)
    return unbatched(unflatten(filled, 2, made), added)


max_pool1d, max_pool2d, max_pool3d = of_ranks(_max_pool)
avg_pool1d, avg_pool2d, avg_pool3d = of_ranks(_avg_pool)
lp_pool1d, lp_pool2d, lp_pool3d = of_ranks(_lp_pool)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = of_ranks(_adaptive_avg_pool)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = of_ranks(_adaptive_max_pool)
max_unpool1d, max_unpool2d, max_unpool3d = of_ranks(_max_unpool)
