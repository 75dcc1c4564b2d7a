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
