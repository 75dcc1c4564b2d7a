"""Atomic words, which threads share without locks, the core's clock, and calls of the system's functions by their
addresses.

Words are 64 bits at an address. Memory orders are those of C++: a thread that acquires a word sees all that another
thread wrote before it released the word.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.memory import NO_UNWIND
from perframe.backends.cpu.kernels.sizes import architecture

_WORD = ir.IntType(64)
_X86: tuple[str, list[Any]] = ("llvm.x86.sse2.pause", [])
_ARM: tuple[str, list[Any]] = ("llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)])
_PAUSES = {"x86_64": _X86, "aarch64": _ARM}


@intrinsic
def load_acquire(typing: Any, address: Any) -> Any:
    """Read the word at an address, and acquire it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def store_release(typing: Any, address: Any, value: Any) -> Any:
    """Write the word at an address, and release it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], builder.inttoptr(args[0], _WORD.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def _read_modify_write(operation: str, order: str) -> Any:
    @intrinsic
    def change(typing: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], _WORD.as_pointer())
            return builder.atomic_rmw(operation, pointer, args[1], order)

        return types.int64(types.int64, types.int64), codegen

    return change


# These functions return the old word. All threads see the calls of `exchange` and `add_in_order` in one order.
add = _read_modify_write("add", "acq_rel")
add_in_order = _read_modify_write("add", "seq_cst")
exchange = _read_modify_write("xchg", "seq_cst")


@intrinsic
def pause(typing: Any) -> Any:
    """Tell the core that this thread is spinning."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name, hints = _PAUSES.get(architecture(), ("", []))
        if name:
            kind = ir.FunctionType(ir.VoidType(), [hint.type for hint in hints])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), hints)
        return context.get_dummy_value()

    return types.void(), codegen


_COUNTERS = {
    "x86_64": "llvm.readcyclecounter",
    "aarch64": "llvm.readsteadycounter",  # the counter of cycles is the system's alone there
}


@intrinsic
def read_ticks(typing: Any) -> Any:
    """Read a counter of the core that runs at a constant rate. It stays 0 where the machine has none."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name = _COUNTERS.get(architecture())
        if name is None:
            return _WORD(0)
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(_WORD, []), name), [])

    return types.int64(), codegen


@intrinsic
def call_system(typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    """Call the C function at an address with five words. A function ignores surplus words.

    `syscall` is variadic: Linux passes its arguments as those of any other function. Apple's systems would not.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD] * 5)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:], attrs=NO_UNWIND)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), codegen
