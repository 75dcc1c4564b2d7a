"""Bits read as another dtype, on GL: floats and ints of 32 bits, and smaller integers, which the GPU holds as ints."""

from __future__ import annotations

from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools, kind_of, wrapped
from perframe.layers.bits import Bits
from perframe.tensor import DataType

DTYPES, READS_BITS = ALL_DTYPES, True

_READ = {("float", "int"): "floatBitsToInt(x)", ("int", "float"): "intBitsToFloat(x)"}


def lower(call: Call[Bits], tools: Tools) -> list[Binding]:
    """One kernel. Between integers of equal width it only changes the sign's meaning, so it wraps them around."""
    kinds = kind_of(call.x.dtype), kind_of(call.y.dtype)
    read = _READ.get(kinds) or wrapped("x", call.y.dtype)
    if call.y.dtype is DataType.BOOL:
        read = "int((x) != 0)"
    return [call.bind("bits", {"X": call.x}, call.y, defines={"READ(x)": read})]
