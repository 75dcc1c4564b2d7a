"""The CPU without kernels: NumPy's definition computes each layer, and nothing is compiled.

Graphs with ever new formulas then run in milliseconds, and what differs is due to a pass or a plan. The passes that
prepare a model for another backend can be tried in the same way.
"""

from __future__ import annotations

from typing import Any

import perframe.backends.cpu.backend as backend
from perframe import passes
from perframe.backends.cpu.lowering import reference


class _Definitions:
    """A family without `lower`."""

    def __init__(self, family: Any) -> None:
        self.compute = family.compute


def without_kernels() -> None:
    """Let this process compute every layer by its definition."""
    found = reference.family_of

    class Module:
        """`reference` as the backend sees it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(reference, name)

        @staticmethod
        def family_of(layer: Any) -> Any:
            return _Definitions(found(layer))

    backend.reference = Module()  # type: ignore[assignment]


def prepared_like(name: str) -> None:
    """Prepare models for the CPU as for another backend."""
    passes.PREPARATIONS["cpu"] = passes.PREPARATIONS[name]
