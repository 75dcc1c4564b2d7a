"""The values that attributes may have, from the annotations of the parameters that declare the attributes.

The attributes of a new layer are checked without further code. `int`, `float`, `str` and `DataType` stand for
themselves, `Sequence[...]` for a tuple or a list of them, and `... | None` for an attribute that may be absent.
`Literal[...]` lists the values, and `Annotated[int, Between(...)]` bounds a number. A parameter without an annotation
has the type of its default. The layer itself checks anything else (tables, bodies of loops).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from perframe.safety.records import dataclass
from perframe.tensor.dtypes import DataType

_INT32 = 2**31 - 1  # kernels on a GPU hold no larger numbers


@dataclass(frozen=True)
class Between:
    """Bounds of a number; both bounds are allowed."""

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
    """The values that an attribute may have: a test, and words for one and for several such values."""

    accepts: Callable[[Any], bool]
    one: str
    several: str


ANYTHING = Kind(lambda value: True, "anything", "anything")
_KINDS: dict[Any, Kind] = {
    int: Kind(lambda value: isinstance(value, (int, np.integer)), "an integer", "integers"),
    float: Kind(lambda value: isinstance(value, (int, float, np.number)), "a number", "numbers"),
    str: Kind(lambda value: type(value) is str, "a text", "texts"),
    DataType: Kind(lambda value: isinstance(value, DataType), "a dtype", "dtypes"),
    type(None): Kind(lambda value: value is None, "nothing", "nothing"),
}


def kind_of(annotation: Any) -> Kind:
    """Return the values that an annotation allows."""
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
    """Whether `value` can be compared with numbers and texts; an array cannot."""
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
    """Return the kind of an attribute without an annotation: the type of its default."""
    return _KINDS.get(type(default), ANYTHING) if default is not None else ANYTHING
