"""Sizes by name: formulas are exact, equal sizes are equal, and bounds answer questions."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perframe.ir.sizes.names import NAMES, named, with_sizes
from perframe.ir.sizes.partial import Dim, DimFormula, DynamicTensorShape, derived, dim_product, dim_quotient, dim_sum
from perframe.ir.sizes.scope import NotKnownError
from perframe.ir.sizes.size import at_least, at_most, is_less, is_symbolic, surely_less

LETTERS = ("n", "m", "my dim")
OPERATIONS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    at_most,
    at_least,
    is_less,
]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
Formulas = Callable[[dict[str, Any]], Any]


def formulas() -> st.SearchStrategy[Formulas]:
    """Random formulas of named sizes."""
    leaves = st.one_of(
        st.sampled_from(LETTERS).map(lambda name: lambda sizes: sizes[name]),
        st.integers(-4, 9).map(lambda number: lambda sizes: number),
    )

    def joined(parts: st.SearchStrategy[Formulas]) -> st.SearchStrategy[Formulas]:
        return st.builds(
            lambda operation, a, b: lambda sizes: operation(a(sizes), b(sizes)),
            st.sampled_from(OPERATIONS),
            parts,
            parts,
        )

    return st.recursive(leaves, joined, max_leaves=8)


SIZES = st.fixed_dictionaries({name: st.integers(0, 20) for name in LETTERS})


def found(formula: Formulas, sizes: dict[str, Any]) -> Any:
    try:
        return formula(sizes)
    except (NotKnownError, ZeroDivisionError):
        return None


@pytest.mark.quick(cases=0)
@given(formulas(), st.lists(SIZES, min_size=1, max_size=8))
@settings(deadline=None, max_examples=400)
def test_a_formula_gives_the_numbers_of_any_sizes(formula: Formulas, given: list[dict[str, int]]) -> None:
    made = found(formula, {name: named(name) for name in LETTERS})
    if made is None:
        return
    for sizes in given:
        number = with_sizes(made.terms, sizes) if is_symbolic(made) else made
        assert is_symbolic(number) or number == formula(sizes), sizes
        if is_symbolic(made) and (low := NAMES.low(made.terms)) is not None:
            assert low <= formula(sizes)


@pytest.mark.slow
@given(formulas(), formulas(), st.lists(SIZES, min_size=1, max_size=8))
@settings(deadline=None, max_examples=400)
def test_an_answer_holds_for_all_sizes(a: Formulas, b: Formulas, given: list[dict[str, int]]) -> None:
    names = {name: named(name) for name in LETTERS}
    left, right = found(a, names), found(b, names)
    if left is None or right is None:
        return
    for compare in COMPARISONS:
        answer = found(lambda _, compare=compare: compare(left, right), {})  # type: ignore[misc]
        assert answer in (None, *[compare(a(sizes), b(sizes)) for sizes in given])
        if answer is not None:
            assert all(compare(a(sizes), b(sizes)) is answer for sizes in given)


def dim(formula: Callable[..., Any], *names: Dim) -> Dim:
    return derived(formula, *(names or ("h",)))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda h: (h + 1) // 2 // 2, lambda h: (h + 1) // 4),
        (lambda h: (((h + 1) // 2) + 1) // 2, lambda h: (h + 3) // 4),
        (lambda h: (h + 2 - 3) // 2 + 1, lambda h: (h + 1) // 2),
        (lambda h: (h + 9) // 4, lambda h: (h + 1) // 4 + 2),
        (lambda h: (2 * h + 3) // 4, lambda h: (h + 1) // 2),
        (lambda h: 3 * h // 2, lambda h: h + h // 2),
        (lambda h: (4 * h + 3) // 4, lambda h: h),
        (lambda h: h - h // 3 * 3, lambda h: h % 3),
        (lambda h: -(-h // 8), lambda h: (h + 7) // 8),
        (lambda h: h // -2, lambda h: -((h + 1) // 2)),
        (lambda h: (h - 1) // 2 - (h - 3) // 2, lambda h: 1),
        (lambda h: 2 * (h + 3) * h, lambda h: h * h + 6 * h + h * h),
        (lambda h: at_least(h, 0), lambda h: h),
        (lambda h: at_least(at_least(h - 2, 0) - 2, 0), lambda h: at_least(h - 4, 0)),
        (lambda h: at_most(at_most(h, 7) + 3, 5), lambda h: at_most(h + 3, 5)),
        (lambda h: at_least(h // 2 - 3, 0), lambda h: at_least(0, h // 2 - 3)),
        (lambda h: at_most(h - 2 * ((h - 2) // 2) - 1, 0), lambda h: 0),
    ],
)
def test_equal_sizes_are_equal(left: Callable[[Any], Any], right: Callable[[Any], Any]) -> None:
    assert dim(left) == dim(right)
    assert [left(size) for size in range(20)] == [right(size) for size in range(20)]


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (lambda h: h // 2, "h/2"),
        (lambda h: 2 * ((h + 3) // 4), "2*((h + 3)/4)"),
        (lambda h: h - 2, "h - 2"),
        (lambda h: 2 - h // 2, "2 - h/2"),
        (lambda h: at_least(h - 2, 0), "max(h - 2, 0)"),
        (lambda h: at_most(h, 7), "min(h, 7)"),
        (lambda h: h * h + 1, "h*h + 1"),
        (lambda h: -h, "-h"),
    ],
)
def test_texts(formula: Callable[[Any], Any], text: str) -> None:
    assert repr(formula(named("h"))) == f"{formula(named('h'))}" == text
    assert dim(formula) == text and repr(DynamicTensorShape((dim(formula),))) == f"({text})"


def test_names_in_formulas() -> None:
    assert derived(lambda h, w: (h // 2) * (w // 2), "h", "w") == "(h/2)*(w/2)"
    assert derived(operator.floordiv, "h", 2) != derived(operator.floordiv, "w", 2)
    assert derived(operator.floordiv, "my dim", 2) == "'my dim'/2"
    assert derived(operator.mul, "h/2", 2) == "2*'h/2'"  # a name, and not the half of a height


def test_questions_about_names() -> None:
    n, m = named("n"), named("m")
    assert n >= 0 and not n < 0 and n != -1 and n + 1 > 0 and n + m + 1 > m and n == n
    assert surely_less(-1, n) and not surely_less(n, 3) and not surely_less(3, n)
    for question in (lambda: n == m, lambda: n == 3, lambda: n > 0, lambda: bool(n), lambda: [1, 2][n], lambda: n / 2):
        with pytest.raises(NotKnownError):
            question()
    with pytest.raises(NotKnownError):
        n // m  # it may be 0


def test_what_is_not_known_stays_so() -> None:
    unknown = NAMES.unknown()
    assert unknown * 0 == 0 and unknown - unknown == 0 and dim(lambda h: h * NAMES.unknown()) is None
    for question in (lambda: unknown >= 0, lambda: unknown == NAMES.unknown(), lambda: unknown // 2 == unknown // 2):
        with pytest.raises(NotKnownError):
            question()


def test_formulas_stay_small() -> None:
    """A file may square a size again and again."""
    size = named("n") + named("m") + 1
    for _ in range(60):
        size = size * size
    assert not is_symbolic(size) or derived(lambda: size) is None
    size = sum(named(f"d{index}") // 2 for index in range(600))
    assert derived(lambda: size) is None and not surely_less(0, size)
    size = named("n")
    for divisor in range(2, 200):
        size = (size + named("m")) // divisor * divisor
    assert derived(lambda: size) is None


def test_sums_products_and_quotients_of_dims() -> None:
    assert dim_sum("n", 0) == "n" and dim_sum(2, 3) == 5 and dim_sum("n", 1) == "n + 1" and dim_sum() == 0
    assert dim_sum("n", None) is None and dim_product(None, 2) is None and dim_product(None, 0) == 0
    assert dim_product("n", 1) == "n" and dim_product("n", 0) == 0 and dim_product("n", "m") == "m*n"
    assert dim_product() == 1
    assert dim_quotient(dim_product("n", "m", 6), dim_product("m", 2)) == "3*n"  # for an m of 0 too
    assert dim_quotient(dim_product("n", 6), 4) == "n + n/2" and dim_quotient("n", "m") is None


def test_a_formula_in_a_shape() -> None:
    half = derived(operator.floordiv, "h", 2)
    shape = DynamicTensorShape(("n", half, 3))
    assert isinstance(half, DimFormula) and hash(shape) == hash(DynamicTensorShape(("n", "h/2", 3)))
    assert shape.with_dims({"h": 9}) == ("n", 4, 3) and not shape.is_static and shape.size is None
    both = DynamicTensorShape(("h", half))
    assert both.accepts((9, 4)) and not both.accepts((9, 5)) and DynamicTensorShape((half,)).accepts((5,))
    for copied in (copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert copied == shape
