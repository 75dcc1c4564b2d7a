"""The lowering of each family of layers to kernels of GL, a file a family."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from perframe.backends.gl.lowering.steps import GPU_DTYPES, NARROW_FLOATS, Binding, Call, Tools
from perframe.ir.family_files import read_family
from perframe.safety.records import dataclass
from perframe.tensor import DataType


@dataclass(frozen=True)
class GLFamily:
    """The functions of a family's file.

    - `lower(call, tools)` returns kernels with everything they need.
    - `supports(call)` returns the reason why no kernel can run a layer, or None.
    - `replaces(call)` returns whether kernels may write only the rows that differ (`Backend.lower`).
    - `dims(form)` returns the lists of dims that the kernels keep in arrays of a fixed length.
    - `DTYPES` are those of inputs and outputs. With float32 it takes float16 and bfloat16 too, unless it `READS_BITS`.
    """

    lower: Callable[[Call[Any], Tools], list[Binding]]
    supports: Callable[[Call[Any]], str | None] | None = None
    replaces: Callable[[Call[Any]], bool] | None = None
    dims: Callable[[Any], list[Sequence[int]]] | None = None
    DTYPES: Sequence[DataType] = GPU_DTYPES
    READS_BITS: bool = False

    @property
    def dtypes(self) -> Sequence[DataType]:
        """The dtypes of a model's values that it takes."""
        reads_narrow = DataType.FLOAT32 in self.DTYPES and not self.READS_BITS
        return (*self.DTYPES, *NARROW_FLOATS) if reads_narrow else self.DTYPES


@cache
def family(name: str) -> GLFamily | None:
    """The family of this name; None if it has no GL kernels."""
    return read_family(GLFamily, name, "backends.gl.families")


def names() -> frozenset[str]:
    """The names of perframe's own families that have GL kernels."""
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))
