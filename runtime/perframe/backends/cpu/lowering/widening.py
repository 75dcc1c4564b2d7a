"""float16 in float32 kernels: inputs are converted before the steps of a layer, and results after them. Each layer
computes in float32, and rounds its results once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels import fields
from perframe.backends.cpu.kernels.sizes import has_halves
from perframe.backends.cpu.lowering.lowering import float_array, sharing, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Later, Make, Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.tensor import DataType

CHUNK = 4096  # elements in an item
NARROW, WIDE = DataType.FLOAT16, DataType.FLOAT32

Lower = Callable[[Sequence[Operand | None], Sequence[Operand], Scratch], list[NativeStep] | None]


def widened(
    layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch, lower: Lower
) -> list[NativeStep] | None:
    """Return the steps of `lower` in float32, between conversions. None without float16, or if `lower` returns None."""
    values = [value for value in (*inputs, *outputs) if value is not None]
    if not has_halves() or all(value.dtype is not NARROW for value in values) or any(v.has_gaps for v in values):
        return None
    before, after, given, made = list[NativeStep](), list[NativeStep](), list[Operand | None](), list[Operand]()
    for value in inputs:
        if value is None or value.dtype is not NARROW:
            given.append(value)
        elif value.is_constant:
            given.append(_constant(value))
        else:
            wide = scratch(value.shape, WIDE)
            given.append(wide)
            before.append(_conversion(layer, value, wide))
    for value in outputs:
        if value.dtype is NARROW:
            made.append(scratch(value.shape, WIDE))
            after.append(_conversion(layer, made[-1], value))
        else:
            made.append(value)
    steps = lower(given, made, scratch)
    return None if steps is None else [*before, *steps, *after]


def _constant(value: Operand) -> Operand:
    """A constant as float32. What is derived from it belongs to the constant itself, and is shared in the same way."""

    def widen(array: Any) -> Any:
        return np.asarray(array, np.float32)

    def derive(kind: str, make: Make) -> Operand:
        def of_widened(array: Any) -> Any:
            return make(widen(array))

        return value.derived(f"float32 {kind}", Later(make.size, of_widened) if isinstance(make, Later) else of_widened)

    return Operand(
        value.name,
        value.shape,
        WIDE,
        lambda: widen(value.value),
        lambda: value.derived("float32", widen).storage,
        derive,
    )


def _conversion(layer: LayerLike, x: Operand, out: Operand) -> NativeStep:
    """The step that converts elements one by one."""
    text = f"operands, result = ['{x.dtype.value} float'], '{out.dtype.value}'\n"
    text += f"@inline\ndef formula(x0, p):\n    return x0\n{jit.epilogue_text(())}"
    numbers, words, size = float_array(()), fields.elementwise(1), x.shape.size
    chunks = -(-size // CHUNK)
    fixed = words.numbers(parameters=numbers.ctypes.data, rank=1, chunks=chunks, chunk=CHUNK, pitch=size)
    operands, grain = words.operands(x0=x, out=out), sharing(chunks, size)
    return step(layer, "elementwise", operands, [*fixed, size, 1], chunks, text, [numbers], grain=grain)
