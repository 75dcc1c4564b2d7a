"""Quotients of polynomials, rounded down. Equal quotients get equal terms."""

from __future__ import annotations

import math

from perframe.ir.sizes.arithmetic import DIVIDE
from perframe.ir.sizes.polynomials import Terms, add, multiply, scale, subtract, without
from perframe.ir.sizes.scope import SizeScope


def quotient(scope: SizeScope, terms: Terms, divisor: Terms) -> Terms:
    """Return terms // divisor: divide the terms that divide exactly, and make an atom of the quotient of the rest.

    Raises NotKnownError in a scope without values where the divisor may be zero.
    """
    if not any(divisor):
        return _by_number(scope, terms, divisor.get((), 0))
    positive = (scope.low(divisor) or 0) > 0
    if not positive:
        scope.decide(divisor, scope.value(divisor), True)  # a guard, since the divisor may be zero for other sizes
    elif _is_negative(terms):
        return scale(quotient(scope, _rounded_up(terms, divisor), divisor), -1)
    exact = _exact_part(terms, divisor) if positive else {}
    rest = subtract(terms, multiply(exact, divisor))
    return add(exact, _atom(scope, rest, divisor)) if rest else exact


def exact_quotient(terms: Terms, divisor: Terms) -> Terms | None:
    """Return the polynomial whose product with the divisor has these terms; None if there is none."""
    exact = _exact_part(terms, divisor)
    return exact if multiply(exact, divisor) == terms else None


def _exact_part(terms: Terms, divisor: Terms) -> Terms:
    """Return the terms that a divisor of one term divides exactly, divided."""
    exact: Terms = {}
    if len(divisor) == 1:
        ((product, times),) = divisor.items()
        for factors, count in terms.items():
            left_over = None if count % times else without(factors, product)
            if left_over is not None:
                exact[left_over] = count // times
    return exact


def _by_number(scope: SizeScope, terms: Terms, by: int) -> Terms:
    """Return terms // by: numbers leave the quotient, common factors cancel, and the quotient of a quotient is one
    quotient.
    """
    if by == 0:
        raise ZeroDivisionError
    if by < 0:
        return _by_number(scope, scale(terms, -1), -by)
    if _is_negative(terms):
        return scale(_by_number(scope, _rounded_up(terms, {(): by}), by), -1)
    exact: Terms = {}
    rest: Terms = {}
    for factors, count in terms.items():
        whole, left_over = divmod(count, by) if not factors or count > 0 or count % by == 0 else (0, count)
        if whole:
            exact[factors] = whole
        if left_over:
            rest[factors] = left_over
    if not any(rest):
        return exact
    common = math.gcd(by, *(count for factors, count in rest.items() if factors))
    if common > 1:  # what the number has beyond a multiple of it does not change the quotient
        rest = {factors: count // common for factors, count in rest.items() if count >= common or factors}
        return add(exact, _by_number(scope, rest, by // common))
    for factors, count in rest.items():
        inner = scope.operation(factors[0]) if len(factors) == count == 1 else None
        if inner is not None and inner[0] == DIVIDE and not any(inner[2]) and inner[2][()] > 0:
            others, within = subtract(rest, {factors: 1}), inner[2][()]
            return add(exact, _by_number(scope, add(inner[1], scale(others, within)), by * within))
    return add(exact, _atom(scope, rest, {(): by}))


def _is_negative(terms: Terms) -> bool:
    """Whether no term but the number counts up, or a number alone is negative. Such a quotient rounds up: -(-n // 8) is
    (n + 7) // 8.
    """
    return max([count for product, count in terms.items() if product or len(terms) == 1], default=0) < 0


def _rounded_up(terms: Terms, divisor: Terms) -> Terms:
    """Return the terms whose quotient is minus the quotient of these."""
    return subtract(subtract(divisor, terms), {(): 1})


def _atom(scope: SizeScope, left: Terms, right: Terms) -> Terms:
    value, by = scope.value(left), scope.value(right)
    made = scope.atom(DIVIDE, left, right, None if value is None or by is None else value // by)
    terms: Terms = made.terms
    return terms
