"""The CPU without kernels: NumPy's definition computes each layer, and nothing is compiled.

Graphs with ever new formulas then run in milliseconds, and what differs is due to a pass or a plan. The passes that
prepare a model for another backend can be tried in the same way.
"""

from __future__ import annotations

from typing import Any

import perframe.backends.cpu.backend as cpu
from perframe import passes
from perframe.backends.cpu import reference


class _Definitions:
    """A family without `lower`."""

    def __init__(self, family: Any) -> None:
        self.compute = family.compute


class _Reference:
    """`reference` as the CPU's backend sees it, with families that only compute."""

    def __getattr__(self, name: str) -> Any:
        return getattr(reference, name)

    @staticmethod
    def family_of(layer: Any) -> Any:
        return _Definitions(reference.family_of(layer))


WITHOUT_KERNELS: Any = _Reference()


def without_kernels() -> None:
    """Let this process compute every layer by its definition."""
    cpu.reference = WITHOUT_KERNELS


def prepared_like(name: str) -> None:
    """Prepare models for the CPU as for another backend."""
    passes.PREPARATIONS["cpu"] = passes.PREPARATIONS[name]
