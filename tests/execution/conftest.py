"""Fixtures for the tests of states and of swaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import perframe as pf
from execution.swaps import X, model
from perframe.backends.protocol import Backend


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


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with each copy between two storages."""
    found: list[int] = []

    from perframe.backends.cpu.backend import CpuBackend
    from perframe.backends.gl.compute import ComputeBackend
    from perframe.backends.gl.pixel import PixelBackend

    for kind in (CpuBackend, ComputeBackend, PixelBackend):
        before = kind.copy

        def copy(self: Backend, *arguments: Any, before: Any = before) -> None:
            found.append(1)
            before(self, *arguments)

        monkeypatch.setattr(kind, "copy", copy)
    return found
