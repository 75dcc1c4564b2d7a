"""Convolutions over the last dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply, together
from perframe.functional.tensor import FunctionalTensor, Given
from perframe.functional.windows import Extent, batched, each, of_ranks, unbatched


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
        raise InputError(f"padding is a number, 'same' or 'valid', not {padding!r}")
    return each(padding, rank, "padding", 0) * 2


def _conv(
    rank: int,
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent | str = 0,
    dilation: Extent = 1,
    groups: int = 1,
) -> FunctionalTensor:
    """Convolve signals, pictures or volumes: `weight` is (outputs, inputs / groups, kernel)."""
    values = together(input, weight, *([] if bias is None else [bias]))
    x, added = batched(values[0], rank)
    w = values[1]
    if w.ndim != rank + 2:
        raise InputError(f"the weight is (outputs, inputs / groups, {rank} dim(s)), not {w.spec}")
    strides, dilations = each(stride, rank, "stride"), each(dilation, rank, "dilation")
    pads = _pads(padding, w.shape[2:], strides, dilations)
    made = apply("Conv", x, w, *values[2:], strides=strides, dilations=dilations, pads=pads, group=int(groups))
    return unbatched(made, added)


def _conv_transpose(
    rank: int,
    input: Given,
    weight: Given,
    bias: Given | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    output_padding: Extent = 0,
    groups: int = 1,
    dilation: Extent = 1,
) -> FunctionalTensor:
    """Convolve signals, pictures or volumes transposed: `weight` is (inputs, outputs / groups, kernel)."""
    values = together(input, weight, *([] if bias is None else [bias]))
    x, added = batched(values[0], rank)
    if values[1].ndim != rank + 2:
        raise InputError(f"the weight is (inputs, outputs / groups, {rank} dim(s)), not {values[1].spec}")
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


conv1d, conv2d, conv3d = of_ranks(_conv)
conv_transpose1d, conv_transpose2d, conv_transpose3d = of_ranks(_conv_transpose)
