"""Sizes by name: the scope of shape inference, in which sizes have no values.

An atom is its own text, `height` or `(height + 3)/4`, so equal sizes have equal terms without a table of atoms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count
from typing import Any

from perframe.ir.sizes.arithmetic import DIVIDE, LARGER, SMALLER
from perframe.ir.sizes.polynomials import Terms, add, scale
from perframe.ir.sizes.scope import Answer, NotKnownError, Operation, SizeScope
from perframe.ir.sizes.size import Size, at_least, at_most

MAX_TEXT = 200  # characters of an atom or a dim; a longer one is not known
_PLAIN = re.compile(r"[^\W\d][\w.]*")  # names that need no quotes in a text
_unknown = count(1)


class Atom(str):
    """A size of one name, or the result of an operation on polynomials.

    `least` is its lower bound. `name` is None for a result, and for a size that is not known at all.
    """

    __slots__ = ("least", "name", "operation")
    least: int | None
    name: str | None
    operation: Operation | None


def _made(text: str, name: str | None, least: int | None, operation: Operation | None = None) -> Atom:
    atom = Atom(text)
    atom.name, atom.least, atom.operation = name, least, operation
    return atom


class NamedSizes(SizeScope):
    """The sizes of named dims, which are not negative, and numbers that are not known."""

    def least(self, atom: Atom) -> int | None:
        """Return a lower bound of an atom, or None where none is known."""
        return atom.least

    def operation(self, atom: Atom) -> Operation | None:
        """Return the operation that makes an atom and its operands, or None for a name."""
        return atom.operation

    def atom(self, operation: int, left: Terms, right: Terms, value: Answer) -> Size:
        """Return the size that an operation makes of two polynomials; an unknown one if its text would be too long."""
        if operation != DIVIDE:
            left, right = _without_inner_bound(operation, *((left, right) if any(left) else (right, left)))
        text = _operation_text(operation, left, right)
        if len(text) > MAX_TEXT or not (is_known(left) and is_known(right)):
            return self.unknown()
        return Size(self, {(_made(text, None, self.low_of(operation, left, right), (operation, left, right)),): 1})

    def value(self, terms: Terms) -> Answer:
        """Return None: sizes have no values here."""
        return None

    def low(self, terms: Terms, sign: int = 1) -> int | None:
        """Return a lower bound of a polynomial (or of its negative), or None where none is known."""
        low = super().low(terms, sign)
        for positive in (False, True):
            if low is None:
                plain, times = _without_quotients(terms, sign, positive)
                low = super().low(plain, sign)
                low = None if low is None else -(-low // times)
        return low

    def answer(self, difference: Terms, value: Answer, equals: bool) -> bool:
        """Raise NotKnownError: the bounds do not say it."""
        raise NotKnownError

    def used_as_int(self, size: Size) -> int:
        """Raise NotKnownError: sizes have no values here."""
        raise NotKnownError

    def text(self, size: Size) -> str:
        """Return a size as a formula."""
        return text_of(size.terms)

    def unwieldy(self, left: Size, right: Any) -> Size:
        """Return an unknown size."""
        return self.unknown()

    def unknown(self) -> Size:
        """Return a size of which nothing is known."""
        return Size(self, {(_made(f"?{next(_unknown)}", None, None),): 1})


def _without_inner_bound(operation: int, terms: Terms, bound: Terms) -> tuple[Terms, Terms]:
    """Return the operands of a minimum or a maximum without an inner one that the bound covers.

    So max(max(h - 2, 0) - 2, 0) is max(h - 4, 0).
    """
    inner, more = _inner(terms), terms.get((), 0)
    if any(bound) or inner is None or inner[0] != operation or any(inner[2]):
        return terms, bound
    beyond = inner[2].get((), 0) + more - bound.get((), 0)
    if beyond > 0 if operation == LARGER else beyond < 0:
        return terms, bound
    return _without_inner_bound(operation, add(inner[1], {(): more} if more else {}), bound)


def _inner(terms: Terms) -> Operation | None:
    """Return the operation of an atom if a polynomial is this atom plus a number, else None."""
    others = [product for product in terms if product]
    if len(others) != 1 or len(others[0]) != 1 or terms[others[0]] != 1:
        return None
    operation: Operation | None = others[0][0].operation
    return operation


def _without_quotients(terms: Terms, sign: int, positive: bool) -> tuple[Terms, int]:
    """Return a polynomial without quotients by numbers, and a factor: the polynomial is at most this one times the
    factor (at least, for a negative sign).

    Only quotients that count against a lower bound are replaced, or with `positive` all of them.
    """
    factor = 1
    while True:
        for product, times in terms.items():
            found = product[0].operation if len(product) == 1 else None
            counts = sign * times > 0
            if found is None or found[0] != DIVIDE or any(found[2]) or counts > positive:
                continue
            by = found[2][()] // math.gcd(times, found[2][()])
            terms, factor, times = scale(terms, by), factor * by, times * by // found[2][()]
            del terms[product]
            terms = add(terms, scale(found[1], times))  # x // by is (x - x % by) / by
            if counts:
                terms = add(terms, {(): -times * (found[2][()] - 1)})
            break
        else:
            return terms, factor


NAMES = NamedSizes()


@lru_cache(1024)
def named(name: str) -> Size:
    """Return the size of the dims of this name."""
    return Size(NAMES, {(_made(name if _PLAIN.fullmatch(name) else repr(name), name, 0),): 1})


def is_known(terms: Terms) -> bool:
    """Whether no part of a polynomial is an unknown number."""
    return all(atom.name is not None or atom.operation is not None for product in terms for atom in product)


def name_of(terms: Terms) -> str | None:
    """Return the name if a polynomial is the size of one name, else None."""
    if len(terms) == 1:
        ((product, times),) = terms.items()
        if times == len(product) == 1:
            return product[0].name  # type: ignore[no-any-return]
    return None


def with_sizes(terms: Terms, sizes: Mapping[str, int]) -> Any:
    """Return a polynomial with these sizes for names: a number if no other name is in it."""
    total: Any = 0
    for product, times in terms.items():
        part: Any = times
        for atom in product:
            part = part * _with_sizes(atom, sizes)
        total = total + part
    return total


def _with_sizes(atom: Any, sizes: Mapping[str, int]) -> Any:
    if atom.operation is None:
        return sizes.get(atom.name, Size(NAMES, {(atom,): 1}))
    operation, left, right = atom.operation
    a, b = with_sizes(left, sizes), with_sizes(right, sizes)
    return a // b if operation == DIVIDE else at_most(a, b) if operation == SMALLER else at_least(a, b)


# --- texts ---


def text_of(terms: Terms) -> str:
    """Return a polynomial as a text, such as `2*((height + 3)/4)`. A slash divides and rounds down."""
    parts = [(_product_text(product, abs(times)), times > 0) for product, times in _in_order(terms.items())]
    if not parts:
        return "0"
    first = parts[0][0] if parts[0][1] else f"-{parts[0][0]}"
    return first + "".join(f" {'+' if positive else '-'} {text}" for text, positive in parts[1:])


def _in_order(items: Iterable[tuple[tuple[Any, ...], int]]) -> list[tuple[tuple[Any, ...], int]]:
    """Sort terms: those that count up first, a number after others."""
    return sorted(items, key=lambda item: (item[1] < 0, not item[0], -len(item[0]), item[0]))


def _product_text(product: tuple[Any, ...], times: int) -> str:
    if not product:
        return str(times)
    alone = len(product) == times == 1
    factors = [atom if alone or not _is_quotient(atom) else f"({atom})" for atom in product]
    return "*".join([*([str(times)] if times != 1 else []), *factors])


def _is_quotient(atom: Any) -> bool:
    return atom.operation is not None and atom.operation[0] == DIVIDE


def _operation_text(operation: int, left: Terms, right: Terms) -> str:
    if operation == DIVIDE:
        return f"{_within(left)}/{_within(right)}"
    listed = ", ".join(sorted([text_of(left), text_of(right)], key=lambda text: (text.isdigit(), text)))
    return f"{'max' if operation == LARGER else 'min'}({listed})"


def _within(terms: Terms) -> str:
    """Return the text of an operand of a division."""
    text = text_of(terms)
    single = len(terms) == 1 and (not any(terms) or [*map(len, terms)] == [1]) and not any(map(_is_quotient, *terms))
    return text if (single and [*terms.values()] == [1]) or not any(terms) else f"({text})"
