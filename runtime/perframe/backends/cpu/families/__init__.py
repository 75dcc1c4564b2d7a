"""The lowering of each family of layers to steps of the CPU, a file a family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.errors import ModelError
from perframe.ir.family_files import read_family
from perframe.safety.records import dataclass

Inputs = Sequence[Operand | None]
Outputs = Sequence[Operand]


@dataclass(frozen=True)
class CpuFamily:
    """The functions of a family's file. `form` is the form of the layer for its shapes.

    - `compute(layer, form, arrays, outputs)` returns the outputs' values, computed by NumPy. Between plans, outputs are
      partial tensors, or None if an input is not a tensor.
    - `lower(layer, form, inputs, outputs, scratch)` returns native steps, or None for dtypes without a kernel.
    - `lower_rounded`, with the same arguments, returns steps that round the operands of products to bfloat16, or None.
    - `takes_gaps(layer, inputs, outputs)` returns the values that may have gaps between their rows.
    - `overwrites(layer)` returns the index of the input that the layer may overwrite.
    """

    compute: Callable[[LayerLike, Any, Sequence[Any], Any], Iterable[Any]]
    lower: Callable[[LayerLike, Any, Inputs, Outputs, Scratch], list[NativeStep] | None] | None = None
    lower_rounded: Callable[[LayerLike, Any, Inputs, Outputs, Scratch], list[NativeStep] | None] | None = None
    takes_gaps: Callable[[LayerLike, Inputs, Outputs], list[Operand]] | None = None
    overwrites: Callable[[LayerLike], int | None] | None = None

    def steps(
        self, layer: LayerLike, form: Any, inputs: Inputs, outputs: Outputs, scratch: Scratch, rounds: bool
    ) -> list[NativeStep] | None:
        """Return the steps of `lower_rounded`, if the worker rounds and if there are any, or those of `lower`."""
        assert self.lower is not None
        rounded = self.lower_rounded(layer, form, inputs, outputs, scratch) if rounds and self.lower_rounded else None
        return self.lower(layer, form, inputs, outputs, scratch) if rounded is None else rounded


def family_of(layer: LayerLike) -> CpuFamily:
    """Return the family that runs a layer, or the computation that its declaration has. Raises ModelError."""
    computed_by = layer.declaration.computed_by
    if computed_by is None:
        return _family(layer.family)

    def compute(layer: LayerLike, form: Any, inputs: Sequence[Any], outputs: Any) -> Iterable[Any]:
        made: Iterable[Any] = computed_by(inputs, outputs, **layer.declaration.with_defaults(layer.attributes))
        if isinstance(made, np.ndarray) or not isinstance(made, Iterable):  # rows of an array would pass for outputs
            raise ModelError(
                f"compute of {layer.op} returns a list of arrays, one per output, not {type(made).__name__}"
            )
        return made

    return CpuFamily(compute)


@cache
def _family(name: str) -> CpuFamily:
    found = read_family(CpuFamily, name, "backends.cpu.families")
    if found is None:
        raise ModelError(
            f"nothing computes the layers of the family {name!r}: declare their values with @<layer>.compute, name a "
            f"family whose form they have, or write backends/cpu/families/{name.rpartition('.')[2]}.py in their package"
        )
    return found
