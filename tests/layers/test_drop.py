"""Dropout that may train: a seed drops the same elements in every run and backend, and the others are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.testing import Case, Draw, check

draw = Draw(67)
RATIO, TRAINS, RESTS = np.float32(0.3), np.array(True), np.array(False)


def _halved(x: Any, ratio: Any, training: Any) -> Any:
    return np.where(np.random.RandomState(1).uniform(size=x.shape) >= 0.5, x * x.dtype.type(2), x.dtype.type(0))


CASES = [
    Case(name, "Dropout", [draw(3, 40), RATIO, mode], {"seed": 5}, outputs=2, constants=constants, opset=13)
    for name, mode, constants in (
        ("trains", TRAINS, ()),
        ("trains always", TRAINS, (2,)),
        ("rests", RESTS, ()),
        ("rests always", RESTS, (1, 2)),
    )
]
CASES += [
    Case("all", "Dropout", [draw(3, 4), np.float32(0), TRAINS], {}, outputs=2, constants=()),
    Case(
        "no ratio, float16",
        "Dropout",
        [draw(9, dtype=np.float16), None, TRAINS],
        {"seed": 1},
        reference=_halved,
        gl=False,
    ),
]
CASES += [
    Case(str(shape), "Dropout", [draw(*shape), np.float32(ratio), TRAINS], {"seed": seed}, outputs=2, constants=())
    for shape, ratio, seed in (((), 0.5, 1), ((0, 3), 0.5, 2), ((1, 37, 11), 0.75, 0), ((2, 3, 5), 1 / 3, 9))
]
CASES += [Case("no mask", "Dropout", [draw(3, 4), np.float32(0.25), TRAINS], {"seed": 3}, constants=(1, 2))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_drop(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


def test_without_a_seed_every_run_drops_others(backend: str, backend_context: Any) -> None:
    case = Case("", "Dropout", [np.ones(2000, np.float32), np.float32(0.25), TRAINS], {}, outputs=2, constants=())
    with pf.Worker(pf.load(case.proto()), backend, backend_context, strict=True) as worker:
        runs = []
        for _ in range(5):
            worker.schedule(case.fed)
            y, mask = (worker.peek_output(name).download_to_array() for name in ("y0", "y1"))
            np.testing.assert_allclose(y, mask / 0.75, rtol=1e-6)
            runs.append(mask)
    assert len({run.tobytes() for run in runs}) == 5 and abs(np.mean(runs) - 0.75) < 0.03
