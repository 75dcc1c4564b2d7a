"""Addresses as typed pointers, bits as floats, and calls through addresses: operations that Numba lacks."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.inlining import emitted

# What is called through an address raises nothing. Without knowing that, LLVM would add tables for unwinding, and on
# Windows these must lie within 4 GiB of all other code and data that the same engine links.
NO_UNWIND = ("nounwind",)


def _pointer(element: Any, llvm: Any) -> Any:
    @emitted(types.CPointer(element), types.int64)
    def cast(builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, llvm.as_pointer())

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


@emitted(types.float32, types.uint16)
def half_to_float(builder: Any, bits: Any) -> Any:
    """The float32 equal to the float16 with these bits."""
    return builder.fpext(builder.bitcast(bits, ir.HalfType()), ir.FloatType())


@emitted(types.uint16, types.float32)
def float_to_half(builder: Any, value: Any) -> Any:
    """The bits of the nearest float16."""
    return builder.bitcast(builder.fptrunc(value, ir.HalfType()), ir.IntType(16))


@emitted(types.float32, types.int32)
def bits_to_float(builder: Any, bits: Any) -> Any:
    """The float32 with these bits."""
    return builder.bitcast(bits, ir.FloatType())


@emitted(types.float64, types.int64)
def bits_to_double(builder: Any, bits: Any) -> Any:
    """The float64 with these bits."""
    return builder.bitcast(bits, ir.DoubleType())


@emitted(types.int32, types.float32)
def float_to_bits(builder: Any, value: Any) -> Any:
    """The bits of a float32."""
    return builder.bitcast(value, ir.IntType(32))


@intrinsic
def select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """a if the condition holds, else b. Both are computed, so that LLVM vectorizes loops of it."""
    if a != b:
        raise TypeError(f"select() of {a} and {b}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return a(types.boolean, a, b), codegen


@emitted(types.float32, types.float32, types.float32)
def add_in_any_order(builder: Any, a: Any, b: Any) -> Any:
    """a + b in a sum whose terms LLVM may reorder, so that it vectorizes the loop."""
    return builder.fadd(a, b, flags=("reassoc", "contract"))


@emitted(types.float32, types.float32, types.float32)
def product(builder: Any, a: Any, b: Any) -> Any:
    """a * b, rounded before it is added to anything: peers do so, and thresholds depend on the last bit."""
    return builder.fmul(a, b)


@emitted(types.void, types.int64, types.int64, types.int64, types.int64)
def call_kernel(builder: Any, kernel: Any, numbers: Any, begin: Any, end: Any) -> None:
    """Call the kernel at an address by Numba's own calling convention."""
    i8p, i64 = ir.IntType(8).as_pointer(), ir.IntType(64)
    kind = ir.FunctionType(ir.IntType(32), [i8p.as_pointer(), i8p.as_pointer(), i64, i64, i64])
    result, error = (cgutils.alloca_once(builder, i8p) for _ in range(2))  # an alloca in a loop grows the stack
    builder.call(builder.inttoptr(kernel, kind.as_pointer()), [result, error, numbers, begin, end], attrs=NO_UNWIND)
