"""Polynomials with whole coefficients, for the arithmetic of sizes."""

from __future__ import annotations

from typing import Any

Terms = dict[tuple[Any, ...], int]  # product of atoms, ascending → its coefficient; () is the constant term


def add(left: Terms, right: Terms) -> Terms:
    """Return the sum."""
    made = dict(left)
    for product, count in right.items():
        total = made.get(product, 0) + count
        if total:
            made[product] = total
        else:
            made.pop(product, None)
    return made


def multiply(left: Terms, right: Terms) -> Terms:
    """Return the product."""
    if len(right) == 1 and () in right:
        return scale(left, right[()])
    made: Terms = {}
    for a, times in left.items():
        for b, count in right.items():
            made = add(made, {tuple(sorted(a + b)): times * count})
    return made


def scale(terms: Terms, factor: int) -> Terms:
    """Return the polynomial times a factor, which must not be zero."""
    return {product: count * factor for product, count in terms.items()}


def subtract(left: Terms, right: Terms) -> Terms:
    """Return the difference."""
    return add(left, scale(right, -1))


def without(factors: tuple[Any, ...], product: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Divide the product of `factors` by another product. Return the remaining factors, or None where `factors` lack
    a factor of the other.
    """
    rest = list(factors)
    for atom in product:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
