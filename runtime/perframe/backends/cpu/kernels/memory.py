"""Addresses as typed pointers, bits as floats, and calls through addresses: operations that Numba lacks."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# What is called through an address raises nothing. Without knowing that, LLVM would add tables for unwinding, and on
# Windows these must lie within 4 GiB of all other code and data that the same engine links.
NO_UNWIND = ("nounwind",)


def _pointer(element: Any, llvm: Any) -> Any:
    @intrinsic
    def cast(typing: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], llvm.as_pointer())

        return types.CPointer(element)(types.int64), codegen

    return cast


floats = _pointer(types.float32, ir.FloatType())
int64s = _pointer(types.int64, ir.IntType(64))
int32s = _pointer(types.int32, ir.IntType(32))
bools = _pointer(types.uint8, ir.IntType(8))
shorts = _pointer(types.uint16, ir.IntType(16))
doubles = _pointer(types.float64, ir.DoubleType())

# pointers by the dtype of their elements; a bool is a byte
POINTERS = {
    "bool": bools,
    "uint8": bools,
    "int8": _pointer(types.int8, ir.IntType(8)),
    "uint16": shorts,
    "int16": _pointer(types.int16, ir.IntType(16)),
    "uint32": _pointer(types.uint32, ir.IntType(32)),
    "int32": int32s,
    "int64": int64s,
    "float16": shorts,  # their bits, for `half_to_float`
    "float32": floats,
    "float64": doubles,
}


@intrinsic
def half_to_float(typing: Any, bits: Any) -> Any:
    """The float32 equal to the float16 with these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def float_to_half(typing: Any, value: Any) -> Any:
    """The bits of the nearest float16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


@intrinsic
def bits_to_float(typing: Any, bits: Any) -> Any:
    """The float32 with these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def bits_to_double(typing: Any, bits: Any) -> Any:
    """The float64 with these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def float_to_bits(typing: Any, value: Any) -> Any:
    """The bits of a float32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """a if the condition holds, else b. Both are computed, so that LLVM vectorizes loops of it."""
    if a != b:
        raise TypeError(f"select() of {a} and {b}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return a(types.boolean, a, b), codegen


@intrinsic
def add_in_any_order(typing: Any, a: Any, b: Any) -> Any:
    """a + b in a sum whose terms LLVM may reorder, so that it vectorizes the loop."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], args[1], flags=("reassoc", "contract"))

    return types.float32(types.float32, types.float32), codegen


@intrinsic
def product(typing: Any, a: Any, b: Any) -> Any:
    """a * b, rounded before it is added to anything: peers do so, and thresholds depend on the last bit."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1])

    return types.float32(types.float32, types.float32), codegen


@intrinsic
def call_kernel(typing: Any, kernel: Any, numbers: Any, begin: Any, end: Any) -> Any:
    """Call the kernel at an address by Numba's own calling convention."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i8p, i64 = ir.IntType(8).as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [i8p.as_pointer(), i8p.as_pointer(), i64, i64, i64])
        result, error = (cgutils.alloca_once(builder, i8p) for _ in range(2))  # an alloca in a loop grows the stack
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [result, error, *args[1:]], attrs=NO_UNWIND)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen
