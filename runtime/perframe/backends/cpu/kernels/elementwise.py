"""Elementwise: a formula over broadcast operands.

There is one kernel for each number of operands. Formula, dtypes and epilogue are in a function that is linked into it.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from numba import types, uint8

from perframe.backends.cpu.kernels import fields
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.linking import External, Linked
from perframe.backends.cpu.kernels.memory import POINTERS, float_to_half, floats, half_to_float, int64s
from perframe.backends.cpu.kernels.vector import stack_numbers

_TEMPLATE = """
def kernel(numbers, begin, end):
    n = int64s(numbers)
{pointers}
    out, p = n[field.out], floats(n[field.parameters])
    rank, chunks, chunk, pitch = n[field.rank], n[field.chunks], n[field.chunk], n[field.pitch]
    inner = n[shape + rank - 1]
    coordinates = int64s(stack_numbers())
{steps}
{zeros}
    item, rows = begin, 0
    while item < end:
        row, start = item // chunks, item % chunks * chunk
        stop = min(inner, start + chunk)
        if chunks == 1 and rows:
            axis, by = rank - 2, rows
            while axis >= 0:
                coordinates[axis] += by
{advances}
                if coordinates[axis] < n[shape + axis]:
                    break
{returns}
                coordinates[axis] = 0
                axis -= 1
                by = 1
        else:
{resets}
            rest = row
            for axis in range(rank - 2, -1, -1):
                c = rest % n[shape + axis]
                rest //= n[shape + axis]
                coordinates[axis] = c
{offsets}
        o = row * pitch
        rows = min(end - item, n[shape + rank - 2] - coordinates[rank - 2]) if chunks == 1 and rank > 1 else 1
{loops}
        item += rows
"""


def _loop(strides: tuple[str, ...], condition: str, keyword: str) -> str:
    each = range(len(strides))
    begins = "; ".join(f"b{k} = a{k} + r * d{k}" for k in each)
    places = ", ".join(f"x{k}, b{k} + {strides[k]}" for k in each)
    return f"""\
        {keyword}{condition}:
            for r in range(rows):
                {begins}; c = o + r * pitch
                for i in range(start, stop):
                    write({places}, out, c + i, p)"""


_STEPS = """\
    t{k} = shape + rank * {after}
    s{k} = n[t{k} + rank - 1]
    d{k} = n[t{k} + rank - 2] if rank > 1 else 0"""
_USUAL = {3: [(1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)]}  # a scale and a shift may be single numbers


def _text(count: int, is_choice: bool) -> str:
    """The kernel's text. Inner loops for the common strides 1 and 0 vectorize; one more loop serves other strides."""
    each = range(count)
    few = count <= 2 or is_choice  # any operand of a choice may be a single number
    usual = itertools.product((1, 0), repeat=count) if few else _USUAL.get(count, [(1,) * count])
    loops, keyword = [], "if "
    for strides in usual:
        if any(strides):
            condition = " and ".join(f"s{k} == {stride}" for k, stride in enumerate(strides))
            loops.append(_loop(tuple("i" if s else "0" for s in strides), condition, keyword))
            keyword = "elif "
    loops.append(_loop(tuple(f"i * s{k}" for k in each), "", "else"))
    return _TEMPLATE.format(
        pointers="\n".join(f"    x{k} = n[field.x{k}]" for k in each),
        steps="\n".join(_STEPS.format(k=k, after=k + 1) for k in each),
        zeros="\n".join(f"    a{k} = 0" for k in each),
        advances="\n".join(f"                a{k} += by * n[t{k} + axis]" for k in each),
        returns="\n".join(f"                a{k} -= n[shape + axis] * n[t{k} + axis]" for k in each),
        resets="\n".join(f"            a{k} = 0" for k in each),
        offsets="\n".join(f"                a{k} += c * n[t{k} + axis]" for k in each),
        loops="\n".join(loops),
    )


@functools.cache
def _kernel(count: int, is_choice: bool) -> tuple[Any, External]:
    """The kernel of a number of operands, and the function that it calls for each element, with arrays and indices."""
    places = (types.int64, types.int64) * (count + 1)
    external = External("write_element", types.void, (*places, types.CPointer(types.float32)))
    words = fields.elementwise(count)
    namespace: dict[str, Any] = {"stack_numbers": stack_numbers, "range": range, "min": min, "write": external.call}
    namespace |= {"int64s": int64s, "floats": floats, "field": words.at, "shape": words.rest}
    exec(compile(_text(count, is_choice), "<elementwise>", "exec"), namespace)
    return namespace["kernel"], external


def _read(operand: str, k: int) -> str:
    """Text that reads an element of operand k, "dtype kind"; the kind "float" converts integers to float32."""
    dtype, kind = operand.split()
    read = f"{dtype}s(x{k})[i{k}]"
    if dtype == "bool":
        return f"({read} != 0)"
    if dtype == "float16":
        return f"half_to_float({read})"
    return f"float32({read})" if kind == "float" and not dtype.startswith("float") else read


@inline
def _truth(value):
    return uint8(1 if value != 0 else 0)


def build(formula: Any, epilogue: Any, operands: list[str], result: str) -> Any:
    """Each of `operands` is "dtype kind"; `result` is a dtype."""
    reads = ", ".join(_read(operand, k) for k, operand in enumerate(operands))
    value = f"formula({reads}, p)"
    if result == "float32":
        value = f"epilogue(float32({value}), p)"
    elif result == "float16":
        value = f"float_to_half(float32({value}))"
    else:
        value = f"{'truth' if result == 'bool' else result}({value})"
    places = ", ".join(f"x{k}, i{k}" for k in range(len(operands)))
    namespace: dict[str, Any] = {f"{dtype}s": pointer for dtype, pointer in POINTERS.items()}
    namespace |= {dtype: getattr(types, dtype) for dtype in POINTERS if dtype != "bool"}
    namespace |= {"half_to_float": half_to_float, "float_to_half": float_to_half, "truth": _truth}
    namespace |= {"formula": formula, "epilogue": epilogue}
    text = f"def write({places}, out, i, p):\n    {result}s(out)[i] = {value}"
    exec(compile(text, "<elementwise>", "exec"), namespace)
    is_choice = len(operands) == 3 and operands[0] == "bool bool"
    kernel, external = _kernel(len(operands), is_choice)
    return Linked(kernel, ((external, namespace["write"]),))
