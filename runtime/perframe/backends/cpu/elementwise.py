"""Elementwise layers on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand, Scratch
from perframe.backends.cpu import jit
from perframe.backends.cpu.casting import convert, is_native
from perframe.backends.cpu.kernels.sizes import MAX_RANK
from perframe.backends.cpu.lowering import SPLIT_ELEMENTS, all_float32, float_array, step
from perframe.backends.cpu.program import NativeStep
from perframe.layers.broadcasting import Elementwise
from perframe.layers.epilogue import parameters
from perframe.layers.formula import translate
from perframe.tensor import DataType

PIECE = 4096  # elements of a long row that one core takes at a time


def compute(layer: LayerLike, form: Elementwise, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """The formula itself, on broadcast arrays."""
    given = [inputs[index] for index in form.operands]
    given = [array if is_native(array.dtype) else array.astype(np.float32) for array in given]  # ml_dtypes as float32
    views = []
    for array, strides in zip(given, form.strides, strict=True):
        flat = np.ascontiguousarray(array).reshape(-1)
        steps = tuple(step * flat.itemsize for step in strides)
        strided = np.lib.stride_tricks.as_strided
        views.append(strided(flat, form.shape, steps) if math.prod(form.shape) else np.empty(form.shape, flat.dtype))
    names = [name for name in (form.formula.__kwdefaults__ or {})]
    result = form.formula(*views, **dict(zip(names, form.parameters, strict=True)))
    wanted = outputs[0].dtype
    if wanted is DataType.STRING:
        return [np.asarray(result).astype(object)]
    how = layer.attributes
    result = convert(result, wanted, bool(how.get("saturate", 1)), how.get("round_mode", "up"))
    return [np.broadcast_to(result, form.shape)]


def lower(
    layer: LayerLike,
    form: Elementwise,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
) -> list[NativeStep] | None:
    """One kernel a formula and epilogue; float32 only."""
    operands = [value for index, value in enumerate(inputs) if index in form.operands and value is not None]
    if not all_float32([*operands, outputs[0]]) or len(operands) > 5 or len(form.shape) > MAX_RANK:
        return None
    text, kind = translate(form.formula, ["float"] * len(operands), "python")
    if kind != "float":
        return None
    numbers = float_array((*form.parameters, *parameters(layer.epilogue)))
    first = len(form.parameters)
    names = ", ".join(f"x{k}" for k in range(len(operands)))
    arguments = ", ".join([names, *(f"p[{k}]" for k in range(first))])
    tail = jit.epilogue_text(layer.epilogue)
    if first:
        for index in reversed(range(len(numbers) - first)):
            tail = tail.replace(f"p[{index}]", f"p[{index + first}]")
    whole = f"{text}\n@inline\ndef formula({names}, p):\n    return {form.formula.__name__}({arguments})\n{tail}"
    inner = form.shape[-1]
    pieces = -(-inner // PIECE) if inner > 2 * PIECE else 1
    piece, items = -(-inner // pieces), math.prod(form.shape[:-1]) * pieces
    flat = [dim for strides in form.strides for dim in strides]
    return [
        step(
            layer,
            f"elementwise.build{len(operands)}",
            [*operands, outputs[0]],
            [numbers.ctypes.data, len(form.shape), pieces, piece, *form.shape, *flat],
            items,
            whole,
            [numbers],
            grain=max(1, items * SPLIT_ELEMENTS // math.prod(form.shape)),
        )
    ]
