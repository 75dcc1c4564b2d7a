"""Positions, masks of positions and fillers, which are as long as a size, are computed for any size."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.plan import planner, tracing
from perframe.testing.checks import trace
from small import load, node

NUMBERS = {"zero": np.int64(0), "one": np.int64(1), "high": np.float32(1), "low": np.float32(-2)}
AXES = {"first": np.int64([0]), "last": np.int64([1]), "three": np.int64([3])}


def masked() -> pf.Model:
    """The causal mask of `new` queries after `past` keys, the positions of the queries, and a filler."""
    nodes = [
        *(node("Shape", "past", "p1"), node("Gather", "p1 zero", "p"), node("Shape", "new", "n1")),
        *(node("Gather", "n1 zero", "n"), node("Add", "p n", "total")),
        *(node("Range", "zero total one", "keys"), node("Range", "zero n one", "steps"), node("Add", "steps p", "at")),
        *(node("Unsqueeze", "keys first", "row"), node("Unsqueeze", "at last", "column")),
        *(node("LessOrEqual", "row column", "seen"), node("Where", "seen high low", "mask")),
        *(node("Unsqueeze", "total first", "t1"), node("Concat", "t1 three", "wide", axis=0)),
        *(node("ConstantOfShape", "wide", "filler"), node("Relu", "new", "y")),
    ]
    shapes: dict[str, Any] = {"past": ["p", 2], "new": ["n", 2]}
    return load(nodes, shapes, "mask at filler y", NUMBERS | AXES)


def expected(past: int, new: int) -> tuple[Any, Any, Any]:
    at = np.arange(new) + past
    mask = np.where(np.arange(past + new) <= at[:, None], np.float32(1), np.float32(-2))
    return mask, at, np.zeros((past + new, 3), np.float32)


def test_one_template_serves_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    init, planned = planner.Planner.__init__, []

    def counted(self: Any, *given: Any) -> None:
        planned.extend([1] * (threading.current_thread() is threading.main_thread()))  # jobs trace beside it
        init(self, *given)

    with pf.Worker(masked()) as worker:

        def check(past: int, new: int) -> None:
            worker.schedule(np.ones((past, 2), np.float32), np.ones((new, 2), np.float32))
            for name, value in zip(("mask", "at", "filler"), expected(past, new), strict=True):
                np.testing.assert_array_equal(worker.peek_output(name).numpy(), value)

        for new in (3, 1):
            check(5, new)
            (part,) = trace(worker)
        part.evict_all()
        monkeypatch.setattr(planner.Planner, "__init__", counted)
        for past, new in ((5, 3), (8, 1), (9, 1), (700, 1), (30, 17), (701, 2), (2, 1)):
            check(past, new)
        assert not planned
        part.evict_all()
        check(70_000, 1)  # beyond the table of numbers
        check(0, 4)


def test_a_cache_that_grows_is_traced_although_no_shape_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with pf.Worker(masked()) as worker:
        (part,) = worker.parts.planned_parts()
        assert part._templates is not None
        traced = []
        monkeypatch.setattr(tracing, "trace_later", lambda trace, in_job: traced.append(trace))
        monkeypatch.setattr(planner.Plan, "is_costly", True)
        monkeypatch.setattr(planner.Plan, "is_provisional", False)
        for past in range(3, 8):
            worker.schedule(np.ones((past, 2), np.float32), np.ones((1, 2), np.float32))
            worker.peek_output("mask").numpy()
        assert traced
