"""Epilogues: formulas that a layer applies to each element before it writes the element.

An epilogue is a fused chain of elementwise layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perframe.ir.declaration import declaration
from perframe.ir.formula import keywords, name_in_text, translate
from perframe.safety.records import dataclass

FAMILIES = (
    "conv",
    "block_conv",
    "conv_transpose",
    "matmul",
    "elementwise",
    "quantized",
    "packed",
)  # their kernels apply an epilogue


@dataclass(frozen=True)
class Stage:
    """One formula of an epilogue.

    `operands` holds its inputs: None stands for the running value, a number for a constant scalar, and a tuple of
    stages for the result of these stages on the running value.
    """

    op: str
    attributes: tuple[tuple[str, Any], ...]
    operands: tuple[float | tuple[Stage, ...] | None, ...]

    @property
    def formula(self) -> Any:
        """The formula that these attributes and operands choose."""
        entry = declaration(self.op)
        present = (True,) * len(self.operands)
        chosen = entry.choose(entry.with_defaults(dict(self.attributes)), present, "float") if entry.choose else None
        return chosen or entry.formula

    @property
    def names(self) -> list[str]:
        """The attributes that the formula takes, in its order."""
        return [name for name in keywords(self.formula) if name in declaration(self.op).attributes]

    @property
    def parameters(self) -> tuple[float, ...]:
        """The numbers that kernels get as data: constant operands, then attributes."""
        bound = declaration(self.op).with_defaults(dict(self.attributes))
        constants: list[float] = []
        for value in self.operands:
            constants += parameters(value) if isinstance(value, tuple) else () if value is None else (value,)
        return (*constants, *(float(bound[name]) for name in self.names))

    @property
    def limits(self) -> tuple[float, float] | None:
        """(low, high) if the stage only clips the running value to these limits, else None."""
        limits = declaration(self.op).limits
        value, *others = self.operands
        plain = value is None and all(isinstance(other, float | int) for other in others)
        return limits(*self.parameters) if limits is not None and plain else None


def parameters(stages: Sequence[Stage]) -> tuple[float, ...]:
    """The numbers of all stages, in the order in which `compose` counts them."""
    return tuple(number for stage in stages for number in stage.parameters)


def compose(stages: Sequence[Stage], language: str) -> tuple[str, str]:
    """Return the text of the functions that the stages need, and an expression over `x` and `parameter(index)`."""
    functions: dict[str, None] = {}
    expression, _ = _expression(stages, language, "x", 0, functions)
    return "\n".join(functions), expression


def _expression(
    stages: Sequence[Stage], language: str, expression: str, index: int, functions: dict[str, None]
) -> tuple[str, int]:
    """Return the stages applied to an expression, with parameters from `index` on, and the index after the last one."""
    for stage in stages:
        text, _ = translate(stage.formula, ["float"] * len(stage.operands), language)
        functions[text] = None
        arguments = []
        for operand in stage.operands:
            if operand is None:
                arguments.append(expression)
            elif isinstance(operand, tuple):
                inner, index = _expression(operand, language, expression, index, functions)
                arguments.append(inner)
            else:
                arguments.append(f"parameter({index})")
                index += 1
        arguments += [f"parameter({index + offset})" for offset in range(len(stage.names))]
        index += len(stage.names)
        expression = f"{name_in_text(stage.formula)}({', '.join(arguments)})"
    return expression, index


def apply(stages: Sequence[Stage], x: Any) -> Any:
    """Apply the stages to an array with NumPy."""
    for stage in stages:
        bound = declaration(stage.op).with_defaults(dict(stage.attributes))
        arguments = [_operand(operand, x) for operand in stage.operands]
        x = stage.formula(*arguments, **{name: bound[name] for name in stage.names}).astype(x.dtype)
    return x


def _operand(operand: float | tuple[Stage, ...] | None, x: Any) -> Any:
    if operand is None:
        return x
    return apply(operand, x) if isinstance(operand, tuple) else x.dtype.type(operand)
