"""Long runs of states that grow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np

import perframe as pf
from perframe import functional as F
from soak.scenarios import check, scenario

CAPACITY = 96


def recall() -> pf.Model:
    """The mean of all rows so far, which are kept."""
    graph = pf.FunctionalGraph("recall")
    x, past = graph.add_input("float32", (1, "new", 8), "x"), graph.add_input("float32", (1, "past", 8), "past")
    rows = F.concat([past, x], 1)
    return graph.compile(y=F.reduce_mean(rows, 1), rows=rows)


@scenario(full=10_000, short=600)
def growing_state(backend: str, ctx: Any) -> Iterator[None]:
    """Rows are appended up to a capacity. Runs are dropped, too long ones refused, and states reset, also to values."""
    random, rows = np.random.default_rng(3), np.zeros((1, 0, 8), np.float32)
    with pf.Worker(recall(), backend, ctx, carry={"rows": "past"}, carry_capacity=CAPACITY) as worker:
        for index in count():
            new = 1 if index % 9 else int(random.integers(2, 7))
            x = random.random((1, new, 8), np.float32)
            if rows.shape[1] + new > CAPACITY:
                with suppress(pf.InputError):
                    worker.schedule(x)
                    raise AssertionError("there was no room")
                rows = random.random((1, int(random.integers(0, 9)), 8), np.float32)
                worker.reset(rows if rows.shape[1] else None)
            if index % 7 == 3:
                steps = worker.schedule_iterable(random.random((1, 2, 8), np.float32))
                with suppress(pf.InputError):  # that would be too long, too
                    next(steps)
            rows = np.concatenate([rows, x], 1)
            check(worker.schedule(x).peek_output("y").numpy(), rows.mean(1))
            if index % 50 == 0:
                check(worker.state().numpy(), rows)
            yield
