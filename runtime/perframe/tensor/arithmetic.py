"""The operators that a tensor refuses, with an error that names what to call."""

from __future__ import annotations

from typing import Any, NoReturn

from perframe.errors import InputError


class NoArithmetic:
    """Python's operators for a class without arithmetic. A FunctionalTensor on the other side takes over."""


def _refusing(name: str) -> Any:
    def operator(self: Any, *others: Any) -> Any:
        if others and getattr(type(others[0]), "__array_ufunc__", 0) is None:
            return NotImplemented
        _refuse(self, name)

    operator.__name__ = name
    return operator


def _refuse(tensor: Any, name: str) -> NoReturn:
    raise InputError(
        f"{tensor!r} has no operator {name}: compute on the host with tensor.numpy(), or make it part of a model: "
        "pf.functional has all operators"
    )


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"):
    for _prefix in ("", "r", "i"):
        setattr(NoArithmetic, f"__{_prefix}{_name}__", _refusing(f"__{_prefix}{_name}__"))
for _name in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge"):
    setattr(NoArithmetic, f"__{_name}__", _refusing(f"__{_name}__"))
