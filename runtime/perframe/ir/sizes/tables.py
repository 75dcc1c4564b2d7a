"""Tables whose keys may hold symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

from perframe.ir.sizes.size import SymbolicKeyError, is_symbolic

Found = TypeVar("Found")


def key_of(value: Any) -> Any:
    """Return a key for a value in a table. The terms stand for a symbolic size; tuples become tuples of keys."""
    if is_symbolic(value):
        return id(value.scope), frozenset(value.terms.items())
    return tuple(map(key_of, value)) if isinstance(value, tuple) else value


def look_up(table: Mapping[Any, Found], key: Any) -> tuple[Any, Found | None]:
    """Look up a key that may hold symbolic sizes. Return the key for the table, and the value or None."""
    try:
        return key, table.get(key)
    except SymbolicKeyError:
        key = key_of(key)
        return key, table.get(key)


def remembered(most: int, typed: bool = False) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """Decorate a function of numbers and tuples: it remembers up to `most` results, none for symbolic sizes.

    With `typed`, a name and a formula of the same text are different.
    """

    def decorate(function: Callable[..., Found]) -> Callable[..., Found]:
        known = lru_cache(most, typed)(function)

        @wraps(function)
        def call(*arguments: Any) -> Found:
            try:
                return known(*arguments)
            except SymbolicKeyError:
                return function(*arguments)

        return call

    return decorate
