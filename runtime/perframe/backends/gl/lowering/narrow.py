"""float16 and bfloat16 on GL: families see float32 operands. float16 lies in half storage, which each store rounds to.
bfloat16 lies in float32 storage, which a kernel after the layer rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import NARROW_FLOATS, Binding, Call, Functions
from perframe.backends.operand import Make, Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.tensor import DataType

_MOVES = ("blocks", "gather", "join", "move", "pad", "reverse")  # families that compute no new numbers
# Adds half of the last kept bit, less for an even one, and drops the lower 16 bits. NaN stays NaN.
_ROUND = """float rounded(float x) {
    uint bits = floatBitsToUint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return x;
    return uintBitsToFloat((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}""".replace("\n", " ")


def in_float32(
    inputs: Sequence[Operand | None], outputs: Sequence[Operand]
) -> tuple[list[Operand | None], list[Operand]]:
    """A layer's inputs and outputs as its family sees them."""
    return [None if value is None else _widened(value) for value in inputs], [_widened(value) for value in outputs]


def before_rounding(layer: LayerLike, outputs: Sequence[Operand], scratch: Scratch) -> list[Operand]:
    """The outputs that a family computes. Results of bfloat16 lie in other storage before they are rounded."""
    return [scratch(y.shape, DataType.FLOAT32) if _is_rounded(layer, y) else _widened(y) for y in outputs]


def rounding(call: Call[Any], outputs: Sequence[Operand]) -> list[Binding]:
    """The kernels that round the computed outputs into those of bfloat16."""
    defines = {"OPERANDS": "1", "VECTOR0": "vec4", "GET0(x)": "x", "RESULT(x)": "x"}
    functions = Functions(f"{_ROUND}\nfloat formula(float x) {{ return rounded(x); }}")
    return [
        call.bind("elementwise", {"X0": made}, _widened(y), _AS_IT_LIES, defines, functions)
        for made, y in zip(call.outputs, outputs, strict=True)
        if _is_rounded(call.layer, y)
    ]


def _is_rounded(layer: LayerLike, output: Operand) -> bool:
    return output.dtype is DataType.BFLOAT16 and layer.family not in _MOVES


_AS_IT_LIES: dict[str, Any] = {"shape": (), "strides": (), "flat_": (1,), "rank": 0}


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
