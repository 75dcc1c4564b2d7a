"""What attributes may be. The annotation of the parameter that declares an attribute says it: a new layer has its
attributes checked by declaring them.

`int`, `float`, `str` and `DataType` are what they are, `Sequence[...]` is a tuple or a list of such, `... | None` may
be absent, `Literal[...]` lists the values, and `Annotated[int, Between(...)]` bounds a number. A parameter without an
annotation is of its default's type. Anything else (tables, bodies of loops) is left to the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from perframe.tensor.dtypes import DataType

_INT32 = 2**31 - 1  # kernels on a GPU hold no larger numbers


@dataclass(frozen=True)
class Between:
    """Bounds of a number, which may be either of them."""

    least: float
    most: float = _INT32


Flag = Literal[0, 1]
Natural = Annotated[int, Between(0)]
Positive = Annotated[int, Between(1)]
Index = Annotated[int, Between(-_INT32)]  # counted from either end
Extents = Sequence[Annotated[int, Between(1)]]  # a window's sizes, strides or dilations
Pads = Sequence[Annotated[int, Between(0)]]
AutoPad = Literal["NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"]  # "" counts as NOTSET, as for onnxruntime


@dataclass(frozen=True)
class Kind:
    """What an attribute may be: a test, and words for one and for several such values."""

    accepts: Callable[[Any], bool]
    one: str
    several: str


ANYTHING = Kind(lambda value: True, "anything", "anything")
_KINDS: dict[Any, Kind] = {
    int: Kind(lambda value: isinstance(value, (int, np.integer)), "a whole number", "whole numbers"),
    float: Kind(lambda value: isinstance(value, (int, float, np.number)), "a number", "numbers"),
    str: Kind(lambda value: type(value) is str, "a text", "texts"),
    DataType: Kind(lambda value: isinstance(value, DataType), "a dtype", "dtypes"),
    type(None): Kind(lambda value: value is None, "nothing", "nothing"),
}


def kind_of(annotation: Any) -> Kind:
    """What an annotation says."""
    if annotation in _KINDS:
        return _KINDS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        listed = " or ".join(map(repr, filter(lambda option: option != "", arguments)))
        return Kind(lambda value: _is_plain(value) and value in arguments, listed, listed)
    if origin is Annotated:
        return _bounded(kind_of(arguments[0]), *[rule for rule in arguments[1:] if isinstance(rule, Between)])
    if origin is Sequence:
        items = kind_of(arguments[0])
        listed = f"a list of {items.several}"
        return Kind(lambda value: isinstance(value, (tuple, list)) and all(map(items.accepts, value)), listed, listed)
    if origin in (Union, UnionType):
        options = [kind_of(argument) for argument in arguments]
        if ANYTHING in options:
            return ANYTHING
        said = [option.one for option in options if option is not _KINDS[type(None)]]
        listed = " or ".join(said)
        return Kind(lambda value: any([option.accepts(value) for option in options]), listed, listed)
    return ANYTHING


def _is_plain(value: Any) -> bool:
    """Whether it may be compared with numbers and texts; an array may not."""
    return isinstance(value, (int, float, str, np.generic))


def _bounded(kind: Kind, *bounds: Between) -> Kind:
    for low, high in ((bound.least, bound.most) for bound in bounds):
        words = f"of at least {low:g}" if high >= _INT32 and low > -_INT32 else f"from {low:g} to {high:g}"
        kind = _within(kind, low, high, words)
    return kind


def _within(kind: Kind, low: float, high: float, words: str) -> Kind:
    def accepts(value: Any) -> bool:
        return kind.accepts(value) and bool(low <= value <= high)

    return Kind(accepts, f"{kind.one} {words}", f"{kind.several} {words}")


def kind_by_default(default: Any) -> Kind:
    """What an attribute without an annotation is: of the type of its default."""
    return _KINDS.get(type(default), ANYTHING) if default is not None else ANYTHING
