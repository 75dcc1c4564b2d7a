"""Matrix products. Operands may have any strides, so a transposed operand costs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer
from perframe.ir.form import Counted
from perframe.ir.geometry import Ints, broadcast_strides, row_major
from perframe.ir.sizes.partial import Dim, DynamicTensorShape, PartialTensor, broadcast
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Product(Counted):
    """`batch` products of (rows, depth) by (depth, columns), plus a bias.

    Strides are in elements; the stride of a repeated dim is 0. `a_strides` is (batch..., row, depth), `b_strides` is
    (batch..., depth, column), and `bias_strides` is (row, column).
    """

    batch: Ints
    rows: int
    columns: int
    depth: int
    a_strides: Ints
    b_strides: Ints
    bias_strides: Ints
    alpha: float = 1.0
    beta: float = 1.0

    @property
    def batches(self) -> int:
        """The number of products."""
        return math.prod(self.batch)

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batches * self.rows * self.columns * self.depth


def _check_depth(a: PartialTensor, b: PartialTensor, columns: Dim, rows: Dim) -> None:
    """Raise InferenceError if the columns of a and the rows of b are known numbers, and differ."""
    if isinstance(columns, int) and isinstance(rows, int) and columns != rows:
        raise InferenceError(f"{a} and {b} cannot be multiplied: {columns} columns and {rows} rows")


def _turned(shape: Sequence[Dim], turns: int) -> tuple[Dim, ...]:
    """The shape with its last two dims exchanged, if it has two and `turns` is set."""
    return (*shape[:-2], shape[-1], shape[-2]) if turns and len(shape) > 1 else tuple(shape)


@layer()
def MatMul(
    a: PartialTensor,
    b: PartialTensor,
    bias: PartialTensor | None = None,
    *,
    transA: Flag = 0,
    transB: Flag = 0,
    rounds: Flag = 0,
) -> PartialTensor:
    if a.shape is None or b.shape is None:
        return a.with_shape(None)
    if not a.shape or not b.shape:
        raise InferenceError(f"MatMul takes no scalars: {a} and {b}")
    left, right = _turned(a.shape, transA), _turned(b.shape, transB)
    _check_depth(a, b, left[-1], right[-2] if len(right) > 1 else right[0])
    batch = broadcast(DynamicTensorShape(left[:-2]), DynamicTensorShape(right[:-2])) or ()
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    return a.with_shape((*batch, *rows, *columns))


@MatMul.form
def _matmul(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, transA: int = 0, transB: int = 0, rounds: int = 0
) -> Product:
    """`rounds` is for packed weights alone (layers/packed.py)."""
    a, b, bias = inputs
    assert a is not None and b is not None
    left = (1, *a.shape) if len(a.shape) == 1 else tuple(a.shape)
    right = (*b.shape, 1) if len(b.shape) == 1 else tuple(b.shape)
    rank = max(len(left), len(right)) - 2
    shapes = [(1,) * (rank + 2 - len(shape)) + shape for shape in (left, right)]
    turns = (transA and len(a.shape) > 1, transB and len(b.shape) > 1)
    batch = tuple(x if y == 1 else y for x, y in zip(shapes[0][:-2], shapes[1][:-2], strict=True))
    strides = []
    for shape, turned in zip(shapes, turns, strict=True):
        plane = shape[-2] * shape[-1]
        steps = tuple(step * plane for step in broadcast_strides(shape[:-2], batch))
        last = row_major(shape)[-2:]
        strides.append((*steps, *(last[::-1] if turned else last)))
    rows = left[-1] if turns[0] else left[-2]
    depth, columns = right[-2:][::-1] if turns[1] else right[-2:]  # of b, which may be constant where a is not
    return Product(batch, rows, columns, depth, strides[0], strides[1], _bias_strides(bias, rows, columns))


def _bias_strides(bias: Known | None, rows: int, columns: int) -> Ints:
    return (0, 0) if bias is None else broadcast_strides(bias.shape, (rows, columns))


@layer()
def Gemm(
    a: PartialTensor,
    b: PartialTensor,
    c: PartialTensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: Flag = 0,
    transB: Flag = 0,
) -> PartialTensor:
    if a.shape is None or b.shape is None:
        return a.with_shape((None, None))
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise InferenceError(f"Gemm takes matrices, not {a} and {b}")
    left, right = a.shape[::-1] if transA else a.shape, b.shape[::-1] if transB else b.shape
    _check_depth(a, b, left[1], right[0])
    made = (left[0], right[1])
    if c is not None and c.shape is not None:
        known = [(dim, size) for dim, size in zip(c.shape[::-1], made[::-1], strict=False) if isinstance(size, int)]
        if len(c.shape) > 2 or any(isinstance(dim, int) and dim not in (1, size) for dim, size in known):
            raise InferenceError(
                f"the third input of Gemm, {c.shape}, does not broadcast to {DynamicTensorShape(made)}"
            )
    return a.with_shape(made)


@Gemm.form
def _gemm(
    inputs: Sequence[Known | None], outputs: Sequence[Known], *, alpha: float, beta: float, transA: int, transB: int
) -> Product:
    a, b, c = inputs
    assert a is not None and b is not None
    rows, columns = outputs[0].shape
    depth = b.shape[1] if transB else b.shape[0]  # b may be constant where a is not
    a_strides, b_strides = row_major(a.shape), row_major(b.shape)
    return Product(
        (),
        rows,
        columns,
        depth,
        a_strides[::-1] if transA else a_strides,
        b_strides[::-1] if transB else b_strides,
        _bias_strides(c, rows, columns),
        alpha,
        beta,
    )
