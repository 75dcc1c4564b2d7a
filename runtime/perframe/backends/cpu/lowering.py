"""What the families' lowerings share: which dtypes have kernels, and numbers as arrays that a step keeps alive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.backends.cpu import jit
from perframe.backends.cpu.program import NativeStep
from perframe.layers.epilogue import parameters
from perframe.tensor import DataType

FLOAT32 = DataType.FLOAT32


def all_float32(values: Iterable[Operand | None]) -> bool:
    """Whether all that are present are float32."""
    return all(value is None or value.dtype is FLOAT32 for value in values)


def four_bytes(*values: Operand) -> bool:
    """Whether elements are of four bytes, which copies move whatever they mean."""
    return all(value.dtype is not DataType.STRING and value.dtype.numpy.itemsize == 4 for value in values)


def float_array(values: Sequence[float]) -> Any:
    """Numbers as float32 in memory; at least one, so that there is an address."""
    return np.array(values or (0.0,), np.float32)


def step(
    layer: LayerLike,
    kernel: str,
    operands: Sequence[Operand],
    numbers: Sequence[int],
    items: int,
    text: str = "",
    keep: Sequence[Any] = (),
) -> NativeStep:
    """A native step; `keep` are the arrays whose addresses are among the numbers."""
    return NativeStep(layer.name, jit.kernel(kernel, text), [o.storage for o in operands], numbers, items, keep)


def epilogue(layer: LayerLike) -> tuple[str, Any]:
    """The text of a layer's epilogue and its parameters in memory."""
    return jit.epilogue_text(layer.epilogue), float_array(parameters(layer.epilogue))
