"""Convolutions and pools: functions of a window that slides over the last dims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, apply_all, cast, function, in_floats, ints, known_size, number, together
from perframe.functional.elementwise import mul
from perframe.functional.moving import flatten, unflatten
from perframe.functional.pieces import cat, cut, limited
from perframe.functional.reductions import amax, mean
from perframe.functional.sizes import sizes_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor

Extent = int | Sequence[int]


def each(value: Extent, rank: int, what: str, least: int = 1) -> tuple[int, ...]:
    """Return one number for each of `rank` dims. Raises InputError for too many, too few or too small numbers."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(numbers) == 1:
        numbers *= rank
    whole = all(hasattr(one, "__index__") and not isinstance(one, bool) and one >= least for one in numbers)
    if len(numbers) != rank or not whole:
        raise InputError(f"{what} is a number from {least}, or one for each of {rank} dim(s), and not {value!r}")
    return tuple(int(one) for one in numbers)


def batched(input: Given, rank: int) -> tuple[FunctionalTensor, bool]:
    """Return (batch, channels, ...), and whether the batch was added."""
    x = to_tensor(input)
    if x.ndim == rank + 1:
        return apply("Unsqueeze", x, ints(0)), True
    if x.ndim != rank + 2:
        raise InputError(f"{x.spec} is neither (batch, channels, {rank} dim(s)) nor (channels, {rank} dim(s))")
    return x, False


def unbatched(x: FunctionalTensor, added: bool) -> FunctionalTensor:
    """Remove the batch if it was added."""
    return apply("Squeeze", x, ints(0)) if added else x


# --- convolutions ---


