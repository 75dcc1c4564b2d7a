"""The table of calls, and how its rows are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_random = np.random.default_rng(7)


def F(*shape: int) -> Array:
    """Normal numbers, float32."""
    return _random.standard_normal(shape).astype(np.float32)


def U(low: float, high: float, *shape: int) -> Array:
    """Even numbers from low to high, float32."""
    return _random.uniform(low, high, shape).astype(np.float32)


def N(low: int, high: int, *shape: int, dtype: Any = np.int64) -> Array:
    """Whole numbers from low to below high."""
    return _random.integers(low, high, shape).astype(dtype)


def B(*shape: int) -> Array:
    """Bools."""
    return _random.integers(0, 2, shape).astype(bool)


def R(*values: Any, dtype: Any = np.float32) -> Array:
    """These values."""
    return np.array(values, dtype)


@dataclass(frozen=True)
class Case:
    """One call. Arrays become inputs. `reference(torch, *arguments)` is used where PyTorch has no such function.

    A call with `fixed` needs inputs of known sizes; all others run with named dims. `tolerance` is of the
    largest value.
    """

    args: tuple[Any, ...]
    named: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    fixed: bool = False
    tolerance: float = 2e-6


def case(*args: Any, reference: Any = None, fixed: bool = False, tolerance: float = 2e-6, **named: Any) -> Case:
    return Case(args, named, reference, fixed, tolerance)


CASES: dict[str, list[Case]] = {}
INF, NAN = float("inf"), float("nan")


def each(names: str, *cases: Case) -> None:
    """Test several functions with the same calls."""
    for name in names.split():
        CASES[name] = [*CASES.get(name, []), *cases]
