"""Sizes of a trace as the values of a tensor: steps write them, so that a plan for other sizes has other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from perframe.backends.operand import Operand, StorageRange
from perframe.backends.protocol import Backend, Placing, Step
from perframe.ir import Layer, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import specialized
from perframe.tensor import Array, DataType, Storage

MOST = 8  # numbers of a tensor; more are tied to their values
INTEGERS = (DataType.INT32, DataType.INT64)


def may_be_written(spec: PartialTensor) -> bool:
    """Whether steps write the values of a tensor."""
    numbers = spec.ints()
    return numbers is not None and len(numbers) <= MOST and spec.dtype in INTEGERS


def write(
    spec: PartialTensor, name: str, storage: Storage, backend: Backend, constant: Callable[[Array], Storage]
) -> Iterator[Sequence[Step]]:
    """Yield steps that write the values of the tensor `name` into `storage`, one range of one number for each.
    `constant` makes storage for a number where no kernel writes it.
    """
    assert isinstance(backend, Placing)

    def end_of(size: int) -> Operand:
        def known() -> Array:
            return np.array(specialized(size), spec.dtype.numpy)

        return Operand("", (), spec.dtype, known, lambda: constant(known()), sizes=(size,))

    layer = Layer("Range", f"sizes of {name}", [Value(end) for end in ("start", "limit", "step")], [Value("y")])
    for index, number in enumerate(spec.ints() or ()):
        at = StorageRange(name, index, 1)
        made = Operand("", (1,), spec.dtype, storage=backend.part(storage, at, (1,), spec.dtype), part=at)
        yield backend.lower(layer, [*map(end_of, (number, number + 1, 1))], [made], _no_scratch)


def _no_scratch(shape: Sequence[int], dtype: DataType) -> Operand:
    raise AssertionError("a range needs no scratch")
