"""float16 and bfloat16 on GL: families see float32 operands. float16 lies in half storage, which each store rounds to;
bfloat16 lies in float32 storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import NARROW_FLOATS
from perframe.backends.operand import Make, Operand
from perframe.tensor import DataType


def in_float32(
    inputs: Sequence[Operand | None], outputs: Sequence[Operand]
) -> tuple[list[Operand | None], list[Operand]]:
    """A layer's inputs and outputs as its family sees them."""
    return [None if value is None else _widened(value) for value in inputs], [_widened(value) for value in outputs]


def _widened(value: Operand) -> Operand:
    if value.dtype not in NARROW_FLOATS:
        return value

    def widen(array: Any) -> Any:
        return np.asarray(array, np.float32)

    def known() -> Any:
        return widen(value.value)

    def derive(kind: str, make: Make) -> Operand:
        return value.derived(f"float32 {kind}", lambda array: make(widen(array)))

    return Operand(
        value.name,
        value.shape,
        DataType.FLOAT32,
        known if value.is_constant else None,
        lambda: value.storage,
        derive if value.is_constant else None,
        part=value.part,
    )
