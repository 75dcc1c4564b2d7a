"""Dropout that may train: a seed drops the same elements every time, and the rest is scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layers.runner import Case, Draw, check

draw = Draw(67)
RATIO, TRAINS, RESTS = np.float32(0.3), np.array(True), np.array(False)


def _halved(x: Any, ratio: Any, training: Any) -> Any:
    return np.where(np.random.RandomState(1).uniform(size=x.shape) >= 0.5, x * x.dtype.type(2), x.dtype.type(0))


CASES = [
    Case(name, "Dropout", [draw(3, 40), RATIO, mode], {"seed": 5}, outputs=2, constants=constants, gl=False, opset=13)
    for name, mode, constants in (
        ("trains", TRAINS, ()),
        ("trains always", TRAINS, (2,)),
        ("rests", RESTS, ()),
        ("rests always", RESTS, (1, 2)),
    )
]
CASES += [
    Case("all", "Dropout", [draw(3, 4), np.float32(0), TRAINS], {}, outputs=2, constants=(), gl=False),
    Case(
        "no ratio, float16",
        "Dropout",
        [draw(9, dtype=np.float16), None, TRAINS],
        {"seed": 1},
        reference=_halved,
        gl=False,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_drop(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)
