"""Elementwise: a formula over broadcast operands. One kernel text for each number of operands."""

from __future__ import annotations

import itertools
from typing import Any

from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.vector import stack_numbers

_TEMPLATE = """
def kernel(numbers, begin, end):
    n = int64s(numbers)
{pointers}
    out = floats(n[{count}])
    p = floats(n[{count} + 1])
    rank, pieces, piece = n[{count} + 2], n[{count} + 3], n[{count} + 4]
    at = {count} + 5
    inner = n[at + rank - 1]
    coordinates = int64s(stack_numbers())
{steps}
{zeros}
    for item in range(begin, end):
        row, start = item // pieces, item % pieces * piece
        stop = min(inner, start + piece)
        if pieces == 1 and item > begin:
            axis = rank - 2
            while axis >= 0:
                coordinates[axis] += 1
{advances}
                if coordinates[axis] < n[at + axis]:
                    break
{returns}
                coordinates[axis] = 0
                axis -= 1
        else:
{resets}
            rest = row
            for axis in range(rank - 2, -1, -1):
                c = rest % n[at + axis]
                rest //= n[at + axis]
                coordinates[axis] = c
{offsets}
        o = row * inner
{loops}
"""


def _loop(strides: tuple[str, ...], condition: str, keyword: str) -> str:
    reads = ", ".join(f"x{k}[a{k} + {stride}]" for k, stride in enumerate(strides))
    return (
        f"        {keyword}{condition}:\n            for i in range(start, stop):\n"
        f"                out[o + i] = epilogue(formula({reads}, p), p)"
    )


def _text(count: int) -> str:
    """The kernel's text: inner loops for the common strides 1 and 0, which vectorise, and one for all others."""
    each = range(count)
    usual = itertools.product((1, 0), repeat=count) if count <= 2 else [(1,) * count]
    loops, keyword = [], "if "
    for strides in usual:
        if any(strides):
            condition = " and ".join(f"s{k} == {stride}" for k, stride in enumerate(strides))
            loops.append(_loop(tuple("i" if stride else "0" for stride in strides), condition, keyword))
            keyword = "elif "
    loops.append(_loop(tuple(f"i * s{k}" for k in each), "", "else"))
    return _TEMPLATE.format(
        count=count,
        pointers="\n".join(f"    x{k} = floats(n[{k}])" for k in each),
        steps="\n".join(f"    t{k} = at + rank * {k + 1}\n    s{k} = n[t{k} + rank - 1]" for k in each),
        zeros="\n".join(f"    a{k} = 0" for k in each),
        advances="\n".join(f"                a{k} += n[t{k} + axis]" for k in each),
        returns="\n".join(f"                a{k} -= n[at + axis] * n[t{k} + axis]" for k in each),
        resets="\n".join(f"            a{k} = 0" for k in each),
        offsets="\n".join(f"                a{k} += c * n[t{k} + axis]" for k in each),
        loops="\n".join(loops),
    )


def _build(count: int) -> Any:
    def build(formula: Any, epilogue: Any) -> Any:
        names = {"floats": floats, "int64s": int64s, "stack_numbers": stack_numbers, "range": range, "min": min}
        namespace = {**names, "formula": formula, "epilogue": epilogue}
        exec(compile(_text(count), "<elementwise>", "exec"), namespace)
        return namespace["kernel"]

    return build


build1, build2, build3, build4, build5 = (_build(count) for count in range(1, 6))
