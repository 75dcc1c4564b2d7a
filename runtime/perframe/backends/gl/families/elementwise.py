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


def _how(strides: Sequence[int], shape: Sequence[int]) -> int:
    """The way to read an operand: 1 in the output's order, 2 as one number, 0 by strides."""
    if not any(strides):
        return 2
    return 1 if tuple(strides) == row_major(shape) else 0


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
    ways = [_how(strides, form.shape) for strides in form.strides]
    if len(operands) > 1 or 0 in ways:  # a single operand lies as its output does, whatever the shape
        defines["STRIDED"] = "1"
    params: dict[str, Any] = {
        "strides": [number for strides in form.strides for number in ints(strides)],
        "flat_": ways,
        "rank": len(form.shape),
    }
    given = {f"X{k}": value for k, value in enumerate(operands)}
    return [call.bind("elementwise", given, call.y, params, defines, functions)]
