"""The names of the dims that a model's inputs leave open, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from perframe.errors import ModelError
from perframe.ir.sizes.partial import Dim, DynamicTensorShape
from perframe.safety.wording import did_you_mean


class Declared(Protocol):
    """An input of a model."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def shape(self) -> Iterable[Dim] | None:
        """Its dims: numbers, names, or None for an unknown dim. None if the rank is unknown."""


def dim_name(value: str, axis: int, dim: Dim) -> str | None:
    """Return the name that sets a dim: its own, or INPUT:AXIS if it has none. None if its size is fixed."""
    return None if isinstance(dim, int) else dim or f"{value}:{axis}"


def dim_names(value: Declared) -> list[str | None]:
    """Return `dim_name` of each dim of an input."""
    return [dim_name(value.name, axis, dim) for axis, dim in enumerate(value.shape or ())]


def shape_with(value: Declared, dims: Mapping[str, int]) -> DynamicTensorShape | None:
    """Return an input's shape with these sizes for its open dims."""
    if value.shape is None:
        return None
    names = dim_names(value)
    return DynamicTensorShape(
        dim if name is None else dims.get(name, dim) for name, dim in zip(names, value.shape, strict=True)
    )


def check_dims(model: str, inputs: Sequence[Declared], dims: Any) -> None:
    """Raise ModelError unless `dims` maps names of open dims to sizes."""
    if not isinstance(dims, Mapping):
        raise ModelError(f"dims are sizes by the dims' names, such as {{'batch': 1}}, not {dims!r}")
    for name, size in dims.items():
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 0 <= size < 1 << 31:
            raise ModelError(f"dim {name!r} must be an integer from 0, and is {size!r}")
    known = [*dict.fromkeys(name for value in inputs for name in dim_names(value) if name is not None)]
    unknown = [str(name) for name in dims if name not in known]
    if unknown:
        listed = f"its open dims are {', '.join(known)}" if known else "its inputs have fixed sizes"
        close = did_you_mean(unknown[0], known)
        raise ModelError(f"{model} has no open dim named {', '.join(unknown)}: {close}{listed}")
