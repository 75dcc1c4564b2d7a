"""Rotary embeddings: pairs of numbers are rotated by angles that follow from a token's position.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer
from perframe.ir.geometry import Ints, broadcast_strides, collapse
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor, broadcast
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class PairRotation:
    """Rows of `size` numbers, and tables with cosines and sines for each row.

    The rows have the coordinates `shape`; `cos_steps` and `sin_steps` are the strides of the tables along these. A
    table has one number for each pair if `by_pair`, else one for each number of the row. The pairs are neighbors if
    `interleaved`, else a number of the first half and one of the second.
    """

    shape: Ints
    cos_steps: Ints
    sin_steps: Ints
    size: int
    interleaved: bool
    by_pair: bool

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.shape)


@layer()
def RotatePairs(x: PartialTensor, cos: PartialTensor, sin: PartialTensor, *, interleaved: Flag = 0) -> PartialTensor:
    """Give each number a and the next one b of a pair a * cos - b * sin and b * cos + a * sin."""
    for table in (cos, sin):
        if table.dtype is not x.dtype:
            raise InferenceError(f"numbers {x} and angles {table} must have one dtype")
        if x.shape is None or table.shape is None:
            continue
        size, width = x.shape[-1] if x.shape else 0, table.shape[-1] if table.shape else 0
        if isinstance(size, int) and (size % 2 or (isinstance(width, int) and width not in (size, size // 2))):
            raise InferenceError(f"{x} is not a row of pairs with a number of {table} for each pair or number")
        if len(table.shape) > len(x.shape):
            raise InferenceError(f"angles of {table} do not broadcast to {x}")
        broadcast(DynamicTensorShape(table.shape[:-1]), DynamicTensorShape(x.shape[:-1]))  # raises
    return x.with_shape(x.shape)


@RotatePairs.form
def _rotate_pairs(inputs: Sequence[Known], outputs: Sequence[Known], *, interleaved: int) -> PairRotation:
    shape, cos, sin = (tuple(value.shape) for value in inputs)
    if cos[-1] != sin[-1]:
        raise InferenceError(f"cosines of {cos} and sines of {sin} do not have equally many numbers")
    steps = [[step * table[-1] for step in broadcast_strides(table[:-1], shape[:-1])] for table in (cos, sin)]
    rows, (cos_steps, sin_steps) = collapse(shape[:-1], [tuple(one) for one in steps])
    return PairRotation(rows, cos_steps, sin_steps, shape[-1], bool(interleaved), cos[-1] != shape[-1])
