"""Fixtures for the tests of swaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import perframe as pf
from execution.swaps import X, model


@pytest.fixture
def results(backend: str, backend_context: Any) -> Callable[[int], Any]:
    def result(seed: int) -> Any:
        return pf.run(model(seed), X, backend, ctx=backend_context)["y"]  # type: ignore[arg-type]

    return result


@pytest.fixture
def worker(backend: str, backend_context: Any) -> Iterator[pf.Worker]:
    with pf.Worker(model(1), backend, backend_context) as made:  # type: ignore[arg-type]
        made.schedule(X)
        yield made
