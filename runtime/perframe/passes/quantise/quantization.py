"""Queries of passes about quantized values: the bytes that stand for a real value, their scale and zero point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Layer, Model, Value
from perframe.passes.match import constant_of, may_fold
from perframe.safety.records import dataclass
from perframe.tensor import DataType

BYTES = (DataType.UINT8, DataType.INT8)
MOVERS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "MaxPool", "Concat")


@dataclass(frozen=True)
class Numbers:
    """Bytes and their zero point (None for 0). The scale is None if the bytes stand for integers."""

    bytes: Value
    zero: Value | None
    scale: NDArray[Any] | None = None


@dataclass(frozen=True)
class Quantization:
    """The scale and the zero point of a whole tensor, as constants of one element.

    The zero point has the dtype of the bytes.
    """

    scale: NDArray[Any]
    zero: NDArray[Any]


def quantization(layer: Layer) -> Quantization | None:
    """Return the scale and zero point of a QuantizeLinear or DequantizeLinear of bytes.

    None if they are not constants, or not the same for the whole tensor.
    """
    scale = layer.scale.constant
    quantizes = layer.op == "QuantizeLinear"
    spec = (layer.output if quantizes else layer.x).spec
    real = (layer.x if quantizes else layer.output).spec
    if scale is None or scale.size != 1 or scale.dtype != np.float32 or spec.dtype not in BYTES:
        return None
    if not is_usual(scale):
        return None
    if layer.block_size or (quantizes and layer.precision) or real.dtype is not DataType.FLOAT32:
        return None
    zero = np.zeros((), spec.dtype.numpy)
    if layer.zero_point is not None:
        given = layer.zero_point.constant
        if given is None or given.size != 1:
            return None
        zero = given.reshape(())
    return Quantization(scale.reshape(()), zero)


def numbers_of(value: Value) -> Numbers | None:
    """Return the bytes that a DequantizeLinear turns into this value, else None."""
    made = value.producer
    if made is None or made.op != "DequantizeLinear" or made.epilogue:
        return None
    found = quantization(made)
    if found is None:
        return None
    return Numbers(made.x, made.zero_point if found.zero.any() else None, found.scale)


def whole_numbers(model: Model, value: Value) -> Numbers | None:
    """Return the bytes that a cast, and perhaps a subtraction of one zero point, turn into this value, else None."""
    made = value.producer
    if made is None or made.epilogue:
        return None
    if made.op == "Cast":
        source = made.input(0)
        return Numbers(source, None) if source.spec.dtype in BYTES else None
    numbers = whole_numbers(model, made.input(0)) if made.op == "Sub" else None
    if numbers is None or numbers.zero:
        return None
    subtracted = made.input(1)
    zero, dtype = subtracted.constant, numbers.bytes.spec.dtype.numpy
    if zero is not None:
        fits = zero.size == 1 and int(zero.reshape(())) in range(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
        name = f"{subtracted.name} as a byte"
        return Numbers(numbers.bytes, model.add_constant(name, zero.reshape(()).astype(dtype))) if fits else None
    cast = subtracted.producer
    if cast is None or cast.op != "Cast" or cast.epilogue:
        return None
    shape = cast.x.spec.shape
    same = cast.x.spec.dtype is numbers.bytes.spec.dtype
    return Numbers(numbers.bytes, cast.x) if same and shape is not None and shape.size == 1 else None


def whole_constant(values: NDArray[Any], axis: int) -> tuple[NDArray[Any], NDArray[Any] | None] | None:
    """Return a constant of integers as (signed bytes, zero points of the columns on an axis); None if none fit."""
    if not values.size:
        return None
    columns = np.moveaxis(values, axis, -1)
    rows = columns.reshape(-1, columns.shape[-1])
    low, high = rows.min(0), rows.max(0)
    if low.min() >= -128 and high.max() <= 127:
        return values.astype(np.int8), None
    if (high - low).max() > 255:
        return None
    zero = (-128 - low).astype(np.int32)
    return np.moveaxis(columns + zero, -1, axis).astype(np.int8), zero


def moves(layer: Layer) -> bool:
    """Whether a layer moves elements, or chooses among them, so that it can take their bytes."""
    if layer.op != "Resize":
        return layer.op in MOVERS
    return bool(layer.mode == "nearest" and layer.coordinate_transformation_mode != "tf_crop_and_resize")


def averages_pixels(layer: Layer) -> bool:
    """Whether a layer makes the average over all dims but the first two, of which there is at least one."""
    shape = layer.input(0).spec.shape if layer.operands else None
    if shape is None or len(shape) < 3:
        return False
    if layer.op == "ReduceMean":
        axes = constant_of(layer.axes)
        return axes is not None and sorted(int(axis) % len(shape) for axis in axes) == list(range(2, len(shape)))
    if layer.op == "AveragePool":
        covers = list(layer.kernel_shape or ()) == list(shape[2:])
        made = layer.output.spec.shape
        padded = any(layer.pads or ()) or layer.auto_pad != "NOTSET"
        return covers and not padded and made is not None and set(made[2:]) == {1}
    return layer.op == "GlobalAveragePool"


def is_usual(scale: NDArray[Any]) -> bool:
    """Whether all scales are positive, and of sizes that may be multiplied. With others, layers are not rewritten."""
    return bool((scale > 0).all()) and may_fold(scale)


def is_one(scale: NDArray[Any]) -> bool:
    """Whether a scale changes nothing."""
    return bool((scale == 1).all())
