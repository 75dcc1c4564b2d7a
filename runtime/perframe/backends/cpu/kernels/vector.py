"""Vectors of float32 as a Numba type, as wide as this CPU's registers: loads, stores and arithmetic for kernels that
use vectors explicitly. Addresses are int64, and offsets count elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import float32, types
from numba.extending import models, register_model

from perframe.backends.cpu.kernels.inlining import emitted, inline
from perframe.backends.cpu.kernels.sizes import BLOCK, LANES, MAX_RANK, multiplies_and_adds

F32, I32, I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(F32, LANES)
MASK = ir.VectorType(ir.IntType(1), LANES)
UNALIGNED = ir.Constant(I32, 4)


class Register(types.Type):  # type: ignore[misc]
    """Numba's type for a vector in a register."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name=name)
        self.held = held  # LLVM's type


@register_model(Register)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.held)


vector = Register("Vector", VECTOR)


def declare(module: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """One of LLVM's functions, declared once in a module."""
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


def splat_of(builder: Any, value: Any) -> Any:
    """A vector whose lanes are all `value`."""
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


def lane_of(builder: Any, value: Any, lane: int) -> Any:
    """A vector whose lanes are all that lane of `value`."""
    return builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(I32, LANES), [lane] * LANES))


def mask_of(builder: Any, count: Any) -> Any:
    """A mask of the first `count` lanes."""
    lanes = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, splat_of(builder, count))


def load_at(builder: Any, pointer: Any, mask: Any = None) -> Any:
    """Load LANES elements from a pointer to float. Lanes outside the mask are zero, and their memory is not read."""
    where = builder.bitcast(pointer, VECTOR.as_pointer())
    if mask is None:
        return builder.load(where, align=4)
    kinds = [VECTOR.as_pointer(), I32, MASK, VECTOR]
    function = declare(builder.module, f"llvm.masked.load.v{LANES}f32.p0", VECTOR, kinds)
    return builder.call(function, [where, UNALIGNED, mask, ir.Constant(VECTOR, [0.0] * LANES)])


def store_at(builder: Any, value: Any, pointer: Any, mask: Any = None) -> None:
    """Write a vector, or its lanes inside the mask."""
    where = builder.bitcast(pointer, VECTOR.as_pointer())
    if mask is None:
        builder.store(value, where, align=4)
        return
    kinds = [VECTOR, VECTOR.as_pointer(), I32, MASK]
    function = declare(builder.module, f"llvm.masked.store.v{LANES}f32.p0", ir.VoidType(), kinds)
    builder.call(function, [value, where, UNALIGNED, mask])


def larger(builder: Any, limit: Any, value: Any) -> Any:
    """The larger of two. NaN in `value` stays, because it compares false."""
    return builder.select(builder.fcmp_ordered(">", limit, value), limit, value)


def smaller(builder: Any, limit: Any, value: Any) -> Any:
    """The smaller of two. NaN in `value` stays."""
    return builder.select(builder.fcmp_ordered("<", limit, value), limit, value)


