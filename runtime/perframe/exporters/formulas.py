"""Elementwise layers that ONNX lacks, written in ONNX's operators.

A formula is called with values that record the operators applied to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from perframe.errors import ModelError
from perframe.ir import Layer, Value
from perframe.ir.broadcasting import operand_kinds
from perframe.ir.formula import keywords
from perframe.tensor import DataType

# words of ir/vocabulary.py that are operators of ONNX for floats
_OPERATORS = {
    **{"abs": "Abs", "floor": "Floor", "ceil": "Ceil", "round_even": "Round", "sign": "Sign", "power": "Pow"},
    **{"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "erf": "Erf", "minimum": "Min", "maximum": "Max"},
    **{"sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh"},
    **{"cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh"},
    **{"is_nan": "IsNaN", "is_inf": "IsInf"},
}
_WITHOUT = ("log1p", "trunc_div", "floor_mod", "trunc_mod")  # rounding or signs differ, or ONNX has no operator
_BOOLEAN = {"IsNaN", "IsInf", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "And", "Or", "Xor", "Not"}


def of_formula(layer: Layer) -> list[Layer]:
    """Return ONNX layers that compute a layer's formula. Raises ModelError with the reason if there are none."""
    entry, inputs = layer.declaration, layer.inputs
    dtypes = {value.spec.dtype for value in layer.operands}
    if entry.channelwise or not all(dtype.is_float for dtype in dtypes) or len(dtypes) != 1:
        raise ModelError("ONNX has no such operator, and only formulas of floats of one dtype are written in others")
    attributes = entry.with_defaults(layer.attributes)
    kinds = operand_kinds([value.spec.dtype for value in layer.operands])
    chosen = entry.choose(attributes, tuple(x is not None for x in inputs), kinds[-1]) if entry.choose else None
    recorder = _Recorder(layer, dtypes.pop())
    given = [None if value is None else _Symbol(value, recorder) for value in inputs]
    made = recorder.run(chosen or entry.formula, *given, **attributes)
    return recorder.layers(recorder.cast(made, layer.output.spec.dtype))


@dataclass(eq=False)
class _Symbol:
    """A value of the file to be written, in a formula."""

    value: Value
    recorder: _Recorder
    is_bool: bool = False

    def __neg__(self) -> _Symbol:
        return self.recorder.add("Neg", self)

    def __invert__(self) -> _Symbol:
        return self.recorder.add("Not", self)

    def __ne__(self, other: Any) -> Any:
        return ~self.recorder.add("Equal", self, other)


def _method(op: str, is_reflected: bool = False) -> Callable[[_Symbol, Any], _Symbol]:
    def method(self: _Symbol, other: Any) -> _Symbol:
        return self.recorder.add(op, *((other, self) if is_reflected else (self, other)))

    return method


_ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "and": "And", "or": "Or", "xor": "Xor"}
for _name, _op in _ARITHMETIC.items():
    setattr(_Symbol, f"__{_name}__", _method(_op))
    setattr(_Symbol, f"__r{_name}__", _method(_op, is_reflected=True))
for _name, _op in {"lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal"}.items():
    setattr(_Symbol, f"__{_name}__", _method(_op))


class _Recorder:
    """The operators that a formula applies. Numbers become constants of `dtype`."""

    def __init__(self, layer: Layer, dtype: DataType) -> None:
        self._layer, self._dtype = layer, dtype
        self._steps: list[tuple[str, list[Value], Value, dict[str, Any]]] = []

    def run(self, formula: Any, *given: _Symbol | None, **attributes: Any) -> Any:
        """Call a formula with recording words. Formulas that it calls are recorded too."""
        words: dict[str, Any] = {name: partial(self.add, op) for name, op in _OPERATORS.items()}
        words |= {name: partial(_refuse, name) for name in _WITHOUT}
        words["clamp"] = lambda x, low, high: self.add("Min", self.add("Max", x, low), high)
        words |= {"where": partial(self.add, "Where"), "to_float": lambda x: x}
        scope = dict(formula.__globals__)
        for name in formula.__code__.co_names:
            inner = getattr(scope.get(name), "formula", None)
            if name in words:
                scope[name] = words[name]
            elif inner is not None:
                scope[name] = lambda *values, _inner=inner: self.run(_inner, *values)
        called = FunctionType(formula.__code__, scope, formula.__name__, formula.__defaults__, formula.__closure__)
        called.__kwdefaults__ = formula.__kwdefaults__
        return called(*given, **{name: attributes[name] for name in keywords(formula) if name in attributes})

    def add(self, op: str, *given: Any, **attributes: Any) -> _Symbol:
        """Record an operator."""
        made = Value(self._layer.output.name)
        self._steps.append((op, [self._symbol(one).value for one in given], made, attributes))
        is_bool = op in _BOOLEAN or (op == "Where" and self._symbol(given[1]).is_bool)
        return _Symbol(made, self, is_bool)

    def cast(self, made: Any, dtype: DataType) -> _Symbol:
        """Return the result in a dtype. It is always the result of an operator."""
        symbol = self._symbol(made)
        if symbol.is_bool is not (dtype is DataType.BOOL) or (dtype is not self._dtype and not symbol.is_bool):
            return self.add("Cast", symbol, to=dtype)
        is_made = any(symbol.value is value for _, _, value, _ in self._steps)
        return symbol if is_made else self.add("Identity", symbol)

    def layers(self, result: _Symbol) -> list[Layer]:
        """Return the recorded layers. The layer's own output is the result."""
        found = []
        for op, inputs, value, attributes in self._steps:
            made = self._layer.output if value is result.value else value
            read = [self._layer.output if one is result.value else one for one in inputs]
            found.append(Layer(op, f"{self._layer.name}/{op}", read, [made], attributes))
        return found

    def _symbol(self, one: Any) -> _Symbol:
        if isinstance(one, _Symbol):
            return one
        return _Symbol(Value(self._layer.output.name, constant=np.array(one, self._dtype.numpy)), self)


def _refuse(name: str, *_given: Any) -> _Symbol:
    raise ModelError(f"ONNX has no such operator, and none for {name}() of its formula")
