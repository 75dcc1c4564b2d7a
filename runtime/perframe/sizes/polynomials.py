"""Polynomials with whole coefficients, as far as the arithmetic of sizes needs them."""

from __future__ import annotations

Terms = dict[tuple[int, ...], int]  # for each product of atoms, ascending, how often it is taken; () is the number


def add(left: Terms, right: Terms) -> Terms:
    """Their sum."""
    made = dict(left)
    for product, count in right.items():
        total = made.get(product, 0) + count
        if total:
            made[product] = total
        else:
            made.pop(product, None)
    return made


def multiply(left: Terms, right: Terms) -> Terms:
    """Their product."""
    if len(right) == 1 and () in right:
        return scale(left, right[()])
    made: Terms = {}
    for a, times in left.items():
        for b, count in right.items():
            made = add(made, {tuple(sorted(a + b)): times * count})
    return made


def scale(terms: Terms, factor: int) -> Terms:
    """A multiple; the factor is not zero."""
    return {product: count * factor for product, count in terms.items()}


def subtract(left: Terms, right: Terms) -> Terms:
    """Their difference."""
    return add(left, scale(right, -1))


def without(factors: tuple[int, ...], product: tuple[int, ...]) -> tuple[int, ...] | None:
    """Factors without those of a product; None where they do not have them."""
    rest = list(factors)
    for atom in product:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
