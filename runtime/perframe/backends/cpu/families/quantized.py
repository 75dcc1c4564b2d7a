"""Products of quantized numbers on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families import conv, matmul
from perframe.backends.cpu.kernels.fields import BATCH_STEPS, BYTE_DEPTHWISE
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES
from perframe.backends.cpu.lowering import byte_product
from perframe.backends.cpu.lowering.byte_product import Columns
from perframe.backends.cpu.lowering.gemm import SPLIT_FLOPS, Multiplication, images_of, matrices_of, window_of_rows
from perframe.backends.cpu.lowering.lowering import float_array, step, window_reach, window_words
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.conv import Conv, Convolution
from perframe.layers.matmul import MatMul, Product
from perframe.layers.quantized import QuantizedProduct
from perframe.tensor import DataType

BYTES = (DataType.UINT8, DataType.INT8)
NEAR = 8192  # float32 that fit into the first cache beside other values


def compute(layer: LayerLike, form: QuantizedProduct, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Multiply integers without their zero points, and make results of the sums."""
    x, w, bias, x_zero, w_zero, x_scale, w_scale, y_zero = inputs
    product = form.product
    after = len(product.size) if isinstance(product, Convolution) else 0

    def column(values: Any, beside: int = after) -> Any:
        return values.reshape(-1, *(1,) * beside) if values.size > 1 else values.reshape(())

    left = x.astype(np.int32) - (0 if x_zero is None else x_zero.astype(np.int32).reshape(()))
    beside = after + 1 if isinstance(product, Convolution) else 0
    right = w.astype(np.int32) - (0 if w_zero is None else column(w_zero.astype(np.int32), beside))
    family: Any = conv if isinstance(product, Convolution) else matmul
    operator = Conv if isinstance(product, Convolution) else MatMul
    sums = family.compute(layer, product, operator.complete([left, right]), outputs)[0]
    sums = sums.reshape(outputs_of(product)).astype(np.int32)
    whole = bias is not None and bias.dtype == np.int32
    if whole:
        sums = sums + column(bias)
    if w_scale is None:
        return [sums]
    factor = column(w_scale) * (np.float32(1) if x_scale is None else x_scale.reshape(()))
    result = sums.astype(np.float32) * factor
    if bias is not None and not whole:
        result = result + column(bias)
    if y_zero is None:
        return [result]
    zero = int(y_zero.reshape(()))
    low, high = form.limits(outputs[0].dtype)
    return [np.clip(np.rint(np.clip(result, -1e6, 1e6)) + zero, low, high).astype(np.int32)]


def outputs_of(form: Convolution | Product) -> tuple[int, ...]:
    """The shape of the sums."""
    if isinstance(form, Convolution):
        return (form.batch, form.outputs, *form.output)
    return (*form.batch, form.rows, form.columns)


