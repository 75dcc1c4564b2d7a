"""Pools: a window slides over the last dims, and each place gives one element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, apply_all, cast, function, in_floats, ints, known_size, number
from perframe.functional.elementwise import mul
from perframe.functional.moving import flatten, unflatten
from perframe.functional.pieces import cat, cut, limited
from perframe.functional.reductions import amax, mean
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent, batched, each, unbatched


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
    stride: Extent | None,
    padding: Extent,
    dilation: Extent,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
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
    stride: Extent | None,
    padding: Extent,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> FunctionalTensor:
    how = {"ceil_mode": int(bool(ceil_mode)), "count_include_pad": int(bool(count_include_pad))}
    if divisor_override is None:
        made, added, _ = _pool("AveragePool", rank, input, kernel_size, stride, padding, **how)
        return unbatched(made, added)
    if divisor_override == 0:
        raise InputError("divisor_override is 0")
    made, added, _ = _pool("LpPool", rank, _split_signs(input, rank), kernel_size, stride, padding, p=1.0)
    positive, negative = (cut(made, 1, *part) for part in _halves(made))
    return unbatched(mul(apply("Sub", positive, negative), 1 / divisor_override), added)


def _split_signs(input: Given, rank: int) -> FunctionalTensor:
    """Return the positive and the negative parts of all elements, as twice as many channels."""
    x, _ = batched(input, rank)
    return apply("Concat", apply("Relu", x), apply("Relu", apply("Neg", x)), axis=1)


def _halves(x: FunctionalTensor) -> tuple[tuple[int, int], tuple[int, int]]:
    channels = known_size(x, 1, "divisor_override")
    return (0, channels // 2), (channels // 2, channels)


def _lp_pool(
    rank: int, input: Given, norm_type: float, kernel_size: Extent, stride: Extent | None, ceil_mode: bool
) -> FunctionalTensor:
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


def _unpool(
    rank: int,
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None,
    padding: Extent,
    output_size: Sequence[int] | None,
) -> FunctionalTensor:
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
    plane = 1
    for size in made:
        plane *= size
    flat = flatten(x, 2)
    empty = apply("Expand", number(0, x), apply("Concat", sizes_of(x, 0, 2), ints(plane), axis=0))
    filled = apply("ScatterElements", empty, flatten(cast(places, places.dtype), 2), flat, axis=2)
    return unbatched(unflatten(filled, 2, made), added)


@function
def max_pool1d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window in signals, and its index in its plane if asked."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function
def max_pool2d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window in pictures, and its index in its plane if asked."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function
def max_pool3d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    dilation: Extent = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window in volumes, and its index in its plane if asked."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@function
def avg_pool1d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in signals."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@function
def avg_pool2d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in pictures."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@function
def avg_pool3d(
    input: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> FunctionalTensor:
    """Return the mean of each window in volumes."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@function
def lp_pool1d(
    input: Given, norm_type: float, kernel_size: Extent, stride: Extent | None = None, ceil_mode: bool = False
) -> FunctionalTensor:
    """Return the p-norm of each window in signals, of absolute values (PyTorch: with their signs)."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@function
def lp_pool2d(
    input: Given, norm_type: float, kernel_size: Extent, stride: Extent | None = None, ceil_mode: bool = False
) -> FunctionalTensor:
    """Return the p-norm of each window in pictures, of absolute values (PyTorch: with their signs)."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@function
def lp_pool3d(
    input: Given, norm_type: float, kernel_size: Extent, stride: Extent | None = None, ceil_mode: bool = False
) -> FunctionalTensor:
    """Return the p-norm of each window in volumes, of absolute values (PyTorch: with their signs)."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


@function
def adaptive_avg_pool1d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return means of as many windows in signals as `output_size` says; None keeps a dim."""
    return _adaptive(1, "GlobalAveragePool", mean, input, output_size)


@function
def adaptive_avg_pool2d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return means of as many windows in pictures as `output_size` says; None keeps a dim."""
    return _adaptive(2, "GlobalAveragePool", mean, input, output_size)


@function
def adaptive_avg_pool3d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return means of as many windows in volumes as `output_size` says; None keeps a dim."""
    return _adaptive(3, "GlobalAveragePool", mean, input, output_size)


@function
def adaptive_max_pool1d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in signals as `output_size` says; None keeps a dim."""
    return _adaptive(1, "GlobalMaxPool", amax, input, output_size)


@function
def adaptive_max_pool2d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in pictures as `output_size` says; None keeps a dim."""
    return _adaptive(2, "GlobalMaxPool", amax, input, output_size)


@function
def adaptive_max_pool3d(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
    """Return the largest elements of as many windows in volumes as `output_size` says; None keeps a dim."""
    return _adaptive(3, "GlobalMaxPool", amax, input, output_size)


@function
def max_unpool1d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in signals back to their places; the rest is 0."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@function
def max_unpool2d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in pictures back to their places; the rest is 0."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@function
def max_unpool3d(
    input: Given,
    indices: Given,
    kernel_size: Extent,
    stride: Extent | None = None,
    padding: Extent = 0,
    output_size: Sequence[int] | None = None,
) -> FunctionalTensor:
    """Put the results of a max pool in volumes back to their places; the rest is 0."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
