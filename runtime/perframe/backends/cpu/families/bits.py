"""Bits read as another dtype, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.tensor import DataType

_SIGNED, _UNSIGNED = {DataType.INT4: 4, DataType.INT2: 2}, {DataType.UINT4: 4, DataType.UINT2: 2}


def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Reinterpret the memory. ml_dtypes stores a number shorter than a byte in the low bits of a byte."""
    to, x = outputs[0].dtype, np.ascontiguousarray(inputs[0])
    bits = (_SIGNED | _UNSIGNED).get(to)
    if bits is None:
        kept = x.reshape(-1).view(np.uint8) & 15 if to is DataType.FLOAT4E2M1 else x.reshape(-1)
        return [kept.view(to.numpy).reshape(x.shape)]
    raw = x.reshape(-1).view(np.uint8) & np.uint8(2**bits - 1)
    values = raw.astype(np.int16)
    if to in _SIGNED:
        values = np.where(values >= 2 ** (bits - 1), values - 2**bits, values)
    return [values.astype(np.int8).astype(to.numpy).reshape(x.shape)]
