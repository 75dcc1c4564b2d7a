"""Arithmetic of sizes agrees with the same computation for other sizes, or says that it does not hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.refit.arithmetic import CpuChooser, NativeArithmetic
from perframe.ir.sizes.arithmetic import SizeArithmetic
from perframe.ir.sizes.names import named
from perframe.ir.sizes.open_dims import OpenDims, Positions
from perframe.ir.sizes.scope import NotKnownError
from perframe.ir.sizes.size import (
    SymbolicKeyError,
    at_least,
    at_most,
    is_less,
    is_symbolic,
    known_factor,
    plain,
    specialized,
)
from perframe.ir.sizes.tables import key_of, look_up, remembered
from perframe.ir.sizes.trace import Trace
from perframe.tensor.storage import address_of

Program = Callable[[int, int], list[int]]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Native arithmetic never waits for its kernel."""
    jit.kernel("arithmetic")
    jit.settle()


def arithmetic(n: int, t: int) -> list[int]:
    """Arithmetic as shape rules and lowerings use it."""
    return [
        *(-(-n // 8) * 8, n * t * 256 // (n * t), max(1, n * t // 3), (n * 256 + 5) // 256, t * 64 // 64 - t),
        *(n * t % 7 + t // n + (t - n), abs(t - n), -t // 3, (t * t + t * 3 + 9) // t, math.prod([n, t, 3])),
        *(
            is_less(n, t),
            is_less(t, 7) * n,
            at_most(n, 10) + at_least(t, n),
            at_least(at_most(n * t, 40), t),
            -(-n // -(-t // 4)),
            7 // n,
            100 - n,
        ),
        *divmod(n * 3 + t, 5),
    ]


def branching(n: int, t: int) -> list[int]:
    """Decisions by sizes."""
    block = n
    while block * 3 > 40:
        block = -(-block // 2)
    return [block, n // 4 if n % 4 == 0 else n, min(n, t, 10), int(n == t), int(n != 3), [n, t].index(t), int(bool(t))]


def bare(n: int, t: int) -> list[int]:
    """Operations that need the bare value."""
    compared = [n < 2.5, n > 2.5, n <= 7.0, t <= 7.0, n == 3.0, t != np.float32(4)]
    return [len(range(n)), int(np.zeros(t).size), len(str(t)), [*range(100)][n], n * 2 + t, *map(int, compared)]


SIZES = st.integers(0, 60)


@pytest.mark.parametrize("program", [arithmetic, branching, bare])
@settings(deadline=None)
@given(first=st.tuples(SIZES, SIZES), others=st.lists(st.tuples(SIZES, SIZES), max_size=8))
def test_the_formulas_of_a_program(program: Program, first: tuple[int, int], others: list[tuple[int, int]]) -> None:
    def run(n: int, t: int) -> list[int] | None:
        try:
            return program(n, t)
        except ZeroDivisionError:
            return None

    trace = Trace(first)
    found = run(*trace.sizes)
    wanted = run(*first)
    assert (None if found is None else list(map(plain, found))) == wanted
    if found is None:
        return
    arithmetic = trace.arithmetic(found)
    assert arithmetic.evaluate(first) == wanted
    for sizes in others:
        made = arithmetic.evaluate(sizes)
        assert made in (None, run(*sizes)), sizes
        assert natively(arithmetic, sizes) == made, sizes


def natively(arithmetic: SizeArithmetic, sizes: tuple[int, int]) -> list[int] | None:
    """The results of native code."""
    count = len(arithmetic.results)
    block = np.array([0, 1000, *[-1] * count])
    addresses = [index % 2 for index in range(count)]
    native = NativeArithmetic(arithmetic, [*zip(range(2, 2 + count), addresses, strict=True)], count // 2)
    jit.settle()
    chooser = CpuChooser([native], Positions(3, [2, 0], [(0, 1)]))
    assert native.ready
    assert chooser.choose([sizes[1:], (sizes[1] + 1, sizes[0])]) == -1
    if chooser.choose([sizes[1:], (sizes[1], sizes[0])]) < 0:
        return None
    native.read(address_of(block))
    native.write(address_of(block))
    return [int(value) - 1000 * address for value, address in zip(block[2:], addresses, strict=True)]


def holds(first: tuple[int, int], program: Callable[[int, int], Any], *others: tuple[int, int]) -> list[bool]:
    """For which sizes the arithmetic of a program holds."""
    trace = Trace(first)
    program(*trace.sizes)
    arithmetic = trace.arithmetic([])
    return [arithmetic.evaluate(sizes) is not None for sizes in others]


def test_what_follows_for_all_sizes_is_no_guard() -> None:
    def program(n: int, t: int) -> None:
        assert n * t * 4 // t == 4 * n
        assert n > 1
        assert n * t >= n
        assert -(-n // 8) >= 1
        assert (n * 12 + 5) // 12 == n
        assert n + t != 0

    assert holds((5, 9), program, (2, 2), (3, 700), (99, 2)) == [True] * 3


def test_zero_and_one_are_numbers_of_their_own() -> None:
    assert holds((1, 9), lambda n, t: None, (1, 2), (2, 9), (0, 9), (1, 1)) == [True, False, False, False]
    assert Trace([0, 1, 2]).sizes[:2] == [0, 1]


def test_a_guard_keeps_sizes_apart() -> None:
    assert holds((5, 9), lambda n, t: n < 8, (2, 9), (7, 100), (8, 9)) == [True, True, False]
    assert holds((6, 9), lambda n, t: n % 3 == 0, (9, 2), (10, 2)) == [True, False]
    assert holds((6, 6), lambda n, t: n == t, (4, 4), (4, 5)) == [True, False]


def test_a_divisor_that_is_zero_for_other_sizes() -> None:
    assert holds((5, 9), lambda n, t: n // (t - 4), (6, 8), (6, 4)) == [True, False]
    assert holds((5, 9), lambda n, t: n % (t // 3), (6, 8), (6, 2)) == [True, False]


def test_what_one_guard_says_decides_the_next() -> None:
    trace = Trace([40])
    n = trace.sizes[0] // 4
    assert n > 3
    assert n > 0
    assert n != 2
    assert len(trace._guards) == 1


def test_a_bare_value_makes_the_formulas_hold_for_it_alone() -> None:
    for take in (range, str, float, np.zeros, lambda n: [0] * n, lambda n: n / 2, lambda n: f"{n}", lambda n: 2**n):
        assert holds((5, 9), lambda n, t, take=take: take(n), (5, 3), (6, 9)) == [True, False]  # type: ignore[misc]


def test_uses_as_an_int_are_noted_unless_said() -> None:
    trace = Trace([5])
    (n,) = trace.sizes
    assert specialized(n) == 5 and not is_symbolic(specialized(n)) and not trace.losses
    assert np.zeros(n).size == 5
    assert len(trace.losses) == 1 and trace.losses[0].startswith(__file__)  # and not a line of NumPy
    assert trace.arithmetic([]).evaluate([6]) is None


def test_sizes_of_two_scopes_do_not_mix() -> None:
    (n,), (m,) = Trace([5]).sizes, Trace([5]).sizes
    for mix in (lambda: n + m, lambda: n // m, lambda: n < m, lambda: named("n") * n, lambda: n == named("n")):
        with pytest.raises(NotKnownError):
            mix()


def test_products_stay_small() -> None:
    """A file may square a size again and again."""
    trace = Trace([2])
    (n,) = trace.sizes
    for _ in range(9):
        n = n * n
    assert plain(n) == 2 ** (2**9) and trace.arithmetic([n]).evaluate([3]) is None


def test_a_size_passes_for_an_int() -> None:
    (n,) = Trace([5]).sizes
    assert isinstance(n, int) and is_symbolic(n) and not is_symbolic(5)
    assert np.array([n, 2], object).prod() == 10
    assert known_factor(n * 12 + 18) == 6 and known_factor(12) == 12
    assert is_less(3, 64) == 1 and is_less(64, 3) == is_less(3, 3) == 0


def test_a_size_is_in_no_set() -> None:
    """By its hash it would be in none, and nothing would guard that: 8 is among them, and 9 is not."""
    n, m = Trace([8, 8]).sizes
    for use in (lambda: n in {8, 16}, lambda: {8: "a"}.get(n), lambda: {n, m}):
        with pytest.raises(SymbolicKeyError):
            use()
    assert n in (8, 16)
    table: dict[Any, str] = {}
    for key, value in (((n, 3), "n"), ((m, 3), "m"), ((8, 3), "8")):
        where, found = look_up(table, key)
        assert found is None  # they are equal by chance
        table[where] = value
    assert [look_up(table, key)[1] for key in ((n, 3), (m, 3), (8, 3))] == ["n", "m", "8"]


def test_results_of_followed_sizes_are_not_remembered() -> None:
    called = []

    @remembered(8)
    def double(number: int) -> int:
        called.append(plain(number))
        return 2 * number

    (n,) = Trace([8]).sizes
    assert [plain(double(number)) for number in (8, 8, n, n)] == [16] * 4
    assert is_symbolic(double(n)) and called == [8, 8, 8, 8]


def test_dims_of_one_name_are_one() -> None:
    dims = OpenDims([("n", None, 3), (None, "n"), None])
    shapes = [(4, 5, 3), (6, 4), (7,)]
    assert dims.sizes(shapes) == [4, 5, 6, 7]
    assert dims.sizes([(4, 5, 3), (6, 5), (7,)]) is None
    assert dims.positions((3, 2, 1)) == Positions(6, [0, 1, 3, 5], [(0, 4)])
    followed = dims.put(Trace([4, 5, 6, 7]).sizes, shapes)
    assert [tuple(map(plain, shape)) for shape in followed] == shapes
    assert key_of(followed[0][0]) == key_of(followed[1][1]) and not is_symbolic(followed[0][2])
