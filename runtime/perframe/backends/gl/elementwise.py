"""Elementwise layers on GL: one kernel text, a variant for each formula, number of operands and their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.backends.base import LayerLike, Operand
from perframe.backends.gl.steps import SMALL_DTYPES, Binding, Tools, epilogue_functions, ints, kind_of, parameter_name
from perframe.layers.broadcasting import Elementwise
from perframe.layers.epilogue import parameters
from perframe.layers.formula import translate
from perframe.layers.geometry import row_major
from perframe.tensor import DataType

# how a formula of one kind sees an element that is stored as another
_READ = {
    ("float", "float"): "",
    ("int", "int"): "",
    ("int", "float"): "float",
    ("float", "int"): "int",
    ("int", "bool"): "bool",
    ("float", "bool"): "bool",
}


def _how(strides: Sequence[int], shape: Sequence[int]) -> int:
    """1: in the output's order; 2: one number; 0: by strides."""
    if not any(strides):
        return 2
    return 1 if tuple(strides) == row_major(shape) else 0


def _result(kind: str, dtype: DataType) -> str:
    """The macro that stores what a formula returned."""
    if dtype is DataType.BOOL and kind != "bool":
        return f"int((x) != {kind}(0))"
    if dtype in SMALL_DTYPES:  # what does not fit wraps around
        bits = int(dtype.value.removeprefix("u").removeprefix("int"))
        return f"(int(x) & {2**bits - 1})" if dtype.value[0] == "u" else f"(int(x) << {32 - bits} >> {32 - bits})"
    return f"{kind_of(dtype)}(x)" if kind != kind_of(dtype) else "x"


def small_dtypes(layer: LayerLike) -> Sequence[DataType]:
    """All of them, where a formula leaves its operand as it is."""
    return SMALL_DTYPES if len(layer.declaration.inputs) == 1 and "to" in layer.declaration.attributes else ()


def lower(
    layer: LayerLike,
    form: Elementwise,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    tools: Tools,
) -> list[Binding]:
    """One kernel."""
    operands = [value for index, value in enumerate(inputs) if index in form.operands and value is not None]
    text, kind = translate(form.formula, list(form.kinds), "glsl")
    names = [f"x{k}" for k in range(len(operands))]
    arguments = ", ".join([*names, *(parameter_name(k) for k in range(len(form.parameters)))])
    signature = ", ".join(f"{k} {name}" for k, name in zip(form.kinds, names, strict=True))
    call = f"{form.formula.__name__}({arguments})"
    functions = text
    if layer.epilogue:
        functions += "\n" + epilogue_functions(layer.epilogue, len(form.parameters))
        call = f"epilogue({call})"
    functions += f"\n{kind} formula({signature}) {{ return {call}; }}"
    defines = {"OPERANDS": str(len(operands)), "RESULT(x)": _result(kind, outputs[0].dtype)}
    for k, (value, wanted) in enumerate(zip(operands, form.kinds, strict=True)):
        defines[f"GET{k}(x)"] = f"{_READ[kind_of(value.dtype), wanted]}(x)"
    params: dict[str, Any] = {
        "shape": ints(form.shape),
        "strides": [number for strides in form.strides for number in ints(strides)],
        "flat_": ints([_how(strides, form.shape) for strides in form.strides]),
        "rank": len(form.shape),
        "p": [*form.parameters, *parameters(layer.epilogue)],
    }
    given = {f"X{k}": value for k, value in enumerate(operands)}
    return [Binding(layer.name, "elementwise", given, outputs[0], params, defines, functions)]