def lower(
    layer: LayerLike,
    form: QuantizedProduct,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """Products over packed weights, which must be constant. Convolutions must have their channels last."""
    x, w, bias, x_zero, w_zero, x_scale, w_scale, y_zero = inputs
    fixed = (w, bias, w_zero, w_scale, y_zero)
    if x is None or w is None or any(value is not None and not value.is_constant for value in fixed):
        return None
    if not {x.dtype, w.dtype} <= set(BYTES) or any(
        value is not None and value.shape.size != 1 for value in (x_zero, x_scale, y_zero)
    ):
        return None
    columns, whole = Columns(w, bias, w_zero, w_scale), form.product
    limits = None if y_zero is None else _above_zero(form, y_zero)
    if isinstance(whole, Convolution) and whole.groups == whole.channels == whole.outputs > 1:
        alone = _depthwise(layer, whole, x, columns, (x_zero, y_zero), limits, outputs[0])
        if alone is not None:
            return [alone]
    made = _of_convolution(layer, whole) if isinstance(whole, Convolution) else _of_matrices(whole)
    if made is None:
        return None
    product, pack = made
    return byte_product.multiply(layer, product, x, columns, pack, (x_zero, x_scale, y_zero), limits, outputs[0])


def _above_zero(form: QuantizedProduct, zero: Operand) -> tuple[int, int]:
    """The limits of results minus their zero point."""
    assert zero.value is not None
    low, high = form.limits(zero.dtype)
    return low - int(zero.value.reshape(())), high - int(zero.value.reshape(()))


def _depthwise(
    layer: LayerLike,
    form: Convolution,
    x: Operand,
    columns: Columns,
    zeros: tuple[Operand | None, Operand | None],
    low_high: tuple[int, int] | None,
    out: Operand,
) -> NativeStep | None:
    """The step for each channel by itself, to bytes, or None if float32 may not hold the sums."""
    window = window_words(form.window, form.size, form.output)
    x_zero, y_zero = zeros
    taps = math.prod(form.window.kernel)
    if not layer.channels_last or window is None or y_zero is None or low_high is None or taps * 2**16 > 2**24:
        return None
    band = _band(window)
    if not band:
        return None
    count, whole = form.channels, columns.bias is not None and columns.bias.dtype is DataType.INT32
    operands = BYTE_DEPTHWISE.operands(
        x=x,
        weights=_by_tap(columns, count),
        bias=columns.spread(columns.bias if whole else None, count, np.int32),
        factors=columns.spread(columns.scale, count, np.float32),
        offsets=columns.spread(None if whole else columns.bias, count, np.float32),
        x_zero=x_zero or Operand.stored(np.zeros(1, x.dtype.numpy)),
        y_zero=y_zero,
        out=out,
    )
    limits = float_array(low_high)
    items = form.batch * -(-window["out_height"] // band) * -(-count // LANES)
    grain = SPLIT_FLOPS // 4 // (2 * band * window["out_width"] * taps * LANES)
    text = f"signed = {x.dtype is DataType.INT8}"
    numbers = BYTE_DEPTHWISE.numbers(limits=limits.ctypes.data, band=band, **window, channels=count)
    return step(layer, "byte_depthwise", operands, numbers, items, text, [limits], grain=grain)


def _band(window: Mapping[str, int]) -> int:
    """The output rows of an item: their inputs, a vector of channels, should stay in the first cache. It is 0 if the
    inputs of one row are too large for the stack.
    """
    reach_y, reach_x = window_reach(window)
    line = ((window["out_width"] - 1) * window["stride_x"] + reach_x) * LANES
    if line * reach_y > BLOCK:
        return 0
    return max(1, min(window["out_height"], (NEAR // line - reach_y) // window["stride_y"] + 1))


def _by_tap(columns: Columns, channels: int) -> Operand:
    """Weights without their zero points as (taps, channels) of float32."""

    def taps(value: Any) -> Any:
        return np.ascontiguousarray(value.reshape(channels, -1).T.astype(np.float32))

    if columns.zero is None:
        return columns.w.derived("taps", taps)
    assert columns.w.value is not None and columns.zero.value is not None
    zero = np.broadcast_to(columns.zero.value.reshape(-1).astype(np.int32), channels)
    return Operand.stored(taps(columns.w.value.reshape(channels, -1).astype(np.int32) - zero[:, None]))


Packing = tuple[str, Callable[[Any], Any]]


def _of_convolution(layer: LayerLike, form: Convolution) -> tuple[Multiplication, Packing] | None:
    window = window_words(form.window, form.size, form.output)
    if not layer.channels_last or window is None:
        return None
    groups, depth, outputs = form.groups, form.depth, form.outputs // form.groups
    images, seen = images_of(form, window)
    product = Multiplication(
        images=images,
        columns=outputs,
        x_pitch=form.channels,
        out_pitch=form.outputs,
        addend_pitch=0,
        window=seen,
        channels=depth,
        batch=(groups,),
        steps=BATCH_STEPS.operands(
            x=(depth,),
            weights=(byte_product.packed_size(math.prod(form.window.kernel) * depth, outputs),),
            bias=(outputs,),
            out=(outputs,),
            addend=(0,),
        ),
    )
    return product, (f"of {groups} groups", lambda weights: matrices_of(weights, groups))


def _of_matrices(form: Product) -> tuple[Multiplication, Packing] | None:
    """The product if the rows of a follow each other, and if one matrix serves the whole batch."""
    pitch = form.a_strides[-2]
    rows = form.rows
    for size, stride in zip(reversed(form.batch), reversed(form.a_strides[:-2]), strict=True):
        if size > 1 and stride != rows * pitch:
            return None
        rows *= size
    if form.a_strides[-1] != 1 or any(form.b_strides[:-2]) or not form.depth:
        return None
    shape, strides = (form.depth, form.columns), form.b_strides[-2:]

    def matrix(value: Any) -> Any:
        flat = np.ascontiguousarray(value).reshape(-1)
        return np.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides])

    product = Multiplication(
        images=1,
        columns=form.columns,
        x_pitch=pitch,
        out_pitch=form.columns,
        addend_pitch=0,
        window=window_of_rows(rows),
        channels=form.depth,
    )
    return product, (f"{strides}", matrix)
