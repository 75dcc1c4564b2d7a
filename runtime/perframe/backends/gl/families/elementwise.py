"""Elementwise layers on GL: one kernel text, with a variant for each formula, number of operands and their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.gl.lowering.steps import (
    ALL_DTYPES,
    SMALL_DTYPES,
    Binding,
    Call,
    Functions,
    Tools,
    formula_number,
    function_of,
    ints,
    kind_of,
    wrapped,
)
from perframe.backends.gl.lowering.whole import has_whole_rows, is_fixed, is_like, is_one, last_dim
from perframe.backends.protocol import LayerLike
from perframe.ir.broadcasting import Elementwise
from perframe.ir.formula import name_in_text, translate
from perframe.ir.geometry import row_major
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # results that do not fit wrap around

# by the kind that is stored and the kind that the formula takes: the conversion
_READ = {
    ("float", "float"): "",
    ("int", "int"): "",
    ("int", "float"): "float",
    ("float", "int"): "int",
    ("int", "bool"): "bool",
    ("float", "bool"): "bool",
}


def _how(strides: Sequence[int], shape: Sequence[int], whole: bool) -> int:
    """The way to read an operand: 1 in the output's order, 2 as one number, else by strides: 0 each element by itself,
    or, if rows are `whole` texels, 3 one number and 4 one texel for four elements.
    """
    if not any(strides):
        return 2
    if tuple(strides) == row_major(shape):
        return 1
    if not whole or shape[-1] % 4 or (strides[-1] and any(stride % 4 for stride in strides[:-1])):
        return 0
    return {0: 3, 1: 4}.get(strides[-1], 0)


def _reading(form: Elementwise, layer: LayerLike) -> tuple[list[int], str]:
    """How to read each operand, and the define of a variant that reads them in all runs."""
    made, fixed = layer.outputs[0], is_fixed(layer)
    read = [value for index, value in enumerate(layer.inputs) if index in form.operands and value is not None]
    like = fixed or all(is_one(value) or is_like(value, made) for value in read)
    rows = [last_dim(value) for value in read if not is_one(value)]
    whole = fixed or (has_whole_rows(made) and set(rows) <= {1, last_dim(made)})
    ways = [_how(strides, form.shape, whole) for strides in form.strides]
    if like and set(ways) <= {1, 2}:
        return ways, ""
    if whole and 0 not in ways:
        return ways, "STRIDED"
    return [0 if way > 2 else way for way in ways], "ELEMENTS"


def _result(kind: str, dtype: DataType) -> str:
    """The macro that converts a formula's result for storing."""
    if dtype is DataType.BOOL and kind != "bool":
        return f"int((x) != {kind}(0))"
    if dtype in SMALL_DTYPES:
        return wrapped("x", dtype)
    return f"{kind_of(dtype)}(x)" if kind != kind_of(dtype) else "x"


def dims(form: Elementwise) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.shape]


def lower(call: Call[Elementwise], tools: Tools) -> list[Binding]:
    """One kernel."""
    form = call.form
    operands = [value for index, value in enumerate(call.inputs) if index in form.operands and value is not None]
    text, kind = translate(form.formula, list(form.kinds), "glsl")
    names = [f"x{k}" for k in range(len(operands))]
    arguments = ", ".join([*names, *(formula_number(k) for k in range(len(form.parameters)))])
    signature = ", ".join(f"{k} {name}" for k, name in zip(form.kinds, names, strict=True))
    applied = f"{name_in_text(form.formula)}({arguments})"
    numbers = form.parameters
    if call.layer.epilogue:
        epilogue = function_of(call.layer.epilogue, first=len(numbers))
        text, numbers = f"{text}\n{epilogue.text}", (*numbers, *epilogue.numbers)
        applied = f"epilogue({applied})"
    functions = Functions(f"{text}\n{kind} formula({signature}) {{ return {applied}; }}", numbers)
    defines = {"OPERANDS": str(len(operands)), "RESULT(x)": _result(kind, call.y.dtype)}
    for k, (value, wanted) in enumerate(zip(operands, form.kinds, strict=True)):
        defines[f"VECTOR{k}"] = "vec4" if kind_of(value.dtype) == "float" else "ivec4"
        defines[f"GET{k}(x)"] = f"{_READ[kind_of(value.dtype), wanted]}(x)"
    ways, define = _reading(form, call.layer)
    if define:
        defines[define] = "1"
    params: dict[str, Any] = {
        "strides": [number for strides in form.strides for number in ints(strides)],
        "flat_": ways,
        "rank": len(form.shape),
    }
    given = {f"X{k}": value for k, value in enumerate(operands)}
    return [call.bind("elementwise", given, call.y, params, defines, functions)]
