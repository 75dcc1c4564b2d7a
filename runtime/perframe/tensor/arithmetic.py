"""What a tensor refuses to be, an array, with errors that name what to call; and a number, if it has one value."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
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

    if TYPE_CHECKING:

        def __bool__(self) -> bool: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __complex__(self) -> complex: ...

    else:  # checkers refuse unknown names by themselves

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


def _converting(convert: Callable[..., Any]) -> Any:
    def operator(self: Any, *digits: Any) -> Any:
        """Convert the only value. Blocks until it exists. Raises InputError for several values, or on a GPU."""
        name = convert.__name__
        self._require_host(f"{name}()", "call numpy() to wait, or compare with None")
        if (count := prod(self.shape)) != 1:
            raise InputError(f"{name}({self!r}) is for one value, not {count}: see tensor.numpy()")
        return convert(self.download_to_array().item(), *digits)

    operator.__name__ = f"__{convert.__name__}__"
    return operator


def _refuse(tensor: Any, sign: str) -> NoReturn:
    raise InputError(
        f"{tensor!r} has no operator {sign}: compute on the host with tensor.numpy(), or make it part of a model: "
        "pf.functional has all operators"
    )


for _name, _sign in _BINARY.items():
    for _prefix, _end in (("", ""), ("r", ""), ("i", "=")):
        setattr(NoArithmetic, f"__{_prefix}{_name}__", _refusing(f"__{_prefix}{_name}__", _sign + _end))
for _convert in (bool, float, int, complex, round):
    setattr(NoArithmetic, f"__{_convert.__name__}__", _converting(_convert))
for _name, _sign in _OTHERS.items():
    setattr(NoArithmetic, f"__{_name}__", _refusing(f"__{_name}__", _sign))