def _pads(
    padding: Extent | str, kernel: Sequence[Any], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    rank = len(kernel)
    if padding == "valid":
        return (0,) * 2 * rank
    if padding == "same":
        if any(step != 1 for step in strides):
            raise InputError("padding='same' needs a stride of 1")
        if not all(isinstance(size, int) for size in kernel):
            raise InputError("padding='same' needs a kernel of known size")
        whole = [apart * (size - 1) for apart, size in zip(dilations, kernel, strict=True)]
        return (*(extra // 2 for extra in whole), *(extra - extra // 2 for extra in whole))
    if isinstance(padding, str):
        raise InputError(f"padding is a number, 'same' or 'valid', and not {padding!r}")
    return each(padding, rank, "padding", 0) * 2


def _convolution(
    rank: int,
    input: Given,
    weight: Given,
    bias: Given | None,
    stride: Extent,
    padding: Extent | str,
    dilation: Extent,
    groups: int,
) -> FunctionalTensor:
    values = together(input, weight, *([] if bias is None else [bias]))
    x, added = batched(values[0], rank)
    w = values[1]
    if w.ndim != rank + 2:
        raise InputError(f"the weight is (outputs, inputs / groups, {rank} dim(s)), and not {w.spec}")
    strides, dilations = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    pads = _pads(padding, w.shape[2:], strides, dilations)
    made = apply("Conv", x, w, *values[2:], strides=strides, dilations=dilations, pads=pads, group=int(groups))
    return unbatched(made, added)


def _transposed(
    rank: int,
    input: Given,
    weight: Given,
    bias: Given | None,
    stride: Extent,
    padding: Extent,
    output_padding: Extent,
    groups: int,
    dilation: Extent,
) -> FunctionalTensor:
    values = together(input, weight, *([] if bias is None else [bias]))
    x, added = batched(values[0], rank)
    if values[1].ndim != rank + 2:
        raise InputError(f"the weight is (inputs, outputs / groups, {rank} dim(s)), and not {values[1].spec}")
    strides, dilations = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    extra = each(output_padding, rank, "output_padding", 0)
    if any(more >= max(step, apart) for more, step, apart in zip(extra, strides, dilations, strict=True)):
        raise InputError(f"output_padding {extra} is not smaller than the stride {strides} or the dilation {dilations}")
    made = apply(
        "ConvTranspose",
        x,
        *values[1:],
        strides=strides,
        dilations=dilations,
        pads=each(padding, rank, "padding", 0) * 2,
        output_padding=extra,
        group=int(groups),
    )
    return unbatched(made, added)


def _conv(rank: int) -> Callable[..., FunctionalTensor]:
    def body(
        input: Given,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent | str = 0,
        dilation: Extent = 1,
        groups: int = 1,
    ) -> FunctionalTensor:
        return _convolution(rank, input, weight, bias, stride, padding, dilation, groups)

    return body


def _conv_transpose(rank: int) -> Callable[..., FunctionalTensor]:
    def body(
        input: Given,
        weight: Given,
        bias: Given | None = None,
        stride: Extent = 1,
        padding: Extent = 0,
        output_padding: Extent = 0,
        groups: int = 1,
        dilation: Extent = 1,
    ) -> FunctionalTensor:
        return _transposed(rank, input, weight, bias, stride, padding, output_padding, groups, dilation)

    return body


# --- pools ---


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


def _max_pool(rank: int) -> Callable[..., Any]:
    def body(
        input: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        dilation: Extent = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        how = {"dilations": each(dilation, rank, "dilation"), "ceil_mode": int(bool(ceil_mode))}
        largest, added, x = _pool("MaxPool", rank, input, kernel_size, stride, padding, **how)
        if not return_indices:
            return unbatched(largest, added)
        places, _, _ = _pool("MaxPool", rank, input, kernel_size, stride, padding, indices=True, **how)
        plane = apply("ReduceProd", sizes_of(x, 2), keepdims=0)  # ONNX counts through the batch, PyTorch in a plane
        return unbatched(largest, added), unbatched(apply("Mod", places, plane), added)

    return body


def _avg_pool(rank: int) -> Callable[..., FunctionalTensor]:
    def body(
        input: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
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

    return body


def _split_signs(input: Given, rank: int) -> FunctionalTensor:
    """Return the positive and the negative parts of all elements, as twice as many channels."""
    x, _ = batched(input, rank)
    return apply("Concat", apply("Relu", x), apply("Relu", apply("Neg", x)), axis=1)


def _halves(x: FunctionalTensor) -> tuple[tuple[int, int], tuple[int, int]]:
    channels = known_size(x, 1, "divisor_override")
    return (0, channels // 2), (channels // 2, channels)


def _lp_pool(rank: int) -> Callable[..., FunctionalTensor]:
    def body(
        input: Given, norm_type: float, kernel_size: Extent, stride: Extent | None = None, ceil_mode: bool = False
    ) -> FunctionalTensor:
        how = {"ceil_mode": int(bool(ceil_mode)), "p": float(norm_type)}
        made, added, _ = _pool("LpPool", rank, in_floats(input), kernel_size, stride, 0, **how)
        return unbatched(made, added)

    return body


def _adaptive(rank: int, op: str, reduce: Callable[..., FunctionalTensor]) -> Callable[..., FunctionalTensor]:
    def body(input: Given, output_size: int | Sequence[int | None]) -> FunctionalTensor:
        x, added = batched(input, rank)
        wanted = (output_size,) * rank if isinstance(output_size, int) else tuple(output_size)
        if len(wanted) != rank:
            raise InputError(f"output_size is a number, or one for each of {rank} dims, and not {output_size!r}")
        if all(size == 1 for size in wanted):
            return unbatched(apply(op, x), added)
        for axis, size in enumerate(wanted, 2):
            if size is not None:
                x = _adapted(x, axis, int(size), reduce)
        return unbatched(x, added)

    return body


def _adapted(x: FunctionalTensor, axis: int, size: int, reduce: Callable[..., FunctionalTensor]) -> FunctionalTensor:
    """Reduce one dim to `size` windows, as PyTorch cuts them: floor(i * n / size) to ceil((i + 1) * n / size)."""
    if size < 1:
        raise InputError(f"an output size is at least 1, and not {size}")
    whole = known_size(x, axis, "an adaptive pool")
    if whole % size == 0:
        return reduce(unflatten(x, axis, (size, whole // size)), axis + 1)
    parts = [(at * whole // size, -(-(at + 1) * whole // size)) for at in range(limited(size))]
    return cat([reduce(cut(x, axis, *part), axis, keepdim=True) for part in parts], axis)


def _unpool(rank: int) -> Callable[..., FunctionalTensor]:
    def body(
        input: Given,
        indices: Given,
        kernel_size: Extent,
        stride: Extent | None = None,
        padding: Extent = 0,
        output_size: Sequence[int] | None = None,
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

    return body


_FAMILIES: dict[str, tuple[Callable[[int], Callable[..., Any]], str]] = {
    "conv{}d": (_conv, "Convolve {}: `weight` is (outputs, inputs / groups, kernel)."),
    "conv_transpose{}d": (_conv_transpose, "Convolve {} transposed: `weight` is (inputs, outputs / groups, kernel)."),
    "max_pool{}d": (_max_pool, "Return the largest element of each window in {}, and its index in its plane if asked."),
    "avg_pool{}d": (_avg_pool, "Return the mean of each window in {}."),
    "lp_pool{}d": (
        _lp_pool,
        "Return the p-norm of each window in {}, of absolute values (PyTorch: with their signs).",
    ),
    "adaptive_avg_pool{}d": (
        lambda rank: _adaptive(rank, "GlobalAveragePool", mean),
        "Return means of as many windows in {} as `output_size` says; None keeps a dim.",
    ),
    "adaptive_max_pool{}d": (
        lambda rank: _adaptive(rank, "GlobalMaxPool", amax),
        "Return the largest elements of as many windows in {} as `output_size` says; None keeps a dim.",
    ),
    "max_unpool{}d": (_unpool, "Put the results of a max pool in {} back to their places; the rest is 0."),
}
for _rank, _what in enumerate(("signals", "pictures", "volumes"), 1):
    for _pattern, (_make, _sentence) in _FAMILIES.items():
        _body = _make(_rank)
        _body.__name__, _body.__doc__ = _pattern.format(_rank), _sentence.format(_what)
        function(_body)
