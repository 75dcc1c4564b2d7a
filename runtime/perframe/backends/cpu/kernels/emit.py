"""Functions that kernels spell out as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import unpack_tuple

from perframe.backends.cpu.kernels.vector import F32, I64

POINTER = F32.as_pointer()


def number(value: int) -> Any:
    """A constant of 64 bits."""
    return ir.Constant(I64, value)


class Emitter:
    """Writes the body of a function."""

    builder: Any

    def at(self, base: Any, offset: Any) -> Any:
        """The pointer to an element."""
        return self.builder.gep(base, [offset])


def loop(
    builder: Any,
    name: str,
    limit: Any,
    starts: Sequence[Any],
    emit: Callable[[list[Any]], Sequence[Any]],
    runs_once: bool = False,
) -> list[Any]:
    """Emit a loop over values, and return the last ones. `emit` gives the values of the next round.

    The first value counts up to `limit`. With `runs_once` there is at least one round.
    """
    before, body = builder.block, builder.append_basic_block(name)
    after = builder.append_basic_block(f"{name}_done")
    if runs_once:
        builder.branch(body)
    else:
        builder.cbranch(builder.icmp_signed("<", starts[0], limit), body, after)
    builder.position_at_end(body)
    phis = [builder.phi(start.type) for start in starts]
    made = emit(list(phis))
    end = builder.block
    builder.cbranch(builder.icmp_signed("<", made[0], limit), body, after)
    builder.position_at_end(after)
    results = [value if runs_once else builder.phi(value.type) for value in made]
    for phi, result, start, value in zip(phis, results, starts, made, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, end)
        if not runs_once:
            result.add_incoming(start, before)
            result.add_incoming(value, end)
    return results


def function_of(module: Any, name: str, arguments: Sequence[Any], emit: Callable[[Any, Sequence[Any]], None]) -> Any:
    """The function `name` of a module. On first use, `emit(builder, arguments)` writes its body.

    LLVM does not inline the function, so that nothing else takes its registers.
    """
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emit(builder, function.args)
    if not builder.block.is_terminated:
        builder.ret_void()
    return function


def numba_kinds(arguments: Sequence[Any]) -> list[Any]:
    """Numba's types for the arguments of a function: pointers are addresses."""
    return [types.float32 if kind is F32 else types.int64 for kind in arguments]


def as_arguments(builder: Any, values: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """Numba's values as arguments of a function: addresses become pointers."""
    pairs = zip(values, arguments, strict=True)
    return [builder.inttoptr(value, kind) if kind is POINTER else value for value, kind in pairs]


def records_as_arguments(
    context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any], arguments: Sequence[Sequence[Any]]
) -> list[Any]:
    """The fields of Numba's tuples as arguments of a function: `kinds` are their types, `arguments` the wanted ones."""
    made = []
    for kind, value, wanted in zip(kinds, values, arguments, strict=True):
        fields = zip(unpack_tuple(builder, value), kind, numba_kinds(wanted), strict=True)
        made += as_arguments(builder, [context.cast(builder, field, given, to) for field, given, to in fields], wanted)
    return made
