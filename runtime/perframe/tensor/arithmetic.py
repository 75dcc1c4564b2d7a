"""What a tensor refuses to be, an array or a number, with errors that name what to call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from perframe.errors import InputError

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_OTHERS = {"neg": "-", "pos": "+", "abs": "abs()", "invert": "~", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class NoArithmetic:
    """Python's operators for a class without arithmetic. A FunctionalTensor on the other side takes over."""

    if not TYPE_CHECKING:  # checkers refuse unknown names by themselves

        def __getattr__(self, name: str) -> NoReturn:
            known = not name.startswith("_") and hasattr(np.ndarray, name)
            hint = f": compute on the host with .numpy().{name}, or in the model with pf.functional" if known else ""
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}{hint}", name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same object. Raises InputError for numbers and arrays, whose values would count."""
        if isinstance(other, (int, float, complex, list, tuple, np.generic, np.ndarray)):
            _refuse(self, "==")
        return True if self is other else NotImplemented

    __hash__ = object.__hash__


def _refusing(name: str, sign: str) -> Any:
    def operator(self: Any, *others: Any) -> Any:
        if others and getattr(type(others[0]), "__array_ufunc__", 0) is None:
            return NotImplemented
        _refuse(self, sign)

    operator.__name__ = name
    return operator


def _no_number(name: str) -> Any:
    def operator(self: Any, *_digits: Any) -> NoReturn:
        raise InputError(
            f"{name}({self!r}) needs values, which may still be pending: {name}(tensor.numpy().item()) waits for them"
        )

    operator.__name__ = f"__{name}__"
    return operator


def _refuse(tensor: Any, sign: str) -> NoReturn:
    raise InputError(
        f"{tensor!r} has no operator {sign}: compute on the host with tensor.numpy(), or make it part of a model: "
        "pf.functional has all operators"
    )


for _name, _sign in _BINARY.items():
    for _prefix, _end in (("", ""), ("r", ""), ("i", "=")):
        setattr(NoArithmetic, f"__{_prefix}{_name}__", _refusing(f"__{_prefix}{_name}__", _sign + _end))
for _name in ("float", "int", "complex", "round"):
    setattr(NoArithmetic, f"__{_name}__", _no_number(_name))
for _name, _sign in _OTHERS.items():
    setattr(NoArithmetic, f"__{_name}__", _refusing(f"__{_name}__", _sign))
