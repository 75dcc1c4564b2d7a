"""Layers from bytes to bytes on the CPU: sums, look-ups and averages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.families.quantize import CHUNK, SIGNED
from perframe.backends.cpu.kernels.fields import BYTE_ADD, BYTE_MEAN, BYTE_TABLE
from perframe.backends.cpu.kernels.sizes import LANES
from perframe.backends.cpu.lowering.lowering import SPLIT_ELEMENTS, float_array, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.layers.quantize import WHOLE_RANGES
from perframe.layers.requantize import LookupTable, Mean, Sum

Form = Sum | LookupTable | Mean


def compute(layer: LayerLike, form: Form, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Compute in float32, as the kernels do."""
    if isinstance(form, LookupTable):
        return [inputs[1][inputs[0].view(np.uint8)]]
    if isinstance(form, Sum):
        given = zip(inputs, form.zeros, form.factors, strict=True)
        total = sum((x.astype(np.float32) - zero) * np.float32(factor) for x, zero, factor in given)
        return [np.clip(np.rint(total) + form.zero, form.low, form.high)]
    x = inputs[0].reshape(form.batch, form.channels, form.pixels).astype(np.int32)
    mean = (x - form.x_zero).sum(-1).astype(np.float32) * np.float32(form.factor / form.pixels)
    return [np.clip(np.rint(mean) + form.zero, *WHOLE_RANGES[outputs[0].dtype])]


def lower(
    layer: LayerLike, form: Form, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Native steps: sums and look-ups in any order of dims; averages if the channels are last."""
    given, out = [value for value in inputs if value is not None], outputs[0]
    x, elements = given[0], given[0].shape.size
    chunks, grain = -(-elements // CHUNK), max(1, SPLIT_ELEMENTS // CHUNK)
    if isinstance(form, LookupTable):
        operands = BYTE_TABLE.operands(x=x, table=given[1], out=out)
        numbers = BYTE_TABLE.numbers(elements=elements, chunk=CHUNK)
        return [step(layer, "requantize.look_up", operands, numbers, chunks, grain=grain)]
    if isinstance(form, Sum):
        zeros = np.array([*form.zeros, form.zero], np.int32)
        limits = float_array((form.low - form.zero, form.high - form.zero))
        keep = {"factors": float_array(form.factors), "zeros": zeros, "limits": limits}
        addresses = {name: array.ctypes.data for name, array in keep.items()}
        numbers = BYTE_ADD.numbers(**addresses, elements=elements, chunk=CHUNK)
        operands = BYTE_ADD.operands(a=x, b=given[1], out=out)
        text = f"first_signed, second_signed = {SIGNED[x.dtype]}, {SIGNED[given[1].dtype]}"
        return [step(layer, "requantize.add", operands, numbers, chunks, text, [*keep.values()], grain=grain)]
    if not layer.channels_last or not form.pixels or x.dtype is not out.dtype:
        return None
    factor, zeros = float_array([form.factor / form.pixels]), np.array([form.x_zero, form.zero], np.int32)
    operands = BYTE_MEAN.operands(x=x, factor=Operand.stored(factor), zeros=Operand.stored(zeros), out=out)
    numbers = BYTE_MEAN.numbers(pixels=form.pixels, channels=form.channels)
    text = f"signed = {SIGNED[x.dtype]}"
    items = form.batch * -(-form.channels // LANES)
    grain = items * SPLIT_ELEMENTS // elements
    return [step(layer, "byte_pool.mean", operands, numbers, items, text, grain=grain)]
