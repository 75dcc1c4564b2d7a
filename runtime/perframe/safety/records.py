"""Dataclasses that cost little to import.

The standard decorator compiles up to seven methods of a class, which takes longer than the rest of a small module. Here
the methods are closures, and `__init__` is compiled when it is first called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(made=None, /, *, init=True, repr=True, eq=True, frozen=False, kw_only=False):
        """Make a class a dataclass, with the standard decorator's parameters, fields and functions."""

        def declare(made):
            dataclasses.dataclass(made, init=False, repr=False, eq=False, kw_only=kw_only)
            methods = {"__init__": _first_init(made, frozen)} if init else {}
            if repr:
                methods["__repr__"] = _repr(made)
            if eq:
                values = _values([field.name for field in dataclasses.fields(made) if field.compare])
                methods["__eq__"] = _eq(values)
                methods["__hash__"] = (lambda self: hash(values(self))) if frozen else None
            if frozen:
                methods |= _guards(made)
            for name, method in methods.items():
                if vars(made).get(name) is None:  # a class that defines __eq__ has None for __hash__
                    setattr(made, name, method)
            return made

        return declare if made is None else declare(made)


def _first_init(made: type[Any], frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        made.__init__ = _compiled_init(made, frozen)
        made.__init__(self, *values, **named)

    return __init__


def _compiled_init(made: type[Any], frozen: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_absent": object()}
    positional, named, body = ["self"], ["*"], []
    for field in dataclasses.fields(made):
        name, value, default = field.name, field.name, ""
        if field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _absent else {name}" if field.init else f"_make_{name}()"
            default = "=_absent"
        elif field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        if field.init:
            (named if field.kw_only else positional).append(name + default)
        if field.init or value != name:  # a plain default is the class's own attribute
            body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    body += ["self.__post_init__()"] if hasattr(made, "__post_init__") else []
    parameters = ", ".join(positional + (named if len(named) > 1 else []))
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), scope)
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _repr(made: type[Any]) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(made) if field.repr]

    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return __repr__


def _guards(made: type[Any]) -> dict[str, Callable[..., None]]:
    names = {field.name for field in dataclasses.fields(made)}

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}
