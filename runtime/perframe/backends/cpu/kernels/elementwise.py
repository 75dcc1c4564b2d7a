"""Elementwise: a formula over broadcast operands. One kernel text for each number of operands and their dtypes."""

from __future__ import annotations

import itertools
from typing import Any

from numba import types, uint8

from perframe.backends.cpu.kernels import fields
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.memory import POINTERS, float_to_half, half_to_float
from perframe.backends.cpu.kernels.vector import stack_numbers

_TEMPLATE = """
def kernel(numbers, begin, end):
    n = int64s(numbers)
{pointers}
    out, p = {result}s(n[field.out]), float32s(n[field.parameters])
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


def _read(operand: str, at: str) -> str:
    """Text that reads an element. `operand` is "dtype kind"; the kind "float" converts integers to float32."""
    dtype, kind = operand.split()
    if dtype == "bool":
        return f"({at} != 0)"
    if dtype == "float16":
        return f"half_to_float({at})"
    return f"float32({at})" if kind == "float" and not dtype.startswith("float") else at


def _loop(strides: tuple[str, ...], operands: list[str], result: str, condition: str, keyword: str) -> str:
    reads = ", ".join(_read(operand, f"x{k}[b{k} + {strides[k]}]") for k, operand in enumerate(operands))
    begins = "; ".join(f"b{k} = a{k} + r * d{k}" for k in range(len(operands)))
    value = f"formula({reads}, p)"
    if result == "float32":
        value = f"epilogue(float32({value}), p)"
    elif result == "float16":
        value = f"float_to_half(float32({value}))"
    else:
        value = f"{'truth' if result == 'bool' else result}({value})"
    return f"""\
        {keyword}{condition}:
            for r in range(rows):
                {begins}; c = o + r * pitch
                for i in range(start, stop):
                    out[c + i] = {value}"""


@inline
def _truth(value):
    return uint8(1 if value != 0 else 0)


_STEPS = """\
    t{k} = shape + rank * {after}
    s{k} = n[t{k} + rank - 1]
    d{k} = n[t{k} + rank - 2] if rank > 1 else 0"""
_USUAL = {3: [(1, 1, 1), (1, 1, 0), (1, 0, 1), (1, 0, 0)]}  # a scale and a shift may be single numbers


def _text(operands: list[str], result: str) -> str:
    """The kernel's text. Inner loops for the common strides 1 and 0 vectorize; one more loop serves other strides."""
    count = len(operands)
    each = range(count)
    few = count <= 2 or (count == 3 and operands[0] == "bool bool")  # any operand of a choice may be a single number
    usual = itertools.product((1, 0), repeat=count) if few else _USUAL.get(count, [(1,) * count])
    loops, keyword = [], "if "
    for strides in usual:
        if any(strides):
            condition = " and ".join(f"s{k} == {stride}" for k, stride in enumerate(strides))
            loops.append(_loop(tuple("i" if s else "0" for s in strides), operands, result, condition, keyword))
            keyword = "elif "
    loops.append(_loop(tuple(f"i * s{k}" for k in each), operands, result, "", "else"))
    dtypes = [*(operand.split()[0] for operand in operands), result]
    return _TEMPLATE.format(
        result=result,
        pointers="\n".join(f"    x{k} = {dtypes[k]}s(n[field.x{k}])" for k in each),
        steps="\n".join(_STEPS.format(k=k, after=k + 1) for k in each),
        zeros="\n".join(f"    a{k} = 0" for k in each),
        advances="\n".join(f"                a{k} += by * n[t{k} + axis]" for k in each),
        returns="\n".join(f"                a{k} -= n[shape + axis] * n[t{k} + axis]" for k in each),
        resets="\n".join(f"            a{k} = 0" for k in each),
        offsets="\n".join(f"                a{k} += c * n[t{k} + axis]" for k in each),
        loops="\n".join(loops),
    )


def build(formula: Any, epilogue: Any, operands: list[str], result: str) -> Any:
    """Each of `operands` is "dtype kind"; `result` is a dtype."""
    namespace: dict[str, Any] = {"stack_numbers": stack_numbers, "range": range, "min": min}
    namespace |= {f"{dtype}s": pointer for dtype, pointer in POINTERS.items()}
    namespace |= {dtype: getattr(types, dtype) for dtype in POINTERS if dtype != "bool"}
    words = fields.elementwise(len(operands))
    namespace |= {"field": words.at, "shape": words.rest}
    namespace |= {"half_to_float": half_to_float, "float_to_half": float_to_half}
    namespace |= {"formula": formula, "epilogue": epilogue, "truth": _truth}
    exec(compile(_text(operands, result), "<elementwise>", "exec"), namespace)
    return namespace["kernel"]
