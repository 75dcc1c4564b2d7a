"""Python's operators, as functions on functional tensors."""

from __future__ import annotations

from collections.abc import Callable

from perframe.functional.calls import FUNCTIONS
from perframe.functional.tensor import FunctionalTensor, Given

_BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_UNARY = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}

Operator = Callable[..., FunctionalTensor]


def _binary(name: str) -> Operator:
    def operator(input: FunctionalTensor, other: Given) -> FunctionalTensor:
        return FUNCTIONS[name](input, other)  # type: ignore[no-any-return]

    return operator


def _reflected(name: str) -> Operator:
    def operator(input: FunctionalTensor, other: Given) -> FunctionalTensor:
        return FUNCTIONS[name](other, input)  # type: ignore[no-any-return]

    return operator


def _unary(name: str) -> Operator:
    def operator(input: FunctionalTensor) -> FunctionalTensor:
        return FUNCTIONS[name](input)  # type: ignore[no-any-return]

    return operator


OPERATORS: dict[str, Operator] = {
    **{f"__{key}__": _binary(name) for key, name in _BINARY.items()},
    **{f"__r{key}__": _reflected(name) for key, name in _BINARY.items()},
    **{f"__{key}__": _binary(key) for key in _COMPARISONS},
    **{f"__{key}__": _unary(name) for key, name in _UNARY.items()},
}
