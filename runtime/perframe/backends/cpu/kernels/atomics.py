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

from perframe.backends.cpu.kernels.inlining import emitted
from perframe.backends.cpu.kernels.memory import NO_UNWIND
from perframe.backends.cpu.processor import architecture

_WORD = ir.IntType(64)
_X86: tuple[str, list[Any]] = ("llvm.x86.sse2.pause", [])
_ARM: tuple[str, list[Any]] = ("llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)])
_PAUSES = {"x86_64": _X86, "aarch64": _ARM}


@emitted(types.int64, types.int64)
def load_acquire(builder: Any, address: Any) -> Any:
    """Read the word at an address, and acquire it."""
    return builder.load_atomic(builder.inttoptr(address, _WORD.as_pointer()), "acquire", 8)


@emitted(types.void, types.int64, types.int64)
def store_release(builder: Any, address: Any, value: Any) -> None:
    """Write the word at an address, and release it."""
    builder.store_atomic(value, builder.inttoptr(address, _WORD.as_pointer()), "release", 8)


def _read_modify_write(operation: str, order: str) -> Any:
    @emitted(types.int64, types.int64, types.int64)
    def change(builder: Any, address: Any, value: Any) -> Any:
        pointer = builder.inttoptr(address, _WORD.as_pointer())
        return builder.atomic_rmw(operation, pointer, value, order)

    return change


# These functions return the old word. All threads see the calls of `exchange` and `add_in_order` in one order.
add = _read_modify_write("add", "acq_rel")
add_in_order = _read_modify_write("add", "seq_cst")
exchange = _read_modify_write("xchg", "seq_cst")


@emitted(types.void)
def pause(builder: Any) -> None:
    """Tell the core that this thread is spinning."""
    name, hints = _PAUSES.get(architecture(), ("", []))
    if name:
        kind = ir.FunctionType(ir.VoidType(), [hint.type for hint in hints])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), hints)


_COUNTERS = {
    "x86_64": "llvm.readcyclecounter",
    "aarch64": "llvm.readsteadycounter",  # the counter of cycles is the system's alone there
}


@emitted(types.int64)
def read_ticks(builder: Any) -> Any:
    """Read a counter of the core that runs at a constant rate. It stays 0 where the machine has none."""
    name = _COUNTERS.get(architecture())
    if name is None:
        return _WORD(0)
    return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(_WORD, []), name), [])


@emitted(types.void, *[types.int64] * 6)
def call_system(builder: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Call the C function at an address with five words. A function ignores surplus words.

    `syscall` is variadic: Linux passes its arguments as those of any other function. Apple's systems would not.
    """
    kind = ir.FunctionType(_WORD, [_WORD] * 5)
    builder.call(builder.inttoptr(function, kind.as_pointer()), [a, b, c, d, e], attrs=NO_UNWIND)