def multiply_add_of(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once if this CPU has an instruction for that."""
    name = "fma" if multiplies_and_adds() else "fmuladd"
    return builder.call(declare(builder.module, f"llvm.{name}.v{LANES}f32", VECTOR, [VECTOR] * 3), [a, b, c])


def pointer_at(builder: Any, address: Any, index: Any) -> Any:
    """The pointer to an element."""
    return builder.gep(builder.inttoptr(address, F32.as_pointer()), [index])


@emitted(vector, types.int64, types.int64)
def load(builder: Any, address: Any, index: Any) -> Any:
    """LANES elements, from `index` on."""
    return load_at(builder, pointer_at(builder, address, index))


@emitted(vector, types.int64, types.int64)
def load_even(builder: Any, address: Any, index: Any) -> Any:
    """Every second of 2 * LANES elements, from `index` on."""
    kind = ir.VectorType(F32, 2 * LANES)
    pointer = builder.bitcast(pointer_at(builder, address, index), kind.as_pointer())
    even = ir.Constant(ir.VectorType(I32, LANES), list(range(0, 2 * LANES, 2)))
    return builder.shuffle_vector(builder.load(pointer, align=4), ir.Constant(kind, ir.Undefined), even)


@emitted(vector, types.int64, types.int64, types.int64)
def load_first(builder: Any, address: Any, index: Any, count: Any) -> Any:
    """The first `count` of LANES elements, and zeros."""
    return load_at(builder, pointer_at(builder, address, index), mask_of(builder, count))


@emitted(types.void, vector, types.int64, types.int64)
def store(builder: Any, value: Any, address: Any, index: Any) -> None:
    """Write LANES elements."""
    store_at(builder, value, pointer_at(builder, address, index))


@emitted(types.void, vector, types.int64, types.int64, types.int64)
def store_first(builder: Any, value: Any, address: Any, index: Any, count: Any) -> None:
    """Write the first `count` lanes."""
    store_at(builder, value, pointer_at(builder, address, index), mask_of(builder, count))


@emitted(vector, types.float32)
def splat(builder: Any, value: Any) -> Any:
    """One float in every lane."""
    return splat_of(builder, value)


_of_two = emitted(vector, vector, vector)
at_least = _of_two(lambda builder, value, limit: larger(builder, limit, value))
at_most = _of_two(lambda builder, value, limit: smaller(builder, limit, value))
larger_or_nan = _of_two(
    lambda builder, a, b: builder.select(builder.fcmp_unordered("uno", a, a), a, larger(builder, a, b))
)
add = _of_two(lambda builder, a, b: builder.fadd(a, b))
subtract = _of_two(lambda builder, a, b: builder.fsub(a, b))
multiply = _of_two(lambda builder, a, b: builder.fmul(a, b))
divide = _of_two(lambda builder, a, b: builder.fdiv(a, b))


multiply_add = emitted(vector, vector, vector, vector)(multiply_add_of)


@emitted(types.float32, vector)
def sum_of(builder: Any, value: Any) -> Any:
    """The sum of the lanes."""
    name = f"llvm.vector.reduce.fadd.v{LANES}f32"
    function = declare(builder.module, name, F32, [F32, VECTOR])
    return builder.call(function, [ir.Constant(F32, 0.0), value], fastmath=("reassoc",))


@emitted(types.float32, vector)
def largest_of(builder: Any, value: Any) -> Any:
    """The largest of the lanes, without NaN."""
    function = declare(builder.module, f"llvm.vector.reduce.fmax.v{LANES}f32", F32, [VECTOR])
    return builder.call(function, [value])


def _stack(kind: Any, size: int) -> Any:
    @emitted(types.int64)
    def memory(builder: Any) -> Any:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(kind, size))
            memory.align = 64
        return builder.ptrtoint(memory, I64)

    return memory


# addresses of memory on the stack: for copies of data, for coordinates or the numbers of a called kernel, and for a
# square
stack_block, stack_numbers = _stack(F32, BLOCK), _stack(I64, MAX_RANK)
stack_square = _stack(F32, 36 * LANES)


@inline
def begin_of_vector(first, channels):
    """The begin of the vector with channel `first`. The last of many channels overlaps the vector before it."""
    return max(0, min(first, channels - LANES))


@inline
def copy_floats(target, source, count):
    """Copy `count` elements from one address to another."""
    whole = count - count % LANES
    for i in range(0, whole, LANES):
        store(load(source, i), target, i)
    if whole < count:
        store_first(load_first(source, whole, count - whole), target, whole, count - whole)


@inline
def zero_floats(target, count):
    """Write `count` zeros from an address on."""
    zero = splat(float32(0))
    whole = count - count % LANES
    for i in range(0, whole, LANES):
        store(zero, target, i)
    if whole < count:
        store_first(zero, target, whole, count - whole)
