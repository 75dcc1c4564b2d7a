"""Runs a function of pf.vision on a backend: its arrays become inputs of one model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import perframe as pf

Array = Any


def run(make: Callable[..., Any], arrays: dict[str, Array], backend: str, ctx: Any) -> list[Array | None]:
    """Return the results of `make(**inputs)` in order, as arrays; None where it gives None. No layer may fall back."""
    graph = pf.FunctionalGraph()
    made = make(**{name: graph.add_input(str(value.dtype), value.shape, name) for name, value in arrays.items()})
    several = list(made) if isinstance(made, tuple) else [made]
    named = {f"result_{index}": value for index, value in enumerate(several) if value is not None}
    found = pf.run(graph.compile(**named), arrays, backend=backend, ctx=ctx, strict=True)
    return [found.get(f"result_{index}") for index in range(len(several))]


def close(found: Array | None, wanted: Array, tolerance: float = 2e-5) -> None:
    """Check values; the tolerance is relative to the largest."""
    assert found is not None and found.shape == np.shape(wanted)
    scale = np.nanmax(np.abs(wanted), initial=1.0)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))
