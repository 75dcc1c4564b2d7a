"""Shapes that a model does not take, and the answer with the array that has the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf


@pytest.mark.parametrize(
    ("wanted", "got", "hint"),
    [
        (("n", 3, "h", "w"), (3, 5, 4), r": pass array\[None\]$"),
        (("n", 3, "h", "w"), (5, 4, 3), r": pass array\.transpose\(2, 0, 1\)\[None\]$"),
        (("n", 3, "h", "w"), (2, 5, 4, 3), r": pass array\.transpose\(0, 3, 1, 2\)$"),
        ((1, 8, 8, 3), (1, 3, 8, 8), r": pass array\.transpose\(0, 2, 3, 1\)$"),
        (("n", 3, "h", "w"), (1, 3, 9), r"got \(1, 3, 9\)$"),
        ((1, 1, 8, 8), (8, 8), r": pass array\[None, None\]$"),
        ((3,), (1, 3), r": pass array\[0\]$"),
        ((1, 3, 6, 8), (1, 3, 5, 9), r": pass a picture resized to 8x6$"),
        ((1, 6, 8, 3), (1, 5, 9, 3), r": pass a picture resized to 8x6$"),
        (("n", 3), (3, 2), r"got \(3, 2\)$"),
        ((1, 3, "h", "w"), (1, 4, 6, 8), r": pass array\[:, :3\]$"),
        ((1, "h", "w", 3), (1, 6, 8, 4), r": pass array\[\.\.\., :3\]$"),
        ((1, 3, 6, 8), (1, 1, 6, 8), r": pass array\.repeat\(3, 1\)$"),
        ((1, 3, "h", "w"), (1, 2, 6, 8), r"got \(1, 2, 6, 8\)$"),
    ],
)
def test_a_wrong_shape_is_answered_with_the_right_array(wanted: Any, got: Any, hint: str) -> None:
    graph = pf.FunctionalGraph()
    model = graph.compile(y=graph.add_input("float32", wanted, "x") + 1)
    with pf.Worker(model) as worker, pytest.raises(pf.InputError, match=hint):
        worker.schedule(np.zeros(got, np.float32))


def test_an_input_is_made_in_a_shape_that_the_model_takes() -> None:
    graph = pf.FunctionalGraph()
    model = graph.compile(y=graph.add_input("float32", ("n", 3), "x") + 1)
    with pf.Worker(model) as worker:
        assert worker.empty_input(shape=(2, 3)).shape == (2, 3)
        for wrong in ((2, 4), (3,), (2, 3, 1)):
            with pytest.raises(pf.InputError, match="cannot have the shape"):
                worker.empty_input(shape=wrong)
        for no_shape in ((-1, 3), (2.5, 3), ("n", 3), 3):
            with pytest.raises(pf.InputError, match="a shape is a tuple of integers"):
                worker.empty_input(shape=no_shape)  # type: ignore[arg-type]
        with pytest.raises(pf.InputError, match=r"pass the shape by name: shape=\(2, 3\)"):
            worker.empty_input((2, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize(("how", "given"), [("by position", np.zeros(3)), ("in the dict", {"x": np.zeros(3)})])
def test_an_input_is_given_once(how: str, given: Any) -> None:
    graph = pf.FunctionalGraph()
    x, y = graph.add_input("float64", (3,), "x"), graph.add_input("float64", (3,), "y")
    with pf.Worker(graph.compile(z=x + y)) as worker:
        with pytest.raises(pf.InputError, match=rf"'x' is given twice: {how} and as a keyword"):
            worker.schedule(given, x=np.ones(3), y=np.ones(3))
        assert (worker.schedule(given, y=np.ones(3)).peek_output().numpy() == 1).all()


def test_compare_takes_the_only_input_without_its_name() -> None:
    image = np.zeros((1, 1, 28, 28), np.float32)
    assert all(step.agrees for step in pf.compare("digits", image))
    assert all(step.agrees for step in pf.compare("digits", image, against="digits"))
    with pytest.raises(pf.InputError, match=r"pf\.compare takes inputs by name"):
        pf.compare("voice", image)
