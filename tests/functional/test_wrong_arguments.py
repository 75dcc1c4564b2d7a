"""Whatever a function is called with, it gives a tensor or an error that names the function and its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from functional.calling import mapped
from functional.cases import CASES
from perframe.errors import InferenceError, InputError

ODD: tuple[Any, ...] = (
    None,
    "text",
    object(),
    -(10**12),
    10**12,
    2.5,
    float("nan"),
    (),
    (1, 2, 3, 4, 5, 6, 7, 8, 9),
    [[1, 2], [3]],
    {"a": 1},
    np.ones((2, 0, 3), np.complex64),
    np.array(["a", "b"]),
    np.zeros((0,), np.float32),
    np.ones((1,) * 9, bool),
)


@pytest.mark.parametrize("name", CASES)
def test_odd_arguments(name: str) -> None:
    call, graph = getattr(pf.functional, name), pf.FunctionalGraph()

    def to_input(array: Any) -> pf.FunctionalTensor:
        return graph.add_input(pf.DataType.of(array.dtype), np.shape(array))

    for case in CASES[name]:
        args = [mapped(value, to_input) for value in case.args]
        named = {key: mapped(value, to_input) for key, value in case.named.items()}
        places: list[Any] = [*range(len(args)), *named]
        for place in places:
            for odd in ODD:
                changed, others = list(args), dict(named)
                (changed if isinstance(place, int) else others)[place] = odd
                try:
                    call(*changed, **others)
                except (InputError, InferenceError) as error:
                    assert str(error).startswith(f"pf.functional.{call.__name__}("), error


@pytest.mark.parametrize(
    "operator", ["Relu", "Exp", "Not", "BitwiseNot", "ReduceSum", "ArgMax", "DynamicQuantizeLinear"]
)
@pytest.mark.parametrize("text", ["text", ["a", "b"], np.array(["a", "b"], object), pf.DataType.FLOAT32])
def test_strings_are_no_numbers(operator: str, text: Any) -> None:
    with pytest.raises(InferenceError, match=rf"{operator} takes numbers, and its input '\w+' holds strings"):
        pf.functional.apply(operator, text)


def test_strings_stay_inputs_of_operators_that_take_them() -> None:
    assert pf.functional.apply("Equal", "a", ["a", "b"]).shape == (2,)
    assert pf.functional.apply("Where", [True, False], "a", "b").shape == (2,)
    assert pf.functional.apply("Cast", ["1.5"], to=pf.DataType.FLOAT32).shape == (1,)


@pytest.mark.parametrize("value", [{"a": 1}, {1.0}, object(), b"x", len])
def test_inputs_of_other_types_say_what_is_taken(value: Any) -> None:
    with pytest.raises(
        InputError, match=r"apply\(operator='Relu'.*an input is a functional tensor, a Tensor, an array"
    ):
        pf.functional.apply("Relu", value)


FLOATS, INTEGERS = np.zeros(3, np.float32), np.zeros(3, np.int64)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda odd: pf.functional.softplus(FLOATS, threshold=odd), "is not a number"),
        (lambda odd: pf.functional.nan_to_num(FLOATS, nan=odd), "is not a number"),
        (lambda odd: pf.functional.full_like(FLOATS, odd), "is not a number"),
        (lambda odd: pf.functional.linspace(0, odd, 3), "is not a number"),
        (lambda odd: pf.functional.logspace(0, 1, 3, base=odd), "is not a number"),
        (lambda odd: pf.functional.nms(np.zeros((3, 4), np.float32), FLOATS, odd), "is not a number"),
        (lambda odd: pf.functional.nms(np.zeros((3, 4), np.float32), FLOATS, 0.5, odd), "is not a number"),
    ],
)
@pytest.mark.parametrize("odd", [1j, np.ones((2, 3)), np.ones(2, np.complex64), "0.5", [0.5]])
def test_what_is_no_real_number_is_refused(call: Any, says: str, odd: Any) -> None:
    with pytest.raises(InputError, match=says):
        call(odd)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pf.functional.hardtanh(INTEGERS, -0.5, 0.5),
        lambda: pf.functional.threshold(INTEGERS, 0.5, 1),
        lambda: pf.functional.pad(INTEGERS, (1, 1), value=0.5),
        lambda: pf.functional.index_add(INTEGERS, 0, INTEGERS, INTEGERS, alpha=1.5),
        lambda: pf.functional.full_like(INTEGERS, 0.5),
    ],
)
def test_a_number_that_the_dtype_would_round_is_refused(call: Any) -> None:
    with pytest.raises(InputError, match=r"int64 cannot hold"):
        call()


@pytest.mark.parametrize("number", [300, -1, np.nan, np.inf, 0.5])
def test_a_number_beyond_the_range_of_the_dtype_is_refused(number: float) -> None:
    with pytest.raises(InputError, match=r"uint8 cannot hold"):
        pf.functional.full_like(np.zeros(3, np.uint8), number)


@pytest.mark.parametrize("size", [2.5, 1j, "2"])
def test_a_size_that_is_no_integer_is_refused(size: Any) -> None:
    with pytest.raises(InputError, match="not integers"):
        pf.functional.eye(size)


def test_complex_numbers_do_not_lose_their_imaginary_parts() -> None:
    with pytest.raises(InputError, match="complex numbers cannot become float32: give the real parts"):
        pf.functional.constant(np.ones(2, np.complex64), "float32")
